package a2a

import (
	"net/http"

	"github.com/skein-threads/skein/api/edge"
	"github.com/skein-threads/skein/api/runstream"
	"github.com/skein-threads/skein/events"
)

// operation is a request, in either binding and version.
type operation struct {
	server *server
	w      http.ResponseWriter
	r      *http.Request
	c      *edge.Caller
	agent  string
	binding
	version version
	params  events.JSON
}

// sendMessage sends a message, and answers with its task when it has ended or requires input, or at
// once.
func (o *operation) sendMessage() error {
	in, err := o.readSend()
	if err != nil {
		return err
	}
	if !in.Configuration.Immediately {
		if err := o.c.Awaits(false); err != nil {
			return err
		}
	}
	f, err := o.begin(in)
	if err != nil {
		return err
	}
	if !in.Configuration.Immediately {
		if err := f.wait(o.r.Context()); err != nil {
			return err
		}
	}
	t, err := f.task(o.r.Context(), in.Configuration.HistoryLength, true)
	if err != nil {
		return err
	}
	f.setHeaders()
	o.result(o.w, o.version.update(update{Task: &t}))
	return nil
}

// streamMessage sends a message, and streams its task.
func (o *operation) streamMessage() error {
	in, err := o.readSend()
	if err != nil {
		return err
	}
	if err := o.c.Awaits(true); err != nil {
		return err
	}
	f, err := o.begin(in)
	if err != nil {
		return err
	}
	return f.stream(in.Configuration.HistoryLength)
}

// byID are the parameters of operations on one task.
type byID struct {
	ID            string `json:"id"`
	HistoryLength *int   `json:"historyLength"`
}

// named decodes them.
func (o *operation) named() (in byID, err error) {
	if err := decode(o.params, &in); err != nil {
		return in, err
	}
	if in.ID == "" {
		return in, events.Invalid("/id", "the id of a task is needed")
	}
	return in, checkHistory(in.HistoryLength)
}

// getTask answers with a task.
func (o *operation) getTask() error {
	in, err := o.named()
	if err != nil {
		return err
	}
	now, x, t, err := o.find(o.r.Context(), in.ID)
	if err != nil {
		return err
	}
	out, err := o.site().taskOf(o.r.Context(), now, x, contextOf(t), in.HistoryLength, true)
	if err != nil {
		return err
	}
	o.result(o.w, o.version.task(out))
	return nil
}

// cancelTask cancels a task, and answers with it when it has ended.
func (o *operation) cancelTask() error {
	in, err := o.named()
	if err != nil {
		return err
	}
	if err := o.c.Awaits(false); err != nil {
		return err
	}
	ctx := o.r.Context()
	now, x, t, err := o.find(ctx, in.ID)
	if err != nil {
		return err
	}
	if runstream.IsQueued(x) {
		removed, err := runstream.Unqueue(ctx, now, x)
		if err != nil {
			return err
		}
		if now, x, _, err = o.find(ctx, in.ID); err != nil {
			return err
		}
		if removed {
			out, err := o.site().taskOf(ctx, now, x, contextOf(t), nil, false)
			if err != nil {
				return err
			}
			o.result(o.w, o.version.task(out))
			return nil
		}
	}
	if x.Finished {
		return notCancelable(x.ID, stateOf(x))
	}
	f, err := o.runOf(ctx, now, x)
	if err != nil {
		return err
	}
	_, err = now.Send(ctx, x.ThreadID, events.CancelRun{ExecutionID: x.ID, Reason: "cancelled by its client"})
	if err != nil && !events.HasCode(err, events.NotFound, events.IllegalTransition) { // it has ended meanwhile
		return err
	}
	if err := f.waitEnd(ctx); err != nil {
		return err
	}
	out, err := f.task(ctx, in.HistoryLength, true)
	if err != nil {
		return err
	}
	if out.Status.State != canceled {
		return notCancelable(x.ID, out.Status.State)
	}
	o.result(o.w, o.version.task(out))
	return nil
}

// subscribe streams a task that has not ended.
func (o *operation) subscribe() error {
	in, err := o.named()
	if err != nil {
		return err
	}
	if err := o.c.Awaits(true); err != nil {
		return err
	}
	now, x, _, err := o.find(o.r.Context(), in.ID)
	if err != nil {
		return err
	}
	if x.Finished {
		return unsupported("task " + x.ID + " has ended: get it")
	}
	f, err := o.runOf(o.r.Context(), now, x)
	if err != nil {
		return err
	}
	return f.stream(in.HistoryLength)
}

// extendedCard answers with the card, which is the same for everybody who may read it.
func (o *operation) extendedCard() error {
	out, err := o.server.card(o.r, o.c, o.agent)
	if err != nil {
		return err
	}
	o.result(o.w, out)
	return nil
}
