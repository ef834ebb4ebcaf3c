package documents

import (
	"testing"

	"github.com/skein-threads/skein/events"
)

// turns is a history of one commit to make the thread and n turns of 12 events.
func turns(b *testing.B, n int) []*events.Commit {
	h := newHistory(b, 1)
	h.do(events.CreateThread{Title: "Order 4711", Metadata: raw(`{"team":"support"}`)})
	for i := range n {
		h.do(turn(i)...)
	}
	return h.commits
}

// BenchmarkFold folds commits of 12 events into all read models.
func BenchmarkFold(b *testing.B) {
	m := NewModels()
	commits := turns(b, 256)
	b.ReportAllocs()
	for b.Loop() {
		s := m.NewMemory(nil)
		for _, c := range commits {
			if err := s.Apply(c); err != nil {
				b.Fatal(err)
			}
		}
	}
	perCommit(b, len(commits))
}

// BenchmarkFoldAndEncode also encodes each document that a commit changed.
func BenchmarkFoldAndEncode(b *testing.B) {
	m := NewModels()
	commits := turns(b, 256)
	b.ReportAllocs()
	docs := 0
	for b.Loop() {
		s := m.NewMemory(nil)
		for _, c := range commits {
			if err := s.Apply(c); err != nil {
				b.Fatal(err)
			}
			for _, slot := range s.changed {
				if _, err := Encode(slot.Doc); err != nil {
					b.Fatal(err)
				}
				docs++
			}
		}
	}
	b.ReportMetric(float64(docs)/float64(b.N*len(commits)), "docs/commit")
	perCommit(b, len(commits))
}

// BenchmarkNeeds tells what the fold has to see.
func BenchmarkNeeds(b *testing.B) {
	m := NewModels()
	commits := turns(b, 256)
	n := 0
	b.ReportAllocs()
	for b.Loop() {
		for _, c := range commits {
			m.Needs(c, AllKinds, func(Place) any { return nil }, func(Need) { n++ })
		}
	}
	perCommit(b, len(commits))
}

func perCommit(b *testing.B, commits int) {
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*commits), "µs/commit")
}
