package runtime

import (
	"context"
	"sync"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/skein-threads/skein/events"
)

// announced holds the calls whose input the stream of this claim shows: a
// reactor that streams shows them itself.
type announced struct {
	mu    sync.Mutex
	calls map[string]bool
}

// note notes a call. It reports whether the call was new.
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

// streamed notes the call whose input a reactor's chunk shows, if it does.
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

// announce streams the input of a call that nobody has streamed yet: the
// reactor may not stream, and a caller may have queued the call.
func (t *turn) announce(step, call, tool string, input events.JSON) {
	if !t.announced.note(call) {
		return
	}
	if input == nil {
		input = events.JSON("{}")
	}
	t.emit(step, Chunk{Type: ChunkToolInput, Data: object("toolCallId", call, "toolName", tool, "input", input)})
}

// announceCalls announces those of the open step's calls that are not done and
// that no claim before has streamed.
func (t *turn) announceCalls() {
	for _, c := range t.run.Calls {
		if !c.Done && !c.Granted && !c.Denied {
			t.announce(t.run.StepID, c.CallID, c.Name, t.arguments(c))
		}
	}
}

// came streams what came of a call, and returns it. Every call comes to
// something, also one that was not made.
func (t *turn) came(step string, e ended) ended {
	if e.result.Status == Success {
		t.emit(step, Chunk{Type: ChunkToolOutput, Data: object("toolCallId", e.call.CallID, "output", e.result.Result)})
	} else {
		t.emit(step, Chunk{Type: ChunkToolError, Data: object("toolCallId", e.call.CallID, "errorText", e.result.Error)})
	}
	return e
}

// ping streams every now and then that the run is alive, until stop is called.
// Something that takes long may stream nothing for minutes.
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
