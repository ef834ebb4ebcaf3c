package openresponses

import (
	"context"
	"net/http"

	"github.com/google/uuid"

	"github.com/skein-threads/skein/api/edge"
	"github.com/skein-threads/skein/api/runstream"
	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
)

// repeated returns the run that an earlier request with the same Idempotency-Key has started,
// also if it waits in the queue of its conversation; nil if there is none. The request must be the
// same.
func repeated(ctx context.Context, c *edge.Caller, d *createRequest, on basis, id uuid.UUID) (*begun, error) {
	upToDate, err := on.upToDate(ctx, c)
	if err != nil {
		return nil, err
	}
	thread := ""
	if on.thread != nil {
		thread = on.thread.ID
	}
	b := newBegun(d, d.number(id, thread))
	x, err := executionOrQueued(ctx, upToDate, b.id)
	if events.IsNotFound(err) {
		item, missing := client.Read(ctx, upToDate, events.GetItem{ItemID: inputItem(id, 0)})
		if events.IsNotFound(missing) {
			return nil, nil
		}
		if missing != nil {
			return nil, missing
		}
		// The item may be newer than what was read of executions, whose commit it shares.
		upToDate = upToDate.WithMinSeq(item.Seq)
		if x, err = executionOrQueued(ctx, upToDate, b.id); events.IsNotFound(err) {
			return nil, edge.ReusedKey(edge.HeaderKey) // in another thread
		}
	}
	if err != nil {
		return nil, err
	}
	if e := echoOf(x); e == nil || e.Request != d.digest {
		return nil, edge.ReusedKey(edge.HeaderKey)
	}
	b.joins(upToDate, x, purgeOf(id))
	return b, nil
}

// joins makes the run of an earlier request that of this one.
func (b *begun) joins(c *client.Client, x *events.Execution, purge string) {
	if runstream.IsQueued(x) {
		b.queued, b.waiting = true, x
	}
	b.client, b.thread, b.reaction, b.settings, b.echo, b.repeated = c, x.ThreadID, x.ReactionItemID, x.Settings, echoOf(x), true
	if b.echo.Temporary {
		b.temporary = &temporary{client: b.client, query: b.query(), purges: []string{purge}}
	}
}

// executionOrQueued returns the execution of a response, also if it waits in a queue.
func executionOrQueued(ctx context.Context, c *client.Client, id string) (*events.Execution, error) {
	x, err := execution(ctx, c, id)
	if events.IsNotFound(err) {
		return queuedIn(ctx, c, id)
	}
	return x, err
}

// writing is a request that writes, with what names that: a repeat with the same Idempotency-Key
// writes nothing, and is answered as the first was.
type writing struct {
	id      uuid.UUID // begins the ids of what it writes
	command string    // the id of its command, which another body does not have
	keyed   bool      // both follow from its Idempotency-Key
}

// readWriting decodes the body of a request that writes.
func readWriting(r *http.Request, c *edge.Caller, into any) (writing, error) {
	body, err := edge.Body(r, edge.MaxMessageBody)
	if err != nil {
		return writing{}, err
	}
	if err := decode(body, into); err != nil {
		return writing{}, err
	}
	id, key := uuid.Must(uuid.NewV7()), r.Header.Get(edge.HeaderKey)
	if key != "" {
		id = c.Keyed(r.URL.Path + "\x00" + key)
	}
	return writing{id, "openresponses-" + id.String() + "-" + edge.DigestOf(body), key != ""}, nil
}

// refused returns the error of the command of a writing, whose ids another body with the same key
// may have taken. Others are as additions have them.
func (w *writing) refused(err error, added *additions) error {
	if w.keyed && events.IsTakenByDeleted(err) {
		return events.Missing("conversation", "of this Idempotency-Key")
	}
	if w.keyed && events.HasCode(err, events.AlreadyExists) {
		return edge.ReusedKey(edge.HeaderKey)
	}
	return added.refused(err)
}
