package thread

import (
	"strconv"
	"strings"
	"testing"

	"github.com/skein-threads/skein/events"
)

const day = events.Time(24 * 3600 * 1_000_000)

// A receipt stands for 24 hours of the thread's time, and survives encoding.
func TestReceipts_LastADay(t *testing.T) {
	k := newStory(t)
	step := func(id string, at events.Time) {
		t.Helper()
		var data any = events.UpdateThread{Title: to("x")}
		if !k.state.Existed() {
			data = events.CreateThread{}
		}
		c := k.command(data)
		c.ID, c.Time = id, at
		if _, err := k.try(c); err != nil {
			t.Fatal(err)
		}
	}
	known := func(id string, seq uint64) {
		t.Helper()
		read, err := DecodeState(encoded(t, k.state))
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range []*State{k.state, k.replica, read} {
			got, ok := s.Receipt(id)
			if got != seq || ok != (seq > 0) {
				t.Errorf("at %d the receipt of %s is %d %v, want %d", s.Time, id, got, ok, seq)
			}
		}
	}
	step("first", dawn)
	step("second", dawn+10)
	step("third", dawn+day)
	known("first", 1)
	step("fourth", dawn+day+1)
	known("first", 0)
	known("second", 2)
	known("nobody", 0)
	step("first", dawn+day+2) // the same id, used again after its day
	known("first", 5)
	step("fifth", dawn+2*day+1)
	known("third", 0)
	known("first", 5)
	step("sixth", dawn+2*day+3)
	known("first", 0)
	if n := len(k.state.receipts.List); n != 2 || len(k.state.receipts.byID) != 2 || k.state.receipts.text != int64(len("fifthsixth")) {
		t.Errorf("%d receipts are kept: %+v", n, k.state.receipts)
	}
}

// A receipt that is dropped does not take a later one of the same id with it.
func TestReceipts_OfOneID(t *testing.T) {
	var r receipts
	r.add("a", "", 1, dawn)
	r.add("a", "", 2, dawn+10)
	r.add("b", "", 3, dawn+day+5)
	if seq, ok := r.find("a"); !ok || seq != 2 || len(r.List) != 2 {
		t.Errorf("found %d %v among %+v", seq, ok, r.List)
	}
}

// Each command of a commit that several share has a receipt of its own, and one
// of many events has one.
func TestReceipts_OfOneCommit(t *testing.T) {
	k := begun(t)
	d := NewDraft(k.state)
	for range 3 {
		if _, err := d.Do(k.command(events.CreateContext{}, events.CreateContext{})); err != nil {
			t.Fatal(err)
		}
	}
	before := len(k.state.receipts.List)
	commit := k.store(d)
	if n := len(k.state.receipts.List) - before; n != 3 {
		t.Errorf("%d receipts for 3 commands", n)
	}
	for _, r := range k.state.receipts.List[before:] {
		if r.Seq != commit.Seq {
			t.Errorf("the receipt of %s names commit %d, not %d", r.ID, r.Seq, commit.Seq)
		}
	}
}

// The set of a step's parts has what was put into it and nothing else, in
// whatever order, and without gaps it is two words.
func TestPartSet(t *testing.T) {
	for _, order := range [][]int64{{0, 1, 2, 3, 4}, {4, 3, 2, 1, 0}, {2, 0, 4, 1, 3}, {1, 1, 0, 0, 3, 2, 4}} {
		var p partSet
		in := map[int64]bool{}
		for _, idx := range order {
			before := p
			p = p.with(idx)
			if before.has(idx) != in[idx] {
				t.Errorf("%v: a set was changed that had been copied", order)
			}
			in[idx] = true
			for i := range int64(7) {
				if p.has(i) != in[i] {
					t.Errorf("%v: after %d, %d in the set is %v", order, idx, i, p.has(i))
				}
			}
		}
		if p.N != 5 || len(p.More) != 0 {
			t.Errorf("%v: %+v", order, p)
		}
	}
}

// What a state is said to take grows with what it holds, and goes back with it.
func TestBytes(t *testing.T) {
	k := newStory(t)
	k.do(events.CreateThread{})
	empty := k.state.Bytes()
	k.do(events.SetContext{Content: raw(`"` + strings.Repeat("x", 10_000) + `"`)})
	if grown := k.state.Bytes() - empty; grown < 10_000 || grown > 11_000 {
		t.Errorf("10,000 bytes of content count as %d", grown)
	}
	k.do(events.SetContext{Content: raw(`null`)})
	if left := k.state.Bytes() - empty; left > 500 {
		t.Errorf("after it was cleared %d bytes are left", left)
	}
	for i := range 100 {
		k.do(message("itm_"+strconv.Itoa(i), "x"))
	}
	if grown := k.state.Bytes() - empty; grown < 100*100 || grown > 100*500 {
		t.Errorf("100 items count as %d bytes", grown)
	}
	if mine, read := k.state.Bytes(), k.replica.Bytes(); mine != read {
		t.Errorf("the stored state counts as %d bytes, the one that decided as %d", read, mine)
	}
}

// Receipts are counted with what each takes, and with the ids that they hold.
func TestBytes_Receipts(t *testing.T) {
	var r receipts
	for i := range 100 {
		r.add(strings.Repeat("x", 8)+strconv.Itoa(100+i), strings.Repeat("d", 22), uint64(i), dawn)
	}
	if got := r.bytes(); got != 100*(124+11+22) {
		t.Errorf("100 receipts take %d bytes", got)
	}
}
