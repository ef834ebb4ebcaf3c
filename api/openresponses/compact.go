package openresponses

import (
	"cmp"
	"context"
	"net/http"
	"strings"
	"sync"

	"github.com/google/uuid"

	"github.com/skein-threads/skein/api/edge"
	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
	transform "github.com/skein-threads/skein/events/openresponses"
)

// compaction is the answer to a request to compact a conversation.
type compaction struct {
	ID        string           `json:"id"`
	Object    string           `json:"object"`
	CreatedAt int64            `json:"created_at"`
	Output    []transform.Item `json:"output"`
	Usage     *usage           `json:"usage"`
}

// compact answers POST /v1/responses/compact: the agent's model writes a summary, with which a
// new thread begins. The conversation itself stays as it is. With store: false, nothing that the
// request has written stays.
func compact(w http.ResponseWriter, r *http.Request, c *edge.Caller) error {
	ctx := r.Context()
	var d createRequest
	asked, err := readWriting(r, c, &d)
	if err != nil {
		return err
	}
	if err := d.check(); err != nil {
		return err
	}
	if d.Instructions != "" {
		return events.Invalid("/instructions", "instructions have no effect on a summary; give the agent a prompt")
	}
	if err := summarizes(ctx, c, d.Model); err != nil {
		return err
	}
	if err := c.Awaits(false); err != nil {
		return err
	}
	id := uuid.NewSHA1(asked.id, []byte(asked.command)) // another body is another summary
	thread, seq, err := toCompact(ctx, c, &d, id)
	if err != nil {
		return err
	}
	c.Client = c.Client.WithMinSeq(seq)
	made := &temporary{client: c.Client, args: withHandoffs(), query: events.GetExecution{ThreadID: thread}, purges: []string{purgeOf(id)}}
	discard := func() {}
	if !d.stored() {
		discard = sync.OnceFunc(func() { made.discard(context.WithoutCancel(ctx)) })
		defer func() { go discard() }() // the run ends whether or not the client stays
		stop := made.keep(ctx)
		defer stop()
	}
	reply, err := c.Client.Send(ctx, thread, events.HandoffThread{AgentID: d.Model, Comment: "compacted"}, client.CommandID("openresponses-compact-"+id.String()))
	if err != nil {
		return err
	}
	if reply.Result == nil || reply.Result.ExecutionID == "" {
		return events.Errorf(events.Unavailable, "the summary of thread %s has no execution", thread)
	}
	made.handsOver(reply.Result)
	x, err := c.Client.WithMinSeq(reply.Seq).WaitRun(ctx, made.query)
	if err != nil {
		return err
	}
	if x.Status != events.ExecutionCompleted {
		return events.Errorf(events.Unavailable, "the model %s wrote no summary: %s", d.Model, cmp.Or(x.ErrorText, "its run was stopped"))
	}
	first, err := client.Read(ctx, c.Client.WithMinSeq(x.Seq), events.ListItems{ThreadID: reply.Result.ChildID, Limit: new(int64(1))})
	if err != nil {
		return err
	}
	if len(first.Items) == 0 {
		return events.Errorf(events.Unavailable, "the thread %s does not begin with a summary", reply.Result.ChildID)
	}
	discard() // its id is not found from now on
	number := strings.TrimPrefix(x.ID, events.ExecutionPrefix)
	edge.WriteJSON(w, http.StatusOK, compaction{
		ID: "resp_" + number, Object: "response.compaction", CreatedAt: unix(x.CreatedAt), Usage: resourceAt(leg{x: x}).Usage,
		Output: []transform.Item{transform.Compaction("cmp_"+number, events.TextOfParts(first.Items[0].Content))},
	})
	return nil
}

// summarizes refuses an agent without a model, which can write no summary.
func summarizes(ctx context.Context, c *edge.Caller, name string) error {
	d, err := defined(ctx, c, name)
	if err == nil {
		made, err := events.DecodeDefinition(d.Kind, d.Definition)
		if a, ok := made.(events.AgentDefinition); ok && a.Model == "" && a.SideA == nil {
			return events.Invalid("/model", "agent %s has no model that could write a summary; name one that has", clipped(name))
		}
		return err
	}
	if !events.IsNotFound(err) {
		return err
	}
	if err := known(ctx, c, name); err != nil {
		return err
	}
	return events.Invalid("/model", "%s is a reactor without a model, and could write no summary; name an agent or a model that is defined", clipped(name))
}

// toCompact returns the thread that a request wants compacted: the thread of a response, or one
// with the request's input, after a response if it names one.
func toCompact(ctx context.Context, c *edge.Caller, d *createRequest, id uuid.UUID) (thread string, seq int64, err error) {
	if len(d.input) == 0 && d.PreviousResponseID == "" {
		return "", 0, events.Invalid("/input", "there is nothing to compact; give an input or a previous_response_id")
	}
	d.Conversation = nil
	on, err := basisOf(ctx, c, d)
	if err != nil {
		return "", 0, err
	}
	to, err := placeOf(ctx, d, on, noTemporary)
	if err != nil {
		return "", 0, err
	}
	if to.version != nil && len(d.input) > 0 { // its own thread gets no items by this
		to.forks = on.leg.x
	}
	if to.forks != nil {
		if to, err = forked(ctx, c, to.forks, to.title, "", id); err != nil {
			return "", 0, err
		}
	}
	if len(d.input) == 0 && d.stored() {
		return to.thread, 0, nil
	}
	items, err := newItems(ctx, c, d.input, d.size, to.thread)
	if err != nil {
		return "", 0, err
	}
	var list []events.SubCommand
	thread = to.thread
	if thread == "" {
		thread = "T-" + id.String()
		one, err := client.Sub("thread.create", events.CreateThread{UserID: c.User})
		if err != nil {
			return "", 0, err
		}
		list = append(list, one)
	}
	if !d.stored() {
		one, err := client.Sub("effect.schedule", purgeLater(purgeOf(id), withHandoffs()))
		if err != nil {
			return "", 0, err
		}
		list = append(list, one)
	}
	command := "openresponses-input-" + id.String()
	if to.thread != "" {
		err = keepFiles(ctx, c.Client, thread, items, "/input")
	} else if created, wrong := beginFiles(ctx, c.Client, thread, list, command, items, "/input"); created || wrong != nil {
		list, err = nil, wrong
	}
	if err != nil {
		return "", 0, err
	}
	for i := range items {
		items[i].Metadata = withOwn(items[i].Metadata)
	}
	added := additions{path: "/input"}
	if list, err = added.add(list, items); err != nil {
		return "", 0, err
	}
	reply, err := c.Client.Commit(ctx, thread, list, client.CommandID(command))
	if err != nil {
		return "", 0, added.refused(err)
	}
	return thread, reply.Seq, nil
}

// inputTokens answers POST /v1/responses/input_tokens with an estimate: Skein has no tokenizer
// of its own. What a previous response has used is counted as its model reported it.
func inputTokens(w http.ResponseWriter, r *http.Request, c *edge.Caller) error {
	var d createRequest
	if err := readBody(r, &d); err != nil {
		return err
	}
	if err := d.check(); err != nil {
		return err
	}
	if err := known(r.Context(), c, d.Model); err != nil {
		return err
	}
	bytes := len(d.Input) + len(d.Instructions)
	for _, t := range d.Tools {
		bytes += len(t.Name) + len(t.Parameters)
		if t.Description != nil {
			bytes += len(*t.Description)
		}
	}
	tokens := int64(bytes+bytesPerToken-1) / bytesPerToken
	if d.PreviousResponseID != "" {
		_, l, err := found(r.Context(), c, d.PreviousResponseID)
		if events.IsNotFound(err) {
			return noPrevious(d.PreviousResponseID)
		}
		if err != nil {
			return err
		}
		if used := l.x.Usage; used != nil {
			tokens += used.InputTokens + used.OutputTokens
		}
	}
	edge.WriteJSON(w, http.StatusOK, struct {
		Object      string `json:"object"`
		InputTokens int64  `json:"input_tokens"`
	}{"response.input_tokens", tokens})
	return nil
}

// bytesPerToken is a usual length of a token.
const bytesPerToken = 4
