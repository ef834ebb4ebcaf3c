package agents_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/natstest"
	"github.com/skein-threads/skein/runtime"
)

// spending answers with a text and a call, and reports that it used so many output tokens.
func spending(tokens int64, told chan<- int64) runtime.Reactor {
	return runtime.ReactorFunc(func(_ context.Context, in *runtime.StepInput, _ runtime.Stream) (*runtime.Reaction, error) {
		told <- in.Model.MaxOutputTokens
		return &runtime.Reaction{
			AssistantEvent: runtime.Assistant{Content: []events.JSON{events.JSON(fmt.Sprintf(`{"type":"output_text","text":"step %d"}`, in.Iteration))}},
			ToolCalls:      []runtime.ToolCall{{CallID: fmt.Sprint("c", in.Iteration), Name: "double", Arguments: events.JSON(`{"n":1}`)}},
			Usage:          &runtime.Usage{InputTokens: 1000, OutputTokens: tokens, TotalTokens: 1000 + tokens},
		}, nil
	})
}

// AM-16, AM-118: maxTokens caps the output of a run. Each step may write what the steps before
// it left, and a run that has used all of it ends; what it wrote stays, and the next run begins
// with all of it again.
func TestMaxTokens_CapsTheRun(t *testing.T) {
	told := make(chan int64, 20)
	h := with(t, func(r *runtime.Registry) error { return r.AddReactor("spend", spending(40, told)) })
	h.apply("model", `{"name":"m","model":"big","reactor":"spend","maxOutputTokens":70}`,
		"tool", `{"name":"double","description":"Doubles.","type":"go"}`, "agent", `{"name":"a","type":"ai_human","model":"m","tools":["double"]}`)
	made, err := h.c.Send(t.Context(), "", events.CreateThread{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.c.Send(t.Context(), made.ThreadID, events.UpdateThread{MaxTokens: new(int64(100))}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		x, answer := h.react(t.Context(), made.ThreadID, "a")
		if x.Status != events.ExecutionFailed || x.ErrorText != "the limit of 100 output tokens was reached: 120 were used" {
			t.Errorf("it ends as %s: %s", x.Status, x.ErrorText)
		}
		if !strings.Contains(answer, "step 0") || !strings.Contains(answer, "step 2") || strings.Contains(answer, "step 3") {
			t.Errorf("its answer is %s", answer)
		}
		if got := []int64{<-told, <-told, <-told}; !slices.Equal(got, []int64{70, 60, 20}) {
			t.Errorf("its steps may write %v", got)
		}
	}
}

// messages returns who wrote what on a thread that rests after so many runs, in order, and the
// thread's document.
func (h *house) messages(thread string, runs int) (said []string, doc *events.Thread) {
	h.t.Helper()
	natstest.Eventually(h.t, "the runs have not ended", func() bool {
		list, err := client.Read(h.t.Context(), h.c, events.ListExecutions{ThreadID: thread})
		if err != nil {
			h.t.Fatal(err)
		}
		if len(list.Executions) < runs {
			return false
		}
		end := int64(0)
		for _, x := range list.Executions {
			end = max(end, x.Seq)
		}
		if doc, err = client.Read(h.t.Context(), h.c, events.GetThread{ThreadID: thread, Fresh: events.Fresh{MinSeq: &end}}); err != nil {
			h.t.Fatal(err)
		}
		return doc.Status != events.ThreadStreaming
	})
	items, err := client.Read(h.t.Context(), h.c, events.ListItems{ThreadID: thread, Fresh: events.Fresh{MinSeq: &doc.Seq}})
	if err != nil {
		h.t.Fatal(err)
	}
	for _, i := range items.Items {
		said = append(said, string(i.Role)+" "+string(i.Content))
	}
	return said, doc
}

// AM-13, AM-15, AM-118: on a server, a draft is sent when the run ends, to the agent of the
// thread's mode, and a mode that the tenant's policy does not have is refused.
func TestDraftAndMode_OnAServer(t *testing.T) {
	release, asked := make(chan struct{}), make(chan struct{}, 2)
	h := with(t, func(r *runtime.Registry) error {
		return r.AddReactor("wait", runtime.ReactorFunc(func(ctx context.Context, in *runtime.StepInput, _ runtime.Stream) (*runtime.Reaction, error) {
			asked <- struct{}{}
			select {
			case <-release:
			case <-ctx.Done():
			}
			text := fmt.Sprintf(`{"type":"output_text","text":"%s in %s"}`, in.Agent, in.AgentMode)
			return &runtime.Reaction{AssistantEvent: runtime.Assistant{Content: []events.JSON{events.JSON(text)}}}, nil
		}))
	})
	h.apply("agent", `{"name":"slow","type":"ai_human","reactor":"wait"}`, "agent", `{"name":"fast","type":"ai_human","reactor":"wait"}`,
		"policy", `{"name":"modes","modes":{"smart":"slow","rush":"fast"}}`)
	ctx := t.Context()
	made, err := h.c.Send(ctx, "", events.CreateThread{})
	if err != nil {
		t.Fatal(err)
	}
	update := func(d events.UpdateThread) {
		t.Helper()
		if _, err := h.c.Send(ctx, made.ThreadID, d); err != nil {
			t.Fatal(err)
		}
	}
	update(events.UpdateThread{AgentMode: new("lazy")})
	if _, err := h.c.Send(ctx, made.ThreadID, events.ReactThread{Text: new("one")}); events.AsError(err).Code != events.InvalidRequest || !strings.Contains(err.Error(), "rush, smart") {
		t.Errorf("in an unknown mode: %v", err)
	}
	update(events.UpdateThread{AgentMode: new("smart")})
	if _, err := h.c.Send(ctx, made.ThreadID, events.ReactThread{Text: new("one")}); err != nil {
		t.Fatal(err)
	}
	natstest.Within(t, "the reactor was not called", asked)
	update(events.UpdateThread{AgentMode: new("rush"), Draft: new("two"), AutoSubmitDraft: new(true)})
	close(release)
	said, doc := h.messages(made.ThreadID, 2)
	want := []string{
		`user [{"type":"input_text","text":"one"}]`, `assistant [{"type":"output_text","text":"slow in smart"}]`,
		`user [{"type":"input_text","text":"two"}]`, `assistant [{"type":"output_text","text":"fast in rush"}]`,
	}
	if !slices.Equal(said, want) || doc.Draft != "" || doc.AutoSubmitDraft {
		t.Errorf("they said %q; the draft is %q", said, doc.Draft)
	}
}

// AM-11, AM-111: on a server, a thread without a title gets one after its first answer, unless
// the tenant's policy is "off".
func TestTitles_OnAServer(t *testing.T) {
	h := start(t, nil)
	h.apply("agent", `{"name":"a","type":"ai_human","reactor":"say"}`)
	title := func() string {
		made, err := h.c.Send(t.Context(), "", events.CreateThread{})
		if err != nil {
			t.Fatal(err)
		}
		h.react(t.Context(), made.ThreadID, "a")
		_, doc := h.messages(made.ThreadID, 1)
		return doc.Title
	}
	if got := title(); got != "hello" {
		t.Errorf("the title is %q", got)
	}
	h.apply("policy", `{"name":"titles","off":true}`)
	if got := title(); got != "" {
		t.Errorf("with titles off it is %q", got)
	}
}
