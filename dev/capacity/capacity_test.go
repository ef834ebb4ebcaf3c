package capacity

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/skein-threads/skein/dev/repository"
)

// measured are the costs that docs/scale.md names, with the measurement of each.
func measured() Costs { return Costs{Server: 400, Skein: 400, Log: 53, Runner: 69} }

func TestCosts_Of(t *testing.T) {
	c := Costs{Server: 100, Skein: 300, Log: 50, Runner: 80}
	one := c.Of(Machine{Cores: 4, Nodes: 1, Copies: 1, Share: 0.5})
	if one.Processor != 5000 || one.Log != 20_000 || one.Runner != 12_500 || one.Commits() != 5000 || one.Cells() != 1 {
		t.Errorf("%+v: %v commits, %d cells", one, one.Commits(), one.Cells())
	}
	many := c.Of(Machine{Cores: 16, Nodes: 5, Copies: 3, Share: 0.5})
	if math.Round(many.Processor) != 66_667 || many.Commits() != 12_500 || many.Cells() != 6 {
		t.Errorf("%+v: %v commits, %d cells", many, many.Commits(), many.Cells())
	}
}

// The shares of tenants are of one whole, skewed, and the same for the same seed; every tenant is in
// a cell; moves lose none, are no more than allowed, and leave the fullest cell no fuller.
func TestSimulate_Invariants(t *testing.T) {
	for seed := range uint64(20) {
		shares := Tenants(500, 1, seed)
		if again := Tenants(500, 1, seed); again[7] != shares[7] {
			t.Fatal("not the same again")
		}
		p := ByHash(shares, 8, seed)
		sum := 0.0
		for _, l := range p.Loads(shares, 8) {
			sum += l
		}
		if math.Abs(sum-8) > 1e-9 {
			t.Fatalf("the cells have %v of 8", sum)
		}
		for _, most := range []int{0, 1, 5, 500} {
			q, moved := p.Moved(shares, 8, most)
			others := 0
			for i := range q {
				if q[i] != p[i] {
					others++
				}
			}
			if moved > most || others > moved || q.Fullest(shares, 8) > p.Fullest(shares, 8)+1e-9 {
				t.Errorf("seed %d, at most %d: %d moves, %d tenants elsewhere, fullest %v after %v", seed, most, moved, others, q.Fullest(shares, 8), p.Fullest(shares, 8))
			}
		}
		q, _ := p.Moved(shares, 8, 500)
		largest := 0.0
		for _, s := range shares {
			largest = max(largest, s*8)
		}
		if full := q.Fullest(shares, 8); full > max(largest, 1)*1.02 {
			t.Errorf("seed %d: the fullest cell has %v after all moves; the largest tenant %v", seed, full, largest)
		}
	}
}

// The tables of the page are what the model says.
func TestScalePage(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(repository.Root(), "docs", "scale.md"))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"machines": machines(), "cells": simulated()} {
		if !strings.Contains(string(text), want) {
			t.Errorf("docs/scale.md does not have the table of %s; it is:\n%s", name, want)
		}
	}
}

func machines() string {
	var b strings.Builder
	b.WriteString("| machines | all processors | one log's leader | one log's runner | one cell | cells to use all |\n|---|---|---|---|---|---|\n")
	for _, m := range []struct {
		name string
		Machine
	}{
		{"1 of 2 cores (the measured one)", Machine{Cores: 2, Nodes: 1, Copies: 1, Share: 0.9}},
		{"1 of 16 cores", Machine{Cores: 16, Nodes: 1, Copies: 1, Share: 0.7}},
		{"3 of 16 cores, three copies", Machine{Cores: 16, Nodes: 3, Copies: 3, Share: 0.7}},
		{"5 of 16 cores, three copies", Machine{Cores: 16, Nodes: 5, Copies: 3, Share: 0.7}},
	} {
		l := measured().Of(m.Machine)
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %d |\n", m.name, thousands(l.Processor), thousands(l.Log), thousands(l.Runner), thousands(l.Commits()), l.Cells())
	}
	return b.String()
}

// thousands rounds to hundreds.
func thousands(f float64) string {
	n := int(math.Round(f/100)) * 100
	return fmt.Sprintf("%d,%03d", n/1000, n%1000)
}

func simulated() string {
	var b strings.Builder
	b.WriteString("| cells | skew | the largest tenant alone | by hash | with at most 100 moved |\n|---|---|---|---|---|\n")
	for _, skew := range []float64{0.8, 1, 1.2} {
		for _, cells := range []int{4, 16, 64} {
			r := Simulate(10_000, cells, skew)
			fmt.Fprintf(&b, "| %d | %.1f | %.2f | %.2f | %.2f |\n", r.Cells, r.Skew, r.Largest, r.Hash, r.Few)
		}
	}
	return b.String()
}
