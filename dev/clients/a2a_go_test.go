package clients_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/a2aproject/a2a-go/a2a"
	"github.com/a2aproject/a2a-go/a2aclient"
	"github.com/a2aproject/a2a-go/a2aclient/agentcard"
)

// The Go client of A2A, whose released version speaks 0.3, reads a card, sends messages, reads streams,
// answers an approval and knows errors.
func TestA2A_Go(t *testing.T) {
	s := agui(t)
	card, err := agentcard.NewResolver(http.DefaultClient).Resolve(t.Context(), s.Addresses().HTTP, agentcard.WithPath("/a2a/triage/.well-known/agent-card.json"))
	s.Must(err)
	client, err := a2aclient.NewFromCard(t.Context(), card)
	s.Must(err)
	said := func(parts a2a.ContentParts) string {
		var all []string
		for _, p := range parts {
			if text, is := p.(a2a.TextPart); is {
				all = append(all, text.Text)
			}
		}
		return strings.Join(all, "")
	}
	result, err := client.SendMessage(t.Context(), &a2a.MessageSendParams{Message: a2a.NewMessage(a2a.MessageRoleUser, a2a.TextPart{Text: "hello"})})
	s.Must(err)
	task, is := result.(*a2a.Task)
	if !is || task.Status.State != a2a.TaskStateCompleted || len(task.Artifacts) != 1 || said(task.Artifacts[0].Parts) != "you said hello" || said(task.History[0].Parts) != "hello" {
		t.Fatalf("%+v", result)
	}
	more := a2a.NewMessageForTask(a2a.MessageRoleUser, task, a2a.TextPart{Text: "more"})
	if _, err := client.SendMessage(t.Context(), &a2a.MessageSendParams{Message: more}); !errors.Is(err, a2a.ErrUnsupportedOperation) {
		t.Errorf("a task that has ended: %v", err)
	}
	if _, err := client.GetTask(t.Context(), &a2a.TaskQueryParams{ID: "nothing"}); !errors.Is(err, a2a.ErrTaskNotFound) {
		t.Errorf("no task: %v", err)
	}
	if _, err := client.CancelTask(t.Context(), &a2a.TaskIDParams{ID: task.ID}); !errors.Is(err, a2a.ErrTaskNotCancelable) {
		t.Errorf("cancelled too late: %v", err)
	}
	read := func(m *a2a.Message) (first *a2a.Task, text string, last *a2a.TaskStatusUpdateEvent) {
		t.Helper()
		for e, err := range client.SendStreamingMessage(t.Context(), &a2a.MessageSendParams{Message: m}) {
			s.Must(err)
			switch e := e.(type) {
			case *a2a.Task:
				first = e
				for _, a := range e.Artifacts {
					text += said(a.Parts)
				}
			case *a2a.TaskArtifactUpdateEvent:
				text += said(e.Artifact.Parts)
			case *a2a.TaskStatusUpdateEvent:
				last = e
			}
		}
		if first == nil || last == nil || !last.Final {
			t.Fatalf("%+v, %+v", first, last)
		}
		return first, text, last
	}
	if _, text, last := read(a2a.NewMessage(a2a.MessageRoleUser, a2a.TextPart{Text: "again"})); text != "you said again" || last.Status.State != a2a.TaskStateCompleted {
		t.Errorf("%q, %+v", text, last)
	}
	asks, _, last := read(a2a.NewMessage(a2a.MessageRoleUser, a2a.TextPart{Text: "refund"}))
	if last.Status.State != a2a.TaskStateInputRequired || !strings.Contains(said(last.Status.Message.Parts), "needs an approval") {
		t.Fatalf("%+v", last)
	}
	grant := a2a.NewMessageForTask(a2a.MessageRoleUser, asks, a2a.DataPart{Data: map[string]any{"grant": true}})
	if same, text, last := read(grant); same.ID != asks.ID || !strings.HasSuffix(text, "done") || last.Status.State != a2a.TaskStateCompleted {
		t.Errorf("%+v, %q, %+v", same, text, last)
	}
}
