// Command mutate makes deliberate mistakes in the code, one at a time, and runs the
// tests that should notice each. A mistake that every test passes is a survivor: a
// test is missing, or the code does nothing.
//
// The mistakes are listed in the folder mutants; [Mutant] says how they are written.
// The tree is not changed: a test is built with a changed copy of one file, by the
// overlay of the go command.
//
//	go run ./dev/mutate [-only REGEXP] [-jobs N]
//
// It prints what became of each, and the score. It exits with 1 if a mutant survived,
// no longer applies to the code, or does not compile, and with 2 if a test fails
// without any mutant.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"slices"
	"sync"
	"time"
)

func main() {
	var o options
	flag.StringVar(&o.root, "root", ".", "the root of the repository")
	flag.StringVar(&o.only, "only", "", "make only the mutants whose name matches this `REGEXP`")
	flag.IntVar(&o.jobs, "jobs", 1, "how many are tested at once")
	flag.DurationVar(&o.timeout, "timeout", 5*time.Minute, "how long a test may take, from when it is built")
	flag.BoolVar(&o.trust, "trust", false, "do not run the tests without a mutant first")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	code, err := mutate(ctx, os.Stdout, o)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutate:", err)
	}
	os.Exit(code)
}

// options are the flags.
type options struct {
	root, only string
	jobs       int
	timeout    time.Duration
	trust      bool
}

// The ways in which mutate exits.
const (
	allKilled = iota
	notAll
	broken
)

// mutate makes the mutants that are asked for and prints what became of each.
func mutate(ctx context.Context, out io.Writer, o options) (code int, err error) {
	only, err := regexp.Compile(o.only)
	if err != nil {
		return broken, fmt.Errorf("-only: %w", err)
	}
	mutants, err := Read(os.DirFS(o.root))
	if err != nil {
		return broken, err
	}
	mutants = slices.DeleteFunc(mutants, func(m Mutant) bool { return !only.MatchString(m.Name) })
	if len(mutants) == 0 {
		return broken, fmt.Errorf("no mutant matches %q", o.only)
	}
	if !o.trust {
		if err := unchanged(ctx, out, o, mutants); err != nil {
			return broken, err
		}
	}
	var counting sync.Mutex
	byOutcome := map[outcome]int{}
	var left []string
	places := make(chan struct{}, max(o.jobs, 1))
	var running sync.WaitGroup
	for _, m := range mutants {
		places <- struct{}{}
		running.Go(func() {
			defer func() { <-places }()
			begun := time.Now()
			v := try(ctx, o, m)
			counting.Lock()
			defer counting.Unlock()
			byOutcome[v.outcome]++
			if v.outcome != killed {
				left = append(left, m.Name)
			}
			fmt.Fprintf(out, "%-9s %-44s %5.1fs  %s\n", v.outcome, m.Name, time.Since(begun).Seconds(), v.why)
		})
	}
	running.Wait()
	if err := ctx.Err(); err != nil {
		return broken, err
	}
	fmt.Fprintf(out, "%d of %d mutants killed (%d %%)\n", byOutcome[killed], len(mutants), 100*byOutcome[killed]/len(mutants))
	if len(left) > 0 {
		slices.Sort(left)
		for _, name := range left {
			fmt.Fprintln(out, "not killed:", name)
		}
		return notAll, nil
	}
	return allKilled, nil
}
