package threads_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/skein-threads/skein"
	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/skeintest"
	"github.com/skein-threads/skein/threads"
)

// apply stores definitions of a tenant.
func apply(t *testing.T, c *client.Client, list ...events.NewDefinition) {
	t.Helper()
	if _, err := c.Send(t.Context(), "", events.ApplyDefinitions{Definitions: list}); err != nil {
		t.Fatal(err)
	}
}

func policy(name, definition string) events.NewDefinition {
	return events.NewDefinition{Kind: events.PolicyKind, Name: name, Definition: events.JSON(definition)}
}

// AM-33, AM-41, AM-43: Handoff returns when the new thread is there, also when an agent writes
// the summary, and every read of the service shows it.
func TestHandoff_ByACallerOrAnAgent(t *testing.T) {
	started := skeintest.Start(t)
	answer := "It was lost."
	started.Must(started.Reactor("scribe", func(context.Context, *skein.StepInput, skein.Stream) (*skein.Reaction, error) {
		if answer == "" {
			return nil, errors.New("the model is away")
		}
		return skein.Answer(answer), nil
	}))
	c := started.Client("acme")
	s := threads.New(c)
	id := must(s.Create(t.Context(), ""))(t).ID
	if _, _, err := s.Update(t.Context(), id, func(t *threads.Thread) error {
		t.Title, t.Messages = "Order 42", append(t.Messages, threads.UserMessage("Where is order 42?"))
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Handoff(t.Context(), id, threads.HandoffOptions{}); !strings.Contains(said(err), "define the policy handoff with an agent") {
		t.Errorf("nobody writes: %v", err)
	}
	apply(t, c, policy("handoff", `{"name":"handoff","agent":"scribe"}`))
	for _, o := range []threads.HandoffOptions{{Summary: "It was lost.", Comment: "given"}, {Comment: "written by the policy's"}, {AgentID: "scribe"}} {
		child := must(s.Handoff(t.Context(), id, o))(t)
		got, parent := must(s.Get(t.Context(), child))(t), must(s.Get(t.Context(), id))(t)
		if len(got.Messages) != 1 || got.Messages[0].Role != events.DocumentInfo || *got.Messages[0].Content[0].Text != "It was lost." || got.Title != "" {
			t.Errorf("%s: the new thread is %+v", o.Comment, got)
		}
		mine := parent.Relationships[len(parent.Relationships)-1]
		for role, r := range map[events.RelationshipRole]threads.Relationship{events.ParentRole: mine, events.ChildRole: got.Relationships[0]} {
			if r.Type != events.HandoffRelation || r.Role != role || *r.MessageIndex != 0 || r.Comment != o.Comment {
				t.Errorf("%s: recorded as %+v", o.Comment, r)
			}
		}
		if len(parent.Messages) != 1 || mine.ThreadID != child {
			t.Errorf("%s: the thread is %+v", o.Comment, parent)
		}
	}
	answer = ""
	var none *threads.SummaryError
	if child, err := s.Handoff(t.Context(), id, threads.HandoffOptions{Key: "k"}); !errors.As(err, &none) || !strings.Contains(none.Reason, "the model is away") || child != "" {
		t.Errorf("a model that fails: %s, %v", child, err)
	}
	if _, err := s.Handoff(t.Context(), unknownID, threads.HandoffOptions{Summary: "s"}); said(err) != "Thread "+unknownID+" not found" {
		t.Errorf("an unknown thread: %v", err)
	}
	if err := s.Archive(t.Context(), id, true); err != nil {
		t.Fatal(err)
	}
	if got := must(s.Get(t.Context(), must(s.Handoff(t.Context(), id, threads.HandoffOptions{Summary: "s"}))(t)))(t); got.Archived {
		t.Error("the handoff of an archived thread is archived")
	}
}
