package chat

import (
	"context"
	"encoding/hex"
	"net/http"

	"github.com/go-json-experiment/json"

	"github.com/skein-threads/skein/api/edge"
	"github.com/skein-threads/skein/api/runstream"
	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
)

// once names what a request with an Idempotency-Key writes. Another body with the same key has the
// same command and execution, and another reaction item.
type once struct {
	command, execution, reaction string
	digest                       string // of the body
}

// onceOf returns the ids for the writes of a request with that body; nil if it has no
// Idempotency-Key.
func onceOf(r *http.Request, c *edge.Caller, body []byte) *once {
	key := r.Header.Get(edge.HeaderKey)
	if key == "" {
		return nil
	}
	id := c.Keyed("/chat\x00" + key)
	number, digest := hex.EncodeToString(id[:]), edge.DigestOf(body)
	return &once{"chat-" + number, events.ExecutionPrefix + number, events.ItemPrefix + number[:16] + digest[:16], digest}
}

// mark names what a thread.react makes, and has the item tell which request it is of.
func (o *once) mark(d *events.ReactThread) error {
	if o == nil {
		return nil
	}
	d.ExecutionID, d.ReactionItemID = o.execution, o.reaction
	var m metadata
	_ = json.Unmarshal(d.Item.Metadata, &m) // none is as good
	m.Chat.Request = o.digest
	return m.put(d.Item)
}

// id returns that of the command of a request, which has another one if the request has no key.
func (o *once) id(other string) string {
	if o == nil {
		return other
	}
	return o.command
}

// options returns the client options for a request's command: the derived command id, or none if
// the request has no key.
func (o *once) options(command string) []client.Option {
	if command = o.id(command); command == "" {
		return nil
	}
	return []client.Option{client.CommandID(command)}
}

// send does what a request asks for, unless an earlier one with its key did, and returns the
// message that answers.
func (h *chat) send(ctx context.Context, req *request) (*follow, error) {
	if h.once == nil {
		return h.ask(ctx, req)
	}
	if f, err := h.earlier(ctx); f != nil || err != nil {
		return f, err
	}
	f, err := h.ask(ctx, req)
	if err == nil {
		return f, nil
	}
	if events.IsReusedID(err) {
		err = edge.ReusedKey(edge.HeaderKey)
	}
	again, wrong := h.reopened(ctx) // another request with the key may have been faster
	if wrong != nil {
		return nil, wrong
	}
	if f, wrong := again.earlier(ctx); f != nil || wrong != nil {
		return f, wrong
	}
	return nil, err
}

// reopened returns the chat as it is now.
func (h *chat) reopened(ctx context.Context) (*chat, error) {
	again, err := open(ctx, h.caller, h.id)
	if err == nil {
		again.once = h.once
	}
	return again, err
}

// earlier returns the message that answers an earlier request with the same key; nil if there is
// none. The error says that the key was reused if the earlier request had another body.
func (h *chat) earlier(ctx context.Context) (*follow, error) {
	x, err := h.runNamed(ctx, h.once.execution)
	switch {
	case events.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, err
	case x.ReactionItemID != h.once.reaction:
		return nil, edge.ReusedKey(edge.HeaderKey)
	}
	at := h
	if !h.has(x) { // the execution may be newer than what was read of the chat
		if at, err = h.reopened(ctx); err != nil {
			return nil, err
		}
		if !at.has(x) { // its key belongs to another thread now
			return nil, h.missing()
		}
	}
	from, err := at.beginning(ctx, x)
	return &follow{Run: at.runOf(x, x.ReactionItemID), from: from}, err
}

// runNamed returns an execution of the chat's thread, or else of another one in use.
func (h *chat) runNamed(ctx context.Context, id string) (*events.Execution, error) {
	if h.thread != nil {
		if x, err := runstream.FindIn(ctx, h.now, id, h.thread.ID); !events.IsNotFound(err) {
			return x, err
		}
	}
	return runstream.Find(ctx, h.now, id)
}

// has reports whether an execution is one of the chat's thread.
func (h *chat) has(x *events.Execution) bool { return h.thread != nil && h.thread.ID == x.ThreadID }

// same refuses the reply to an earlier request with the same key that had another body. result is
// that of its thread.react.
func (h *chat) same(ctx context.Context, reply *events.Reply, result events.Result) error {
	if h.once == nil || result.ReactionItemID == h.once.reaction {
		return nil
	}
	if result.ItemID != "" { // it steers a run, and has no execution
		item, err := client.Read(ctx, h.now.WithMinSeq(reply.Seq), events.GetItem{ThreadID: reply.ThreadID, ItemID: result.ItemID})
		if err != nil {
			return err
		}
		var m metadata
		if json.Unmarshal(item.Metadata, &m) == nil && m.Chat.Request == h.once.digest {
			return nil
		}
	}
	return edge.ReusedKey(edge.HeaderKey)
}
