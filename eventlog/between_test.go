package eventlog

import (
	"slices"
	"testing"
)

// The last commit of an aggregate between two sequences is the same whether the process has appended all
// that is there, another one has appended some of it, or only the server knows.
func TestLastSeqBetween(t *testing.T) {
	t.Parallel()
	l := start(t)
	l.cfg.Recent = &Recent{}
	other := sibling(t, l)
	other.cfg.Recent = nil
	own, foreign := []*author{newAuthor(1), newAuthor(2)}, newAuthor(3)
	var by []*author // of the commit with each sequence, from 1
	commit := func(l *Log, a *author) {
		a.write(t, l, 1, 1)
		if by = slices.Concat(by, []*author{a}); a.seq != uint64(len(by)) {
			t.Fatalf("commit %d is at %d", len(by), a.seq)
		}
	}
	for _, n := range []int{0, 0, 1, 0, 1, 1} {
		commit(l, own[n])
	}
	alone := uint64(len(by))
	commit(other, foreign)
	commit(l, own[0])
	for _, a := range []*author{own[0], own[1], foreign} {
		for after := range uint64(len(by)) {
			for upTo := after; upTo <= uint64(len(by))+1; upTo++ {
				want := uint64(0)
				for at := after + 1; at <= min(upTo, uint64(len(by))); at++ {
					if by[at-1] == a {
						want = at
					}
				}
				for name, reader := range map[string]*Log{"its own process": l, "another": other} {
					// The server says where the last of all is, which may be after upTo.
					got, err := reader.LastSeqBetween(t.Context(), tenant, a.thread, after, upTo)
					if err != nil || got < want || got > want && got != min(upTo, a.seq) {
						t.Errorf("%s, %s, from %d to %d: %d, %v, not %d", name, a.thread, after, upTo, got, err, want)
					}
				}
				ownOnly := upTo <= after || upTo <= uint64(len(by)) && (upTo <= alone || after > alone)
				if got, known := l.cfg.Recent.last(tenant, a.thread, after, upTo); known != ownOnly || known && got != want {
					t.Errorf("%s, from %d to %d: %d, %v", a.thread, after, upTo, got, known)
				}
			}
		}
	}
	if seq, _ := l.cfg.Recent.last("another", own[0].thread, 0, alone); seq != 0 {
		t.Errorf("commit %d is another tenant's", seq)
	}
}
