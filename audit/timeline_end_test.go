package audit

import (
	"slices"
	"testing"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/skein-threads/skein/eventlog/timeline"
)

// What is missing from the ends of the timeline is found, whether or not a relay
// goes on behind it.
func TestVerify_TimelineHolesAtItsEnds(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	for i := range 3 {
		h.fill("T-0190a000-0000-7000-8000-00000000001" + string(rune('0'+i)))
	}
	h.stopRelay()
	stream, err := h.log.JetStream().Stream(h.ctx, "SKEIN_TIMELINE")
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name string
		cut  func(first, last uint64) error
		seqs []uint64 // of the first findings
	}{
		{"first", func(first, _ uint64) error { return stream.DeleteMsg(h.ctx, first) }, []uint64{1}},
		{"first ten", func(first, _ uint64) error { return stream.Purge(h.ctx, jetstream.WithPurgeSequence(first+10)) }, []uint64{1, 2, 3}},
		{"last", func(_, last uint64) error { return stream.DeleteMsg(h.ctx, last) }, []uint64{27}},
		{"last twelve", func(_, last uint64) error {
			for seq := last - 11; seq <= last; seq++ {
				if err := stream.DeleteMsg(h.ctx, seq); err != nil {
					return err
				}
			}
			return nil
		}, []uint64{17}},
		{"all", func(uint64, uint64) error { return stream.Purge(h.ctx) }, []uint64{1}},
		{"all but the last", func(_, last uint64) error { return stream.Purge(h.ctx, jetstream.WithPurgeSequence(last)) }, []uint64{1, 2}},
		{"first and last", func(first, last uint64) error {
			if err := stream.DeleteMsg(h.ctx, first); err != nil {
				return err
			}
			return stream.DeleteMsg(h.ctx, last)
		}, []uint64{27, 1}},
	} {
		if err := timeline.Of(h.log).Rebuild(h.ctx); err != nil {
			t.Fatal(err)
		}
		if found, _ := h.verify(Options{}); len(found) != 0 {
			t.Fatalf("before: %v", found)
		}
		info, err := stream.Info(h.ctx)
		if err != nil {
			t.Fatal(err)
		}
		if err := tt.cut(info.State.FirstSeq, info.State.LastSeq); err != nil {
			t.Fatal(err)
		}
		found, _ := h.verify(Options{})
		var seqs []uint64
		for _, f := range found {
			if f.Kind != KindTimeline {
				t.Errorf("%s: %v", tt.name, f)
			}
			seqs = append(seqs, f.Seq)
		}
		if len(seqs) < len(tt.seqs) || !slices.Equal(seqs[:len(tt.seqs)], tt.seqs) {
			t.Errorf("%s: findings at %v, want %v first: %v", tt.name, seqs, tt.seqs, found)
		}
	}
}
