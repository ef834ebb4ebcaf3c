package agents_test

import (
	"strings"
	"testing"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
)

// The content of a typed context is validated against the definition of its type when
// it is written; content that was stored earlier stays readable: EK-29.
func TestTypedContexts(t *testing.T) {
	h := start(t, nil)
	ctx := t.Context()
	refused := func(what string, err error, words ...string) {
		t.Helper()
		e := events.AsError(err)
		for _, w := range append(words, "order") {
			if err == nil || e.Code != events.InvalidRequest || !strings.Contains(e.Message, w) {
				t.Errorf("%s: %v, which does not say %q", what, err, w)
				return
			}
		}
	}
	made, err := h.c.Send(ctx, "", events.CreateThread{})
	if err != nil {
		t.Fatal(err)
	}
	create := func(content string) (*events.Reply, error) {
		d := events.CreateContext{Type: "order"}
		if content != "" {
			d.Content = events.JSON(content)
		}
		return h.c.Send(ctx, made.ThreadID, d)
	}
	_, err = create(`{"eur":1}`)
	refused("without a definition", err, "there is no definition of the context")
	h.apply("context", `{"name":"order","schema":{"type":"object","properties":{"eur":{"type":"integer","minimum":1}},"required":["eur"]}}`)
	for _, content := range []string{``, `null`, `{}`, `{"eur":0}`, `[1]`} {
		_, err = create(content)
		refused("made as "+content, err, "/data/content", "does not fit")
	}
	reply, err := create(`{"eur":1}`)
	if err != nil {
		t.Fatal(err)
	}
	id := reply.Result.ContextID
	set := func(d events.SetContext) error {
		d.ContextID = id
		_, err := h.c.Send(ctx, made.ThreadID, d)
		return err
	}
	refused("set", set(events.SetContext{Content: events.JSON(`{"eur":"x"}`)}), "/data/content", "/eur")
	refused("patched", set(events.SetContext{Patch: events.JSON(`{"eur":null}`)}), "/data/patch", "eur")
	if err := set(events.SetContext{Patch: events.JSON(`{"note":"a"}`)}); err != nil {
		t.Error(err)
	}
	h.apply("context", `{"name":"order","schema":{"type":"object","properties":{"eur":{"type":"integer","minimum":5}},"required":["eur"]}}`)
	refused("of yesterday", set(events.SetContext{Patch: events.JSON(`{"note":"b"}`)}), "/eur")
	if err := set(events.SetContext{Content: events.JSON(`{"eur":5}`)}); err != nil {
		t.Error(err)
	}
	removed, err := h.c.Send(ctx, "", events.ApplyDefinitions{Remove: []events.DefinitionRef{{Kind: events.ContextKind, Name: "order"}}})
	if err != nil {
		t.Fatal(err)
	}
	refused("of what is gone", set(events.SetContext{Content: events.JSON(`{"eur":6}`)}), "there is no definition of the context")
	seq := removed.Seq
	got, err := client.Read(ctx, h.c, events.GetContext{ThreadID: made.ThreadID, ContextID: id, Fresh: events.Fresh{MinSeq: &seq}})
	if err != nil || got.Type != "order" || string(got.Content) != `{"eur":5}` {
		t.Errorf("%+v, %v", got, err)
	}
	_, err = h.c.Send(ctx, "", events.CreateThread{ContextType: "order", Context: events.JSON(`{"eur":5}`)})
	refused("a thread of what is gone", err, "there is no definition of the context")
}

// A typed context that is created and set in one commit is validated there.
func TestTypedContextsInACommit(t *testing.T) {
	h := start(t, nil)
	h.apply("context", `{"name":"order","schema":{"type":"object","required":["eur"]}}`)
	sub := func(command, data string) events.SubCommand {
		return events.SubCommand{Command: command, Data: events.JSON(data)}
	}
	made, err := h.c.Send(t.Context(), "", events.CreateThread{ContextType: "order", Context: events.JSON(`{"eur":5}`)})
	if err != nil {
		t.Fatal(err)
	}
	_, err = h.c.Commit(t.Context(), made.ThreadID, []events.SubCommand{
		sub("context.create", `{"id":"ctx_2","type":"order","content":{"eur":1}}`), sub("context.set", `{"contextId":"ctx_2","content":{}}`),
	})
	if e := events.AsError(err); err == nil || e.Code != events.InvalidRequest || !strings.Contains(e.Message, "/data/commands/1/data/content") {
		t.Errorf("%v", err)
	}
	if _, err := h.c.Send(t.Context(), made.ThreadID, events.SetContext{Content: events.JSON(`{}`)}); events.AsError(err).Code != events.InvalidRequest {
		t.Errorf("the default context: %v", err)
	}
}
