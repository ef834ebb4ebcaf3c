package thread

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"unsafe"

	"github.com/skein-threads/skein/events"
)

// What states are said to take is what they take, of short threads and of long
// ones: the bound of the cache is one of memory.
func TestBytes_MatchTheHeap(t *testing.T) {
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

// heap returns the bytes in use.
func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// Each entry takes what it leads to: its texts in steps of 16 bytes, its content as
// it is, and its lists.
func TestBytes_OfEntries(t *testing.T) {
	run, item, q := int64(unsafe.Sizeof(runState{})), raw(`{"a":1}`), int64(unsafe.Sizeof(queued{}))
	for name, c := range map[string]struct{ got, want int64 }{
		"a context":            {contextState{Key: "k", Type: strings.Repeat("t", 17), Content: item}.size(), 16 + 32 + 7},
		"an item":              {itemState{Calls: []string{"a", "b"}}.Size(), 2 * 48},
		"an execution":         {executionState{Trigger: "t", Reaction: strings.Repeat("r", 17)}.Size(), 16 + 32},
		"a run":                {executionState{Run: &runState{}}.Size(), run},
		"a run with its lists": {executionState{Run: &runState{Calls: make([]callState, 1), First: make([]ToolCall, 2), Missing: make([]events.WaitFor, 4)}}.Size(), run + 700},
		"a step":               {stepState{Parts: partSet{More: []int64{3, 5}}}.Size(), 16},
		"a file":               {fileState{Digest: make([]byte, 32)}.size(), 32},
		"an effect":            {effectState{Cron: "@hourly"}.size(), 16},
		"a definition":         {definitionState{Digest: "d", Refs: []string{"a", strings.Repeat("b", 17)}}.size(), 16 + (16 + 16) + (32 + 16)},
		"what waits":           {queued{Item: item, Execution: "e", Reaction: strings.Repeat("r", 17)}.size(), q + 7 + 16 + 32},
	} {
		if c.got != c.want {
			t.Errorf("%s takes %d bytes, want %d", name, c.got, c.want)
		}
	}
}

// What a state takes is the sum of what it takes of each kind.
func TestBytes_AddUp(t *testing.T) {
	empty := (&State{}).Bytes()
	kinds := []func(*State){
		func(s *State) { s.setContext("c", contextState{Key: "k"}) }, func(s *State) { s.setItem("i", itemState{}) },
		func(s *State) { s.setExecution("e", executionState{}) }, func(s *State) { s.setStep("s", stepState{}) },
		func(s *State) { s.setFile("/f", fileState{}) }, func(s *State) { s.setEffect("x", effectState{}) },
		func(s *State) { s.setDefinition("tool/t", definitionState{}) }, func(s *State) { s.receipts.add("cmd", "digest", 1, dawn) },
	}
	all, sum := &State{}, empty
	for i, set := range kinds {
		var one State
		set(&one)
		set(all)
		if one.Bytes() <= empty {
			t.Errorf("kind %d takes nothing", i)
		}
		sum += one.Bytes() - empty
	}
	if got := all.Bytes(); got != sum {
		t.Errorf("together they take %d bytes, want %d", got, sum)
	}
}

// What a run is given counts with its text, list by list.
func TestSize_OfSettings(t *testing.T) {
	long := strings.Repeat("x", 1600)
	none := settingsSize(&events.RunSettings{})
	if settingsSize(nil) != 0 || none != int64(unsafe.Sizeof(events.RunSettings{})) {
		t.Errorf("no settings take %d bytes, empty ones %d", settingsSize(nil), none)
	}
	tool := int64(unsafe.Sizeof(events.CallerTool{}))
	for name, c := range map[string]struct {
		of   events.RunSettings
		want int64
	}{
		"instructions": {events.RunSettings{Instructions: long}, 1600},
		"params":       {events.RunSettings{Params: raw(long)}, 1600},
		"metadata":     {events.RunSettings{Metadata: raw(long)}, 1600},
		"all three":    {events.RunSettings{Instructions: long, Params: raw(long), Metadata: raw(long)}, 4800},
		"a tool":       {events.RunSettings{Tools: []events.CallerTool{{Name: long, Description: long, Parameters: raw(long)}}}, tool + 4800},
		"two tools":    {events.RunSettings{Tools: []events.CallerTool{{Name: long}, {Name: long}}}, 2*tool + 3200},
	} {
		if got := settingsSize(&c.of) - none; got != c.want {
			t.Errorf("%s take %d bytes, not %d", name, got, c.want)
		}
	}
	bare, full := runState{}, runState{Handoff: &events.Handoff{ThreadID: long, AgentID: long, Key: long, Comment: long}}
	if got := (executionState{Run: &full}).Size() - (executionState{Run: &bare}).Size(); got != int64(unsafe.Sizeof(events.Handoff{}))+6400 {
		t.Errorf("a handoff takes %d bytes", got)
	}
	if got := (executionState{Trigger: long, Reaction: long, Session: long}).Size(); got != 4800 {
		t.Errorf("three names take %d bytes", got)
	}
	empty := queued{}
	if got := (queued{Item: raw(long), Execution: long, Reaction: long, Session: long, Settings: &events.RunSettings{}}).size() - empty.size(); got != 6400+none {
		t.Errorf("what waits takes %d bytes", got)
	}
}
