package thread

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/skein-threads/skein/events"
)

// What states are said to take is what they take, of short threads and of long
// ones: the bound of the cache is one of memory.
func TestBytesAreMemory(t *testing.T) {
	for _, c := range []struct{ turns, states int }{{0, 1000}, {1, 500}, {12, 100}, {50, 40}} {
		k := newStory(t)
		k.do(events.CreateThread{})
		for i := range c.turns {
			id := fmt.Sprintf("%s_%04d_of_many_that_are_as_long", "turn", i)
			k.do(
				message("itm_u"+id, "x"),
				events.CreateExecution{ID: "exe_" + id, TriggerItemID: "itm_u" + id, ReactionItemID: "itm_a" + id},
				events.CreateStep{ID: "stp_" + id, ExecutionID: "exe_" + id},
			)
			k.do(message("itm_x"+id, "x"), message("itm_r"+id, "x"), message("itm_a"+id, "x"))
			k.do(
				events.SetStepStatus{StepID: "stp_" + id, To: events.StepCompleted},
				events.SetExecutionStatus{ExecutionID: "exe_" + id, To: events.ExecutionCompleted},
			)
		}
		raw := encoded(t, k.state)
		states := make([]*State, c.states)
		before := heap()
		for i := range states {
			var err error
			if states[i], err = DecodeState(raw); err != nil {
				t.Fatal(err)
			}
		}
		took := float64(heap()-before) / float64(c.states)
		said := float64(states[0].Bytes())
		t.Logf("a thread of %d turns takes %.0f bytes, and is said to take %.0f", c.turns, took, said)
		if said < took*0.75 || said > took*1.5 {
			t.Errorf("a thread of %d turns takes %.0f bytes, and is said to take %.0f", c.turns, took, said)
		}
		runtime.KeepAlive(states)
	}
}

// heap gives how much is in use.
func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
