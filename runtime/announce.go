package runtime

import (
	"context"
	"sync"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/skein-threads/skein/events"
)

// announced holds the calls with an input that was already streamed in this claim. A streaming
// reactor may have streamed it.
type announced struct {
	mu    sync.Mutex
	calls map[string]bool
}

// note records a call. It reports whether the call was new.
func (a *announced) note(call string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.calls[call] {
		return false
	}
	if a.calls == nil {
		a.calls = map[string]bool{}
	}
	a.calls[call] = true
	return true
}

// streamed records the call if a reactor's chunk shows a call's input.
func (a *announced) streamed(c Chunk) {
	if c.Type != ChunkToolInput {
		return
	}
	var d struct {
		ToolCallID string `json:"toolCallId"`
	}
	if json.Unmarshal(c.Data, &d) == nil {
		a.note(d.ToolCallID)
	}
}

// announce streams the input of a call unless it was streamed already. It was not if the reactor
// does not stream, or if a caller has queued the call.
func (t *turn) announce(step, call, tool string, input events.JSON) {
	if !t.announced.note(call) {
		return
	}
	if input == nil {
		input = events.JSON("{}")
	}
	t.emit(step, Chunk{Type: ChunkToolInput, Data: object("toolCallId", call, "toolName", tool, "input", input)})
}

// announceCalls announces the open step's calls that are not finished and that no
// earlier claim has streamed.
func (t stepCalls) announceCalls() {
	for _, c := range t.run.Calls {
		if !c.Done && !c.Granted && !c.Denied && !c.Ended {
			t.announce(t.run.StepID, c.CallID, c.Name, t.arguments(c))
		}
	}
}

// streamOutcome streams the outcome of a call, and returns it. Every call has an outcome, even
// one that was not made.
func (t stepCalls) streamOutcome(step string, e callOutcome) callOutcome {
	if e.result.Status == Success {
		t.emit(step, Chunk{Type: ChunkToolOutput, Data: object("toolCallId", e.call.CallID, "output", e.result.Result)})
	} else {
		t.emit(step, Chunk{Type: ChunkToolError, Data: object("toolCallId", e.call.CallID, "errorText", e.result.Error)})
	}
	return e
}

// ping streams a ping at intervals, until stop is called: long work may stream nothing
// for minutes.
func (t *turn) ping() (stop func()) {
	ctx, cancel := context.WithCancel(t.ctx)
	var running sync.WaitGroup
	running.Go(func() {
		every := time.NewTicker(t.w.cfg.Ping)
		defer every.Stop()
		for {
			select {
			case now := <-every.C:
				t.emit("", Chunk{Type: ChunkThreadPing, Data: object("at", events.TimeOf(now).String())})
			case <-ctx.Done():
				return
			}
		}
	})
	return func() {
		cancel()
		running.Wait()
	}
}
