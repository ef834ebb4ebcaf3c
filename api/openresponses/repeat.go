package openresponses

import (
	"cmp"
	"context"
	"net/http"

	"github.com/google/uuid"

	"github.com/skein-threads/skein/api/edge"
	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
)

// repeated returns the run that an earlier request with the same Idempotency-Key has started,
// also if it waits in the queue of its conversation; nil if there is none. The request must be the
// same.
func repeated(ctx context.Context, c *edge.Caller, d *createRequest, id uuid.UUID) (*begun, error) {
	upToDate, err := c.Client.UpToDate(ctx)
	if err != nil {
		return nil, err
	}
	thread := ""
	if d.Conversation != nil {
		t, err := conversationOf(ctx, c, d.Conversation)
		if err != nil {
			return nil, err
		}
		thread = t.ID
	}
	b := newBegun(d, d.number(id, thread))
	x, err := execution(ctx, upToDate, b.id)
	if isMissing(err) {
		x, err = queuedIn(ctx, upToDate, b.id)
	}
	if isMissing(err) {
		return nil, usedElsewhere(ctx, upToDate, id)
	}
	if err != nil {
		return nil, err
	}
	if b.echo = echoOf(x); b.echo == nil || b.echo.Request != d.digest {
		return nil, reusedKey()
	}
	if isQueued(x) {
		b.queued, b.waiting = true, x
	}
	b.client, b.thread, b.settings, b.repeated = upToDate, x.ThreadID, x.Settings, true
	if b.echo.Temporary {
		b.temporary = &temporary{client: b.client, query: b.query(), purges: []string{purgeOf(id)}}
	}
	return b, nil
}

// usedElsewhere refuses a key whose request was for another thread.
func usedElsewhere(ctx context.Context, c *client.Client, id uuid.UUID) error {
	_, err := c.GetItem(ctx, events.GetItem{ItemID: inputItem(id, 0)})
	if isMissing(err) {
		return nil
	}
	return cmp.Or(err, reusedKey())
}

// reusedKey is the refusal of an Idempotency-Key that another request has used.
func reusedKey() error {
	return &refusal{edge.Problem{
		Type: "invalid_request", Code: "idempotency_key_reused", Param: "Idempotency-Key",
		Message: "another request was made with this Idempotency-Key; send each request with a key of its own",
	}, http.StatusUnprocessableEntity}
}
