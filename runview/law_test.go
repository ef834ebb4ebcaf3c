package runview_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/runview"
)

// The frames of a run that is read live, from the log, and from any position agree.
func TestView_OneContentHoweverARunIsRead(t *testing.T) {
	shortest, failed := "", 0
	for seed := range uint64(3000) {
		r := generate(seed)
		if why := law(r.events, r.chunks, r.pauses, seed); why != "" {
			failed++
			if text := fmt.Sprintf("seed %d: %s\n%s", seed, why, r); shortest == "" || len(text) < len(shortest) {
				shortest = text
			}
		}
	}
	if failed > 0 {
		t.Errorf("%d runs break the law; the shortest is %s", failed, shortest)
	}
}

// law returns what breaks the law of a run, "" if nothing does.
func law(list []*events.Event, chunks []*events.ChunkEmitted, pauses []pause, seed uint64) string {
	log, err := read(runview.New(execution), list, nil, 0, nil)
	if err != nil {
		return "from the log: " + err.Error()
	}
	roll := rand.New(rand.NewPCG(seed, 11))
	for _, eager := range []int{0, 1, 3, 12} { // the higher, the more chunks come before events
		pick := func() bool { return eager == 0 || roll.IntN(eager) == 0 }
		whole := runview.New(execution)
		whole.WholeAttempts()
		for _, v := range []*runview.View{runview.New(execution), whole} {
			live, err := read(v, list, chunks, 0, pick)
			if err != nil || live.String() != log.String() {
				return fmt.Sprintf("live, %d: %v\n%s\nand from the log\n%s", eager, err, live, log)
			}
		}
		for range 3 {
			early := 1 + roll.IntN(len(list))
			resumed, err := read(runview.New(execution), list, chunks, early, pick)
			if err != nil || resumed.String() != log.String() {
				return fmt.Sprintf("resumed at %d: %v\n%s\nand from the log\n%s", early, err, resumed, log)
			}
		}
		for _, p := range pauses {
			if why := paused(list, chunks, p, pick, log); why != "" {
				return why
			}
		}
	}
	for early := range list {
		seen := &settled{}
		v := runview.New(execution)
		v.History()
		var frames []runview.Frame
		for _, e := range list[:early] {
			frames = append(frames, v.Event(e)...)
		}
		if err := seen.add(append(frames, v.Live()...)); err != nil {
			return err.Error()
		}
		shown, open := seen.waiting()
		want, questions := waiting(list[:early])
		if !slices.Equal(shown, want) {
			return fmt.Sprintf("resumed at %d, %v wait for approvals, and %v are shown", early, want, shown)
		}
		for _, id := range questions {
			if !slices.Contains(open, id) {
				return fmt.Sprintf("resumed at %d, the question of %s is not shown", early, id)
			}
		}
	}
	return ""
}

// paused reads a run up to a pause, and goes on after the answers.
func paused(list []*events.Event, chunks []*events.ChunkEmitted, p pause, pick func() bool, log *settled) string {
	v := runview.New(execution)
	seen, err := read(v, list[:p.events], chunks[:p.chunks], 0, pick)
	if err != nil || !v.Waiting() {
		return fmt.Sprintf("at the pause: %v, waiting %v", err, v.Waiting())
	}
	if err := seen.add(v.Pause()); err != nil {
		return err.Error()
	}
	next := runview.New(execution)
	next.ResumeAfter(p.calls)
	next.History()
	var frames []runview.Frame
	left := chunks
	for _, e := range list {
		for len(left) > 0 && next.Takes(left[0]) && !pick() {
			frames, left = append(frames, next.Chunk(left[0])...), left[1:]
		}
		frames = append(frames, next.Event(e)...)
	}
	frames = append(append(frames, next.Live()...), next.Finish()...)
	if err := seen.add(frames); err != nil || seen.String() != log.String() {
		return fmt.Sprintf("after the pause at %d: %v\n%s\nand from the log\n%s", p.events, err, seen, log)
	}
	return ""
}

// waiting returns the calls that wait after the events: for approvals, and for answers.
func waiting(list []*events.Event) (approvals, answers []string) {
	waits := map[string]events.ApprovalReason{}
	over := false
	for _, e := range list {
		switch d := e.Data.(type) {
		case events.ApprovalRequested:
			waits[d.CallID] = d.Reason
		case events.ApprovalGranted:
			delete(waits, d.CallID)
		case events.ApprovalDenied:
			delete(waits, d.CallID)
		case events.ApprovalResolved:
			delete(waits, d.CallID)
		case events.ThreadFinished:
			over = true
		}
	}
	for id, reason := range waits {
		switch {
		case over:
		case reason == events.ApprovalQuestion:
			answers = append(answers, id)
		default:
			approvals = append(approvals, id)
		}
	}
	slices.Sort(approvals)
	return approvals, answers
}

// String describes the inputs of a run.
func (r *run) String() string {
	var out strings.Builder
	for n, e := range r.events {
		fmt.Fprintf(&out, "event %d %T %+v\n", n, e.Data, e.Data)
	}
	for _, c := range r.chunks {
		fmt.Fprintf(&out, "chunk %s %d %s %s\n", c.StepID, c.Attempt, c.Type, c.Data)
	}
	return out.String()
}
