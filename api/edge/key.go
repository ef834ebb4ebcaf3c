package edge

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net/http"

	"github.com/google/uuid"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
)

// HeaderKey is the header that names a request, so that it may be repeated.
const HeaderKey = "Idempotency-Key"

// Keyed returns the id that an Idempotency-Key stands for: another's same key is another id.
func (c *Caller) Keyed(key string) uuid.UUID {
	return uuid.NewSHA1(uuid.NameSpaceOID, []byte(c.Tenant+"\x00"+c.Subject+"\x00"+key))
}

// DigestOf returns what tells the body of a request from others: 32 hexadecimal digits.
func DigestOf(body []byte) string {
	sum := sha256.Sum256(body)
	return hex.EncodeToString(sum[:16])
}

// CheckMade refuses the reply to a request that creates a thread if the thread was deleted since: the
// request repeats an earlier one. The error is one of events.TakenByDeleted. It reads the log: the read
// models need not show the thread yet.
func (c *Caller) CheckMade(ctx context.Context, reply *events.Reply) error {
	q := events.ListEvents{ThreadID: reply.ThreadID, Types: []string{string(events.LifecycleDeletedType)}}
	for from := reply.Version + 1; from > 0; {
		q.FromVersion = &from
		since, err := client.Read(ctx, c.Client, q)
		if events.IsNotFound(err) || err == nil && len(since.Events) > 0 {
			return events.TakenByDeleted(reply.ThreadID)
		}
		if err != nil {
			return err
		}
		from = since.NextVersion
	}
	return nil
}

// ReusedKey returns the refusal of what makes a request repeatable, by its name, such as HeaderKey, that
// another request has used.
func ReusedKey(name string) error {
	return &statusError{
		status: http.StatusUnprocessableEntity, code: "idempotency_key_reused", param: name,
		text: "another request was made with this " + name + "; send each request with one of its own",
	}
}
