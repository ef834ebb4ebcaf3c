package openresponses

import (
	"context"
	"encoding/hex"
	"net/http"

	"github.com/google/uuid"

	"github.com/skein-threads/skein/api/edge"
	"github.com/skein-threads/skein/api/runstream"
	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
)

// repeated returns the run that an earlier request with the same Idempotency-Key has started,
// also if it waits in the queue of its conversation; nil if there is none. The request must be the
// same. It is looked for where the request would be answered, and in some more threads.
func repeated(ctx context.Context, c *edge.Caller, d *createRequest, on basis, id uuid.UUID, more func(context.Context, *client.Client) ([]string, error)) (*begun, error) {
	upToDate, err := on.upToDate(ctx, c)
	if err != nil {
		return nil, err
	}
	threads := []string{newThread(id)}
	switch {
	case on.thread != nil:
		threads = []string{on.thread.ID}
	case on.leg != nil:
		threads = []string{on.leg.x.ThreadID}
		fork, err := client.Read(ctx, upToDate, events.GetThread{ThreadID: "key:" + d.forkKey(id)})
		if err == nil {
			threads = append(threads, fork.ID)
		} else if !events.IsNotFound(err) {
			return nil, err
		}
	case more != nil:
		list, err := more(ctx, upToDate)
		if err != nil {
			return nil, err
		}
		threads = append(threads, list...)
	}
	for _, thread := range threads {
		if b, err := joined(ctx, upToDate, d, id, thread); b != nil || err != nil {
			return b, err
		}
	}
	item, err := client.Read(ctx, upToDate, events.GetItem{ItemID: inputItem(id, 0)})
	switch {
	case events.IsNotFound(err) || events.HasCode(err, events.InvalidRequest): // a cold thread may have it, of too many to search
		return nil, nil
	case err != nil:
		return nil, err
	}
	// The item may be newer than what was read of executions, whose commit it shares.
	b, err := joined(ctx, upToDate.WithMinSeq(item.Seq), d, id, item.ThreadID)
	if b == nil && err == nil {
		err = edge.ReusedKey(edge.HeaderKey)
	}
	return b, err
}

// joined returns the run of an earlier request with the same Idempotency-Key in a thread, nil if it has
// none.
func joined(ctx context.Context, c *client.Client, d *createRequest, id uuid.UUID, thread string) (*begun, error) {
	b := newBegun(d, d.number(id, thread))
	x, err := runstream.FindIn(ctx, c, b.exec, thread)
	if events.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if e := echoOf(x); e == nil || e.Request != d.digest {
		return nil, edge.ReusedKey(edge.HeaderKey)
	}
	if err := b.joins(ctx, c, x); err != nil {
		return nil, err
	}
	return b, nil
}

// forkKey returns the key of the thread that a request forks, so that its repeat finds it. Another body
// has another.
func (d *createRequest) forkKey(id uuid.UUID) string {
	id = uuid.NewSHA1(id, []byte(d.digest))
	return "resp:" + hex.EncodeToString(id[:])
}

// joins answers this request with the run of an earlier request.
func (b *begun) joins(ctx context.Context, c *client.Client, x *events.Execution) error {
	if runstream.IsQueued(x) {
		b.queued, b.waiting = true, x
	}
	b.client, b.thread, b.reaction, b.settings, b.echo, b.repeated = c, x.ThreadID, x.ReactionItemID, x.Settings, echoOf(x), true
	if !b.echo.Temporary {
		return nil
	}
	b.temporary = &temporary{client: b.client, query: b.query(), shared: true}
	return b.kept(b.temporary.share(ctx))
}

// kept returns the error of a request that reads a response. One that is not stored may be gone meanwhile.
func (b *begun) kept(err error) error {
	switch {
	case b.temporary == nil || !events.IsNotFound(err):
		return err
	case b.request.foreign:
		return events.Errorf(events.NotFound, "the answer to this request has ended, and was not kept; send it with another %s", edge.HeaderKey)
	}
	return noResponse(b.id)
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
