package runview_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/skein-threads/skein/events"
)

// run is a generated run: what its worker writes to the log, and what it streams.
type run struct {
	roll   *rand.Rand
	events []*events.Event
	chunks []*events.ChunkEmitted
	pauses []pause
	claim  int64
}

// pause is a place where the run waits for people.
type pause struct {
	events, chunks int // how many were written before
	calls          []string
}

const execution = "exe_1"

// piece is one piece of a reactor's answer.
type piece struct {
	kind   string // text, reasoning, sealed, call or data
	text   string
	id     string
	ask    events.ApprovalReason
	stream bool // it is streamed before it is recorded
}

func (r *run) event(subject string, data any) {
	r.events = append(r.events, &events.Event{ID: fmt.Sprint("e", len(r.events)), Subject: subject, Correlation: execution, Data: data})
}

func (r *run) chunk(step, kind string, data map[string]any) {
	raw, err := json.Marshal(data, json.Deterministic(true))
	if err != nil {
		panic(err)
	}
	r.chunks = append(r.chunks, &events.ChunkEmitted{ExecutionID: execution, StepID: step, Attempt: r.claim, Index: int64(len(r.chunks)), Type: kind, Data: raw})
}

// generate returns a run of one to three steps.
func generate(seed uint64) *run {
	r := &run{roll: rand.New(rand.NewPCG(seed, 7)), claim: 1}
	r.event(execution, events.ExecutionCreated{ID: execution, Status: events.Executing})
	for n := range 1 + r.roll.IntN(3) {
		if !r.step(n) {
			return r
		}
	}
	r.event("T-1", events.ThreadFinished{ExecutionID: execution, Status: events.ExecutionCompleted})
	r.chunk("", events.ChunkFinish, map[string]any{"finishReason": "stop"})
	return r
}

func (r *run) chance(of int) bool { return r.roll.IntN(of) == 0 }

// answer returns what a reactor says. Its words come from few, so that answers begin alike.
func (r *run) answer(step string) []piece {
	var list []piece
	for n := range 1 + r.roll.IntN(4) {
		p := piece{kind: []string{"text", "text", "reasoning", "sealed", "call", "data"}[r.roll.IntN(6)], id: fmt.Sprintf("%s-c%d", step, n), stream: !r.chance(4)}
		for range 1 + r.roll.IntN(3) {
			p.text += []string{"one ", "two ", "on"}[r.roll.IntN(3)]
		}
		if p.kind == "reasoning" && slices.ContainsFunc(list, func(q piece) bool { return q.kind == "reasoning" }) {
			continue // which one a text belongs to is not told
		}
		p.stream = p.stream || p.kind == "reasoning"
		if p.kind == "sealed" {
			p.text = ""
		}
		if p.kind == "call" && r.chance(2) {
			p.ask = []events.ApprovalReason{events.ApprovalManual, events.ApprovalQuestion, events.ApprovalMayHaveRun}[r.roll.IntN(3)]
		}
		list = append(list, p)
	}
	return list
}

// stream streams an answer, or its beginning.
func (r *run) stream(step string, list []piece, prefix string, whole bool) {
	for n, p := range list {
		if !whole && r.chance(3) {
			return
		}
		if !p.stream {
			continue
		}
		id := fmt.Sprint(prefix, n)
		switch p.kind {
		case "text", "reasoning":
			for rest := p.text; rest != ""; {
				size := 1 + r.roll.IntN(len(rest))
				r.chunk(step, p.kind+"-delta", map[string]any{"id": id, "delta": rest[:size]})
				rest = rest[size:]
			}
		case "call":
			r.chunk(step, events.ChunkToolInputStart, map[string]any{"toolCallId": p.id, "toolName": "find"})
			r.chunk(step, events.ChunkToolInputDelta, map[string]any{"toolCallId": p.id, "inputTextDelta": "{}"})
		case "sealed":
			r.chunk(step, events.ChunkReasoningEnd, map[string]any{"id": id, "encryptedContent": "sealed"})
		case "data":
			r.chunk(step, "data-weather", map[string]any{"c": 20})
		}
	}
}

// step generates a step, and reports whether the run goes on.
func (r *run) step(n int) bool {
	id := fmt.Sprint("stp_", n)
	r.event(id, events.StepCreated{ID: id, ExecutionID: execution, Iteration: int64(n), EventID: "itm_a", Status: events.StepRunning})
	final := r.answer(id)
	for try := 0; r.chance(2); try++ { // an attempt that fails
		said := slices.Clone(final)
		if r.chance(2) {
			for i := range said {
				if said[i].kind != "reasoning" && said[i].kind != "sealed" {
					said[i].text = "on" + said[i].text
				}
			}
		}
		r.stream(id, said, fmt.Sprint("t", try, "-"), false)
		if r.chance(2) {
			r.claim++
		} else {
			r.chunk(id, events.ChunkContextSubstate, map[string]any{"substate": "retrying"})
		}
	}
	r.stream(id, final, "f", true)
	stopped := r.chance(12) && len(kept(final)) > 0
	switch {
	case stopped:
		final = kept(final)
	case r.chance(4): // it returns something else than it has streamed
		final = r.other(final)
	}
	parts := r.record(id, final, stopped)
	if stopped {
		r.event(execution, events.RunStopped{Abort: true})
		r.event(id, events.StepStatusChanged{ExecutionID: execution, From: events.StepRunning, To: events.StepFailed})
		r.event(execution, events.ExecutionStatusChanged{From: events.Executing, To: events.ExecutionFailed, ErrorText: "stopped"})
		r.event("T-1", events.ThreadFinished{ExecutionID: execution, Status: events.ExecutionFailed})
		r.chunk("", events.ChunkFinish, map[string]any{"finishReason": "error", "errorText": "stopped"})
		return false
	}
	r.calls(id, final, parts)
	r.event(id, events.StepStatusChanged{ExecutionID: execution, From: events.StepRunning, To: events.StepCompleted})
	return true
}

// kept returns what a worker keeps of an answer that was interrupted: its texts in one, and what was
// streamed before.
func kept(list []piece) []piece {
	var out []piece
	text := ""
	for _, p := range list {
		switch {
		case p.kind == "text" && p.stream:
			text += p.text
		case p.kind == "reasoning" || p.kind == "sealed" && p.stream:
			if text != "" {
				out = append(out, piece{kind: "text", text: text})
				text = ""
			}
			out = append(out, p)
		}
	}
	if text != "" {
		out = append(out, piece{kind: "text", text: text})
	}
	return out
}

// other changes an answer: its texts, its order, or how many pieces it has.
func (r *run) other(list []piece) []piece {
	out := slices.Clone(list)
	switch r.roll.IntN(3) {
	case 0:
		for i := range out {
			if out[i].kind == "text" {
				out[i].text += "more"
			}
		}
	case 1:
		r.roll.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	default:
		if i := slices.IndexFunc(out, func(p piece) bool { return p.kind != "reasoning" && p.kind != "sealed" }); i >= 0 && len(out) > 1 {
			out = slices.Delete(out, i, i+1)
		}
	}
	return out
}

// record writes the parts of an answer, and returns those of its calls.
func (r *run) record(step string, list []piece, stopped bool) map[string]events.PartCreated {
	calls := map[string]events.PartCreated{}
	for n, p := range list {
		fields := map[string]any{}
		switch p.kind {
		case "text":
			fields["type"], fields["text"] = events.OutputText, p.text
			if stopped && n == len(list)-1 {
				fields["interrupted"] = true
			}
		case "reasoning":
			fields["type"], fields["summary"] = events.Reasoning, []map[string]string{{"type": "summary_text", "text": p.text}}
		case "sealed":
			fields["type"], fields["summary"], fields["encrypted_content"] = events.Reasoning, []any{}, "sealed"
		case "call":
			fields["type"], fields["toolCallId"], fields["input"] = events.ToolPart+"find", p.id, map[string]any{"q": p.text}
		default:
			fields["type"], fields["c"] = "acme.weather", p.text
		}
		raw, err := json.Marshal(fields, json.Deterministic(true))
		if err != nil {
			panic(err)
		}
		d := events.PartCreated{Key: events.PartKey(step, int64(n)), StepID: step, Idx: int64(n), Part: raw}
		r.event(d.Key, d)
		if p.kind == "call" {
			calls[p.id] = d
		}
	}
	return calls
}

// calls makes the calls of a step, after people were asked about some.
func (r *run) calls(step string, list []piece, parts map[string]events.PartCreated) {
	var asked []string
	denied := map[string]bool{}
	for _, p := range list {
		if p.kind == "call" && p.ask != "" {
			r.event(p.id, events.ApprovalRequested{CallID: p.id, StepID: step, Name: "find", Reason: p.ask})
			asked = append(asked, p.id)
		}
	}
	if len(asked) > 0 {
		r.event(execution, events.RunParked{Token: r.claim, Calls: asked})
		r.chunk(step, events.ChunkContextSubstate, map[string]any{"substate": "waiting"})
		r.pauses = append(r.pauses, pause{len(r.events), len(r.chunks), asked})
	}
	for _, id := range asked {
		switch how := r.roll.IntN(4); {
		case how == 0:
			denied[id] = true
			r.event(id, events.ApprovalDenied{CallID: id})
		case how == 1:
			r.event(id, events.ApprovalResolved{CallID: id, Result: events.JSON("7")})
		case how == 2:
			r.event(id, events.ApprovalGranted{CallID: id, Arguments: events.JSON(`{"q":"changed"}`)})
			d := parts[id]
			d.Part = events.JSON(strings.Replace(string(d.Part), `"input":`, `"was":`, 1))
			d.Part = events.JSON(strings.Replace(string(d.Part), `{`, `{"input":{"q":"changed"},`, 1))
			parts[id] = d
		default:
			r.event(id, events.ApprovalGranted{CallID: id})
		}
	}
	if len(asked) > 0 {
		r.event(execution, events.RunRequested{})
		r.claim++
	}
	for _, p := range list {
		d, is := parts[p.id]
		if !is || p.kind != "call" {
			continue
		}
		outcome := `{"state":"output-available","output":3,`
		if denied[p.id] || r.chance(5) {
			outcome = `{"state":"output-error","errorText":"no",`
		}
		raw := events.JSON(outcome + strings.TrimPrefix(string(d.Part), "{"))
		r.chunk(step, events.ChunkToolOutput, map[string]any{"toolCallId": p.id, "output": 3})
		r.event(d.Key, events.PartUpdated{Key: d.Key, StepID: step, Idx: d.Idx, Part: raw})
	}
}
