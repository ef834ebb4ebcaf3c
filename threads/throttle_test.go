package threads

import (
	"slices"
	"testing"
	"time"
)

// The first value comes at once; of those within a pause the last comes at its end, and none
// that was the last is lost.
func TestThrottle_LeadingAndTrailing(t *testing.T) { // AM-68 AM-108
	in, pauses, out := make(chan int), make(chan chan time.Time), make(chan int)
	done := make(chan struct{})
	go func() {
		defer close(done)
		throttle(in, func(d time.Duration) <-chan time.Time {
			if d != 100*time.Millisecond {
				t.Errorf("it pauses for %v", d)
			}
			c := make(chan time.Time)
			pauses <- c
			return c
		}, func(v int) bool { out <- v; return true })
	}()
	expect := func(want int) chan time.Time {
		t.Helper()
		if got := <-out; got != want {
			t.Fatalf("it passes %d, want %d", got, want)
		}
		return <-pauses
	}
	in <- 1
	pause := expect(1)
	in <- 2
	in <- 3
	pause <- time.Time{}
	pause = expect(3)
	pause <- time.Time{} // nothing waits
	in <- 4
	expect(4)
	in <- 5
	in <- 6
	close(in)
	if got := <-out; got != 6 {
		t.Errorf("at the end it passes %d, want 6", got)
	}
	<-done
}

func TestThrottle_ReaderLeaves(t *testing.T) {
	in := make(chan int, 1)
	in <- 1
	throttle(in, func(time.Duration) <-chan time.Time { t.Error("it pauses"); return nil }, func(int) bool { return false })
}

func TestDiff(t *testing.T) {
	from := &Thread{ID: "T-1", Title: "a", Draft: "b/~", Messages: []Message{UserMessage("x"), UserMessage("y")}}
	to := clone(from)
	to.Title, to.Draft, to.V, to.Messages = "", "c", 1, append(to.Messages[:1:1], UserMessage("z"), AssistantMessage("w"))
	var got []string
	for _, p := range Diff(from, to) {
		got = append(got, p.Op+" "+p.Path+" "+string(p.Value))
	}
	want := []string{
		`replace /draft "c"`, `replace /messages/1/content/0/text "z"`,
		`add /messages/2 {"content":[{"text":"w","type":"text"}],"role":"assistant"}`, `remove /title `, `replace /v 1`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("the patches are\n%q, want\n%q", got, want)
	}
	if same := Diff(from, clone(from)); len(same) != 0 {
		t.Errorf("a copy differs by %v", same)
	}
}
