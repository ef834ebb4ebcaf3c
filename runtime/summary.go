package runtime

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/skein-threads/skein/commands/thread"
	"github.com/skein-threads/skein/events"
)

// The run of a handoff asks the agent once, without tools, for a summary of the conversation.
// Its commit creates the new thread: a run that has ended has created it, or says why not.

// summarize is what the agent of a handoff is asked, after the conversation.
const summarize = "Write a summary of this conversation for whoever continues it in a new one, and who will see nothing else of it: " +
	"what was asked for, what was decided and done, the facts, names and files that matter, and what is left to do. Answer with the summary alone."

// summaryInput makes the input of a step the input of a handoff: it ends with the request.
func (t *turn) summaryInput(in *StepInput) {
	text := summarize
	if t.run.Handoff.Comment != "" {
		text += "\n\nIt is continued for this: " + t.run.Handoff.Comment
	}
	in.Items = append(in.Items, t.request(text))
}

// request returns a message of a user that a reactor receives, and that no thread has.
func (t *turn) request(text string) events.Item {
	item := events.Item{
		ID: t.job.Execution + ":request", ThreadID: t.job.Thread, ContextID: t.run.ContextID, Type: events.Message, Role: events.User,
		Status: events.ItemCompleted, Content: textContent(text), Index: t.run.NextItem,
	}
	item.CreatedAt, item.CreatedAtMicros = t.run.Begun.ISO(), int64(t.run.Begun)
	return item
}

// summaryOf returns the summary in a reaction.
func summaryOf(got *Reaction, calls []events.ToolCall) (string, error) {
	if len(calls) > 0 {
		return "", fmt.Errorf("it called the tool %s, and a summary has no tools", clip(calls[0].Name))
	}
	text := answerText(got)
	return text, events.CheckSummary(text)
}

// answerText returns the texts of a reaction, one a line.
func answerText(got *Reaction) string {
	var texts []string
	for _, raw := range got.AssistantEvent.Content {
		var p struct {
			Type string `json:"type"`
			Text string `json:"text"`
		}
		if json.Unmarshal(raw, &p) == nil && p.Type == events.OutputText {
			texts = append(texts, p.Text)
		}
	}
	return strings.TrimSpace(strings.Join(texts, "\n"))
}

// textContent returns the content of a message that says a text.
func textContent(text string) events.JSON {
	return slices.Concat(events.JSON{'['}, object("type", events.InputText, "text", text), events.JSON{']'})
}

// handOff commits the summary and the new thread. If that is refused, the run fails with the
// reason.
func (t *turn) handOff(ctx context.Context, d thread.ReactStep) error {
	_, err := t.commit(ctx, "react", d)
	for _, code := range []events.Code{events.AlreadyExists, events.InvalidRequest, events.PayloadTooLarge} {
		if errors.Is(err, &events.Error{Code: code}) {
			return t.fail(ctx, "the new thread cannot be created: "+events.AsError(err).Message, nil)
		}
	}
	return err
}
