package openresponses

import (
	"context"
	"encoding/hex"
	"net/http"

	"github.com/google/uuid"

	"github.com/skein-threads/skein/api/edge"
)

// repeated returns the run that an earlier request with the same Idempotency-Key has started;
// nil if there is none that has begun. The request must be the same.
func repeated(ctx context.Context, c *edge.Caller, d *createRequest, id uuid.UUID) (*begun, error) {
	upToDate, err := c.Client.UpToDate(ctx)
	if err != nil {
		return nil, err
	}
	b := newBegun(d, hex.EncodeToString(id[:]))
	x, err := execution(ctx, upToDate, b.id)
	if isMissing(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if b.echo = echoOf(x); b.echo == nil || b.echo.Request != d.digest {
		return nil, reusedKey()
	}
	b.client, b.thread, b.settings, b.repeated = upToDate, x.ThreadID, x.Settings, true
	if b.echo.Temporary {
		b.temporary = &temporary{client: b.client, query: b.query(), purges: []string{purgeOf(id)}}
	}
	return b, nil
}

// reusedKey is the refusal of an Idempotency-Key that another request has used.
func reusedKey() error {
	return &refusal{edge.Problem{
		Type: "invalid_request", Code: "idempotency_key_reused", Param: "Idempotency-Key",
		Message: "another request was made with this Idempotency-Key; send each request with a key of its own",
	}, http.StatusUnprocessableEntity}
}
