package thread

import (
	"testing"

	"github.com/skein-threads/skein/events"
)

// SA-75: an attempt that nobody took does not count: it is made again after a pause
// that doubles up to five minutes, and counts only when a day has passed.
func TestFailEffect_NotAccepted(t *testing.T) {
	k := begun(t)
	k.do(events.ScheduleEffect{ID: effectID, Name: "remind", Retries: to(int64(0)), BackoffMs: to(int64(10))})
	due := k.now
	began := due
	for i, pause := range []int64{1000, 2000, 4000, 8000, 16000, 32000, 64000, 128000, 256000, 300000, 300000} {
		made, err := k.start(due, StartEffect{Firing: 1, Attempt: 1, Claim: uint64(claim + i)})
		if err != nil {
			t.Fatal(err)
		}
		if d := made[0].Data.(events.EffectStarted); d.Attempt != 1 {
			t.Fatalf("put off %d times it is attempt %d", i, d.Attempt)
		}
		d := k.do(FailEffect{ID: effectID, Firing: 1, Attempt: 1, ErrorText: "nobody is there", NotMade: true})[0].Data.(events.EffectFailed)
		due = k.now + events.Time(pause)*1000
		if !d.NotMade || d.Final || d.Next != due.String() {
			t.Fatalf("put off %d times: %+v, want it at %s", i, d, due)
		}
	}
	if _, err := k.start(due, StartEffect{Firing: 1, Attempt: 2, Claim: 99}); err == nil {
		t.Error("an attempt was used up")
	}
	if _, err := k.start(began+day-1000, StartEffect{Firing: 1, Attempt: 1, Claim: 100}); err != nil {
		t.Fatal(err)
	}
	d := k.do(FailEffect{ID: effectID, Firing: 1, Attempt: 1, ErrorText: "nobody is there", NotMade: true})[0].Data.(events.EffectFailed)
	if d.NotMade || !d.Final || k.state.Effects != 0 {
		t.Errorf("after a day: %+v, %d pending", d, k.state.Effects)
	}
}
