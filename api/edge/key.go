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

// DigestOf returns a 128-bit hash of a request's body, in hexadecimal.
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

// BeginOnce begins what a request asks for on a thread. If another request begins the same at that time,
// or the thread changes, begin is called again, tries times in all, the first time with 1. The request
// is repeatable by what name says; what and id name its thread to the caller.
func BeginOnce[T any](name, what, id string, tries int, begin func(try int) (T, error)) (T, error) {
	for try := 1; ; try++ {
		begun, err := begin(try)
		var none T
		switch {
		case events.IsTakenByDeleted(err):
			return none, events.Errorf(events.NotFound, "the %s that an earlier request with this %s began was deleted; send another %[2]s", what, name)
		case !events.HasCode(err, events.AlreadyExists, events.VersionConflict):
			return begun, err
		case try < tries:
		case events.IsReusedID(err):
			return none, ReusedKey(name)
		case events.HasCode(err, events.AlreadyExists): // its thread is not for this caller
			return none, events.Missing(what, id)
		default:
			return none, err
		}
	}
}
