package chat_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/skein-threads/skein/api/chat"
	"github.com/skein-threads/skein/events"
)

// The inputs of a Renderer, for the run exe_1 and its steps stp_N.

func event(subject string, data any) *events.Event {
	return &events.Event{Subject: subject, Correlation: "exe_1", Data: data}
}

func stepCreated(id string, n int64) *events.Event {
	return event(id, events.StepCreated{ID: id, ExecutionID: "exe_1", Iteration: n, EventID: "itm_a", Status: events.StepRunning})
}

func stepDone(id string) *events.Event {
	return event(id, events.StepStatusChanged{ExecutionID: "exe_1", From: events.StepRunning, To: events.StepCompleted})
}

func part(step string, idx int64, raw string) *events.Event {
	key := events.PartKey(step, idx)
	return event(key, events.PartCreated{Key: key, StepID: step, Idx: idx, Part: events.JSON(raw)})
}

func updated(step string, idx int64, raw string) *events.Event {
	key := events.PartKey(step, idx)
	return event(key, events.PartUpdated{Key: key, StepID: step, Idx: idx, Part: events.JSON(raw)})
}

func ended(status events.ExecutionStatus) *events.Event {
	return event("T-1", events.ThreadFinished{ExecutionID: "exe_1", Status: status})
}

func failed(why string) *events.Event {
	return event("exe_1", events.ExecutionStatusChanged{From: events.Executing, To: events.ExecutionFailed, ErrorText: why})
}

func chunk(step string, attempt int64, kind, data string) *events.ChunkEmitted {
	return &events.ChunkEmitted{ExecutionID: "exe_1", StepID: step, Attempt: attempt, Type: kind, Data: events.JSON(data)}
}

func delta(step string, attempt int64, id, said string) *events.ChunkEmitted {
	return chunk(step, attempt, events.ChunkTextDelta, `{"id":"`+id+`","delta":"`+said+`"}`)
}

func finish(reason string) *events.ChunkEmitted {
	return chunk("", 1, events.ChunkFinish, `{"finishReason":"`+reason+`"}`)
}

// play hands the inputs to a Renderer as a stream does: a chunk that it does not take yet waits
// for the next event, and so do those after it. pick says whether an event is next.
func play(t testing.TB, list []any, pick func() bool) (*chat.Renderer, []chat.Chunk) {
	t.Helper()
	r := chat.NewRenderer(chat.Run{ThreadID: "T-1", ExecutionID: "exe_1", MessageID: "itm_a"})
	out := r.Start()
	var told []*events.Event
	var chunks []*events.ChunkEmitted
	for _, in := range list {
		switch in := in.(type) {
		case *events.Event:
			told = append(told, in)
		case *events.ChunkEmitted:
			chunks = append(chunks, in)
		}
	}
	if pick == nil { // in the order of the list: an event is next if it stands before the next chunk
		pick = func() bool {
			for _, in := range list {
				if in == any(told[0]) {
					return true
				}
				if in == any(chunks[0]) {
					return false
				}
			}
			return true
		}
	}
	for len(told)+len(chunks) > 0 && !r.Ended() {
		takes := len(chunks) > 0 && r.Takes(chunks[0])
		if len(told) > 0 && (!takes || pick()) {
			out = append(out, r.Event(told[0])...)
			told = told[1:]
		} else if takes {
			out = append(out, r.Chunk(chunks[0])...)
			chunks = chunks[1:]
		} else {
			t.Fatalf("nothing can be taken; %d chunks are left", len(chunks))
		}
	}
	return r, out
}

const toolC1 = `{"type":"tool-find","toolCallId":"c1","input":{"q":1}`

func TestRenderer_Messages(t *testing.T) {
	for name, c := range map[string]struct {
		inputs []any
		want   string // the message
		kinds  string // the chunks after start, if they matter
		end    string
	}{
		"nothing is streamed": {
			[]any{stepCreated("stp_1", 0), part("stp_1", 0, `{"type":"output_text","text":"hi"}`), stepDone("stp_1"), ended("completed"), finish("stop")},
			"step | text=hi", "start-step text-start text-delta text-end finish-step finish", "stop",
		},
		"all is streamed": {
			[]any{
				stepCreated("stp_1", 0), delta("stp_1", 1, "a", "h"), delta("stp_1", 1, "a", "i"), part("stp_1", 0, `{"type":"output_text","text":"hi"}`),
				stepDone("stp_1"), ended("completed"), finish("length"),
			},
			"step | text=hi", "start-step text-start text-delta text-delta text-end finish-step finish", "length",
		},
		"chunks come late": {
			[]any{
				stepCreated("stp_1", 0), delta("stp_1", 1, "a", "h"), part("stp_1", 0, `{"type":"output_text","text":"hi"}`), delta("stp_1", 1, "a", "i"),
				stepDone("stp_1"), stepCreated("stp_2", 1), delta("stp_1", 1, "a", "!"), part("stp_2", 0, `{"type":"output_text","text":"ho"}`), stepDone("stp_2"),
				ended("completed"), finish("stop"),
			},
			"step | text=hi | step | text=ho", "", "stop",
		},
		"a retry says the same": {
			[]any{
				stepCreated("stp_1", 0), delta("stp_1", 1, "a", "hel"), chunk("stp_1", 1, events.ChunkContextSubstate, `{"substate":"retrying"}`),
				delta("stp_1", 1, "b", "he"), delta("stp_1", 1, "b", "llo"), part("stp_1", 0, `{"type":"output_text","text":"hello"}`), stepDone("stp_1"),
				ended("completed"), finish("stop"),
			},
			"step | text=hello", "start-step text-start text-delta text-delta text-end finish-step finish", "stop",
		},
		"another worker says something else": {
			[]any{
				stepCreated("stp_1", 0), delta("stp_1", 1, "a", "hello"), delta("stp_1", 2, "a", "good"), delta("stp_1", 2, "a", " day"),
				part("stp_1", 0, `{"type":"output_text","text":"good day"}`), stepDone("stp_1"), ended("completed"), finish("stop"),
			},
			"step | text=good day", "start-step text-start text-delta reset-step text-start text-delta text-delta text-end finish-step finish", "stop",
		},
		"the part is not what was streamed": {
			[]any{
				stepCreated("stp_1", 0), chunk("stp_1", 1, events.ChunkToolInputStart, `{"toolCallId":"c1","toolName":"find"}`), delta("stp_1", 1, "a", "hello"),
				part("stp_1", 0, toolC1+`}`), part("stp_1", 1, `{"type":"output_text","text":"bye"}`),
				updated("stp_1", 0, toolC1+`,"state":"output-error","errorText":"none"}`), stepDone("stp_1"), ended("completed"), finish("stop"),
			},
			"step | tool-find=none(output-error) | text=bye", "", "stop",
		},
		"an interrupted step keeps all that was streamed": {
			[]any{
				stepCreated("stp_1", 0), delta("stp_1", 1, "a", "one "), delta("stp_1", 1, "b", "two"),
				event("exe_1", events.RunStopped{Abort: true}), part("stp_1", 0, `{"type":"output_text","text":"one two","interrupted":true}`), failed("aborted"),
				ended("failed"), finish("error"),
			},
			"step | text=one  | text=two", "start-step text-start text-delta text-start text-delta text-end text-end finish-step abort finish", "other",
		},
		"reasoning": {
			[]any{
				stepCreated("stp_1", 0), chunk("stp_1", 1, events.ChunkReasoningDelta, `{"id":"r","delta":"so"}`), delta("stp_1", 1, "a", "hi"),
				part("stp_1", 0, `{"type":"reasoning","summary":[{"type":"summary_text","text":"so it is"}]}`), part("stp_1", 1, `{"type":"output_text","text":"hi"}`),
				part("stp_1", 2, `{"type":"reasoning","encrypted_content":"x"}`), stepDone("stp_1"), ended("completed"), finish("stop"),
			},
			"step | reasoning=so it is | text=hi", "", "stop",
		},
		"a reasoning ends when something else begins": {
			[]any{
				stepCreated("stp_1", 0), chunk("stp_1", 1, events.ChunkReasoningDelta, `{"id":"r","delta":"so"}`), delta("stp_1", 1, "a", "hi"), delta("stp_1", 1, "a", " you"),
				part("stp_1", 0, `{"type":"reasoning","summary":[{"type":"summary_text","text":"so"}]}`), part("stp_1", 1, `{"type":"output_text","text":"hi you"}`),
				stepDone("stp_1"), ended("completed"), finish("stop"),
			},
			"step | reasoning=so | text=hi you", "start-step reasoning-start reasoning-delta reasoning-end text-start text-delta text-delta text-end finish-step finish", "stop",
		},
		"a reasoning ends when its reactor says so": {
			[]any{
				stepCreated("stp_1", 0), chunk("stp_1", 1, events.ChunkReasoningDelta, `{"id":"r","delta":"so"}`), chunk("stp_1", 1, events.ChunkReasoningEnd, `{"id":"r","encryptedContent":"x"}`),
				chunk("stp_1", 1, events.ChunkToolInputStart, `{"toolCallId":"c1","toolName":"find"}`), part("stp_1", 0, `{"type":"reasoning","summary":[{"type":"summary_text","text":"so"}]}`),
				part("stp_1", 1, toolC1+`}`), stepDone("stp_1"), ended("completed"), finish("stop"),
			},
			"step | reasoning=so | tool-find(input-available)", "start-step reasoning-start reasoning-delta reasoning-end tool-input-start tool-input-available finish-step finish", "stop",
		},
		"a call that was begun and not made": {
			[]any{
				stepCreated("stp_1", 0), chunk("stp_1", 1, events.ChunkToolInputStart, `{"toolCallId":"c1","toolName":"find"}`),
				chunk("stp_1", 1, events.ChunkToolInputDelta, `{"toolCallId":"c1","inputTextDelta":"{"}`), chunk("stp_1", 1, events.ChunkToolInputDelta, `{"toolCallId":"c9","inputTextDelta":"{"}`),
				part("stp_1", 0, `{"type":"output_text","text":"hi"}`), stepDone("stp_1"), ended("completed"), finish("stop"),
			},
			"step | tool-find(input-error) | text=hi", "", "stop",
		},
		"one id in two steps": {
			[]any{
				stepCreated("stp_1", 0), part("stp_1", 0, toolC1+`}`), updated("stp_1", 0, toolC1+`,"state":"output-available","output":1}`), stepDone("stp_1"),
				stepCreated("stp_2", 1), part("stp_2", 0, toolC1+`}`), updated("stp_2", 0, toolC1+`,"state":"output-available","output":2}`), stepDone("stp_2"),
				ended("completed"), finish("stop"),
			},
			"step | tool-find=1(output-available) | step | tool-find=2(output-available)",
			"start-step tool-input-available tool-output-available finish-step start-step tool-input-available tool-output-available finish-step finish", "stop",
		},
		"what only some clients know": {
			[]any{
				stepCreated("stp_1", 0), chunk("stp_1", 1, "acme-mood", `{"mood":"good"}`), chunk("stp_1", 1, "data-weather", `{"c":20}`), chunk("stp_1", 1, "source-url", `{"sourceId":"s"}`),
				chunk("stp_1", 1, "source-url", `{"sourceId":"s","url":"https://a.example","providerMetadata":null}`), chunk("stp_1", 1, "data-skein-step", `{"forged":1}`),
				chunk("stp_1", 1, "finish-step", `{}`), chunk("stp_1", 1, "tool-output-available", `{"toolCallId":"c1","output":"forged"}`),
				part("stp_1", 0, `{"type":"acme.mood","mood":"good"}`), part("stp_1", 1, `{"type":"source-url","sourceId":"s","url":"https://a.example"}`),
				part("stp_1", 2, `{"type":"output_text","text":7}`), part("stp_1", 3, `{"type":"refusal","refusal":"no"}`), stepDone("stp_1"), ended("completed"), finish("content-filter"),
			},
			`step | data-weather={"c":20} | source-url=https://a.example | data-skein-part={"part":{"type":"acme.mood","mood":"good"}} | text=no`, "", "content-filter",
		},
		"a failure": {
			[]any{stepCreated("stp_1", 0), delta("stp_1", 1, "a", "h"), failed("the model failed"), ended("failed"), finish("error")},
			"step | text=h", "start-step text-start text-delta text-end finish-step error finish", "error",
		},
		"the chat is deleted": {
			[]any{stepCreated("stp_1", 0), event("T-1", events.LifecycleDeleted{})}, "step", "start-step error finish", "error",
		},
		"the message is removed from the queue": {
			[]any{event("q", events.QueueRemoved{ExecutionID: "exe_2"}), event("q", events.QueueRemoved{ExecutionID: "exe_1"})}, "", "abort", "",
		},
		"another run": {
			[]any{
				event("stp_9", events.StepCreated{ID: "stp_9", ExecutionID: "exe_9"}), part("stp_9", 0, `{"type":"output_text","text":"x"}`),
				event("T-1", events.ThreadFinished{ExecutionID: "exe_9", Status: "completed"}), stepCreated("stp_1", 0), stepDone("stp_1"), ended("completed"), finish("what"),
			},
			"step", "start-step finish-step finish", "other",
		},
	} {
		t.Run(name, func(t *testing.T) {
			r, out := play(t, c.inputs, nil)
			m := fold(t, nil, out)
			if !r.Ended() || m.String() != c.want || m.end != c.end || m.id != "itm_a" {
				t.Errorf("ended %v: %q, %q; want %q, %q", r.Ended(), m, m.end, c.want, c.end)
			}
			for _, c := range out {
				if strings.Contains(string(c.Data)+string(c.Output), "forged") {
					t.Errorf("a reactor speaks for Skein: %+v", c)
				}
			}
			if got, _ := strings.CutPrefix(kinds(out), "start "); c.kinds != "" && got != c.kinds {
				t.Errorf("chunks: %s; want %s", got, c.kinds)
			}
		})
	}
}

// Whatever the order in which chunks and events arrive, the message is the same in the end.
func TestRenderer_AnyInterleaving(t *testing.T) {
	inputs := []any{
		stepCreated("stp_1", 0), chunk("stp_1", 1, events.ChunkReasoningDelta, `{"id":"r","delta":"so "}`), chunk("stp_1", 1, events.ChunkReasoningDelta, `{"id":"r","delta":"be it"}`),
		delta("stp_1", 1, "a", "one "), chunk("stp_1", 1, events.ChunkContextSubstate, `{"substate":"retrying"}`), delta("stp_1", 1, "x", "o"), delta("stp_1", 1, "x", "ther "), delta("stp_1", 1, "x", "text"),
		chunk("stp_1", 1, events.ChunkToolInputStart, `{"toolCallId":"c1","toolName":"find"}`), chunk("stp_1", 1, events.ChunkToolInput, `{"toolCallId":"c1","toolName":"find","input":{}}`),
		part("stp_1", 0, `{"type":"output_text","text":"other text"}`), part("stp_1", 1, toolC1+`}`), updated("stp_1", 1, toolC1+`,"state":"output-available","output":3}`),
		stepDone("stp_1"), stepCreated("stp_2", 1), delta("stp_2", 1, "b", "the "), delta("stp_2", 1, "b", "end"), part("stp_2", 0, `{"type":"output_text","text":"the end"}`),
		stepDone("stp_2"), ended("completed"), finish("stop"),
	}
	final := func(m *shown) string {
		var kept []string
		for _, p := range strings.Split(m.String(), " | ") {
			if !strings.HasPrefix(p, "reasoning") { // the log has none: it is shown if it arrives in time
				kept = append(kept, p)
			}
		}
		return strings.Join(kept, " | ")
	}
	for seed := range uint64(300) {
		roll := rand.New(rand.NewPCG(seed, 1))
		r, out := play(t, inputs, func() bool { return roll.IntN(3) == 0 })
		m := fold(t, nil, out)
		got := final(m)
		const want, early = "step | text=other text | tool-find=3(output-available) | step | text=the end", "step | tool-find=3(output-available) | text=other text | step | text=the end"
		if !r.Ended() || got != want && got != early || m.end != "stop" {
			t.Fatalf("seed %d: %s, %s\n%s", seed, m, m.end, kinds(out))
		}
	}
}

// A client of version 6 keeps what a step has shown, and is shown what another worker says after it.
func TestRenderer_KeepsWhatCannotBeTakenBack(t *testing.T) {
	r := chat.NewRenderer(chat.Run{ThreadID: "T-1", ExecutionID: "exe_1", MessageID: "itm_a"})
	r.AppendOnly()
	out := r.Start()
	out = append(out, r.Event(stepCreated("stp_1", 0))...)
	out = append(out, r.Chunk(delta("stp_1", 1, "a", "hello"))...)
	out = append(out, r.Chunk(chunk("stp_1", 1, events.ChunkToolInputStart, `{"toolCallId":"c1","toolName":"find"}`))...)
	out = append(out, r.Chunk(delta("stp_1", 2, "a", "good day"))...)
	out = append(out, r.Event(part("stp_1", 0, `{"type":"output_text","text":"good day"}`))...)
	out = append(out, r.Event(part("stp_1", 1, toolC1+`}`))...)
	out = append(out, r.Event(stepDone("stp_1"))...)
	if m := fold(t, nil, out); m.String() != "step | text=hello | tool-find(input-available) | text=good day" || strings.Contains(kinds(out), "reset-step") {
		t.Errorf("it is shown %s, as %s", m, kinds(out))
	}
}

// A client has answered two calls, one command each, and between the two the run waited for the
// second one again: the stream goes on.
func TestRenderer_AnsweredCallStillWaits(t *testing.T) {
	r := chat.NewRenderer(chat.Run{ThreadID: "T-1", ExecutionID: "exe_1", MessageID: "itm_a"})
	r.ResumeAfter([]string{"c1", "c2"})
	parked := func(calls ...string) *events.Event { return event("exe_1", events.RunParked{Calls: calls}) }
	var out []chat.Chunk
	for _, e := range []*events.Event{
		stepCreated("stp_1", 0),
		part("stp_1", 0, toolC1+`}`), part("stp_1", 1, `{"type":"tool-find","toolCallId":"c2","input":{"q":2}}`),
		event("c1", events.ApprovalRequested{CallID: "c1"}), event("c2", events.ApprovalRequested{CallID: "c2"}),
		parked("c1", "c2"),
		event("c1", events.ApprovalGranted{CallID: "c1"}),
		parked("c2"),
	} {
		out = append(out, r.Event(e)...)
		if r.Waiting() || r.Ended() {
			t.Fatalf("over after %T %+v: %s", e.Data, e.Data, kinds(out))
		}
	}
	r.Event(event("c2", events.ApprovalGranted{CallID: "c2"}))
	r.Event(event("c2", events.ApprovalRequested{CallID: "c2", Reason: events.ApprovalMayHaveRun}))
	if r.Event(parked("c2")); !r.Waiting() {
		t.Error("what waits after all answers does not end the stream")
	}
}

// A chunk that arrives before the event that begins its step waits for it, and so does the end.
func TestRenderer_HoldsWhatComesEarly(t *testing.T) {
	r := chat.NewRenderer(chat.Run{ThreadID: "T-1", ExecutionID: "exe_1", MessageID: "itm_a"})
	early := delta("stp_1", 1, "a", "hi")
	if r.Takes(early) {
		t.Error("a delta is taken before its step")
	}
	r.Event(stepCreated("stp_1", 0))
	if !r.Takes(early) || kinds(r.Chunk(early)) != "text-start text-delta" {
		t.Error("a delta of the open step is not shown")
	}
	if r.Takes(finish("stop")) {
		t.Error("the end is taken before its event")
	}
	r.Event(ended("completed"))
	if !r.Takes(finish("stop")) {
		t.Error("the end is not taken")
	}
}
