package openresponses

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/skein-threads/skein/api/edge"
	"github.com/skein-threads/skein/api/runstream"
	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
)

// OpenAI's clients repeat a request that failed, or was not answered in time, with the same body
// and without an Idempotency-Key. They say how often they have tried, and how long they wait.
const (
	headerRetries     = "X-Stainless-Retry-Count"
	headerTimeout     = "X-Stainless-Timeout"      // seconds, of openai-node
	headerReadTimeout = "X-Stainless-Read-Timeout" // seconds, of openai-python

	usualTimeout  = 10 * time.Minute // of a client that does not say
	longestRetry  = time.Hour        // that one attempt may have taken
	betweenTries  = 10 * time.Second // at most 8 s, as their clients wait
	pagesOfActive = 10               // of runs in which the first request is sought
)

// retry describes an attempt at a request, as the client's headers do.
type retry struct {
	told   bool          // it says which attempt this is
	within time.Duration // how long ago the first one may have been made; 0: this is the first
}

// retryOf returns what the client of a request says of the attempt.
func retryOf(r *http.Request) retry {
	n, err := strconv.ParseUint(r.Header.Get(headerRetries), 10, 8)
	if err != nil {
		return retry{}
	}
	took := usualTimeout
	for _, name := range []string{headerTimeout, headerReadTimeout} {
		if seconds, err := strconv.ParseFloat(r.Header.Get(name), 64); err == nil && seconds > 0 {
			took = time.Duration(min(seconds, longestRetry.Seconds()) * float64(time.Second))
		}
	}
	return retry{told: true, within: time.Duration(n) * (took + betweenTries)}
}

// newID returns the id of a request without an Idempotency-Key. It ends with a mark of its body and
// its caller, by which the run is found if the client repeats the request.
func newID(c *edge.Caller, digest string) uuid.UUID {
	id := uuid.Must(uuid.NewV7())
	if digest != "" {
		copy(id[len(id)-markBytes:], markOf(c, digest))
	}
	return id
}

// markBytes is how many bytes of an id are its mark. What it finds is compared in full.
const markBytes = 4

func markOf(c *edge.Caller, digest string) []byte {
	sum := sha256.Sum256([]byte(c.Tenant + "\x00" + c.Subject + "\x00" + digest))
	return sum[:markBytes]
}

// first returns the run that an earlier attempt at a request has begun and that has not ended, nil
// if there is none.
func (t retry) first(ctx context.Context, c *edge.Caller, d *createRequest, on basis) (*begun, error) {
	upToDate, err := on.upToDate(ctx, c)
	if err != nil {
		return nil, err
	}
	since, mark := time.Now().Add(-t.within), hex.EncodeToString(markOf(c, d.digest))
	join := func(id string) (*begun, error) {
		number := strings.TrimPrefix(id, events.ExecutionPrefix)
		if runstream.ThreadIn("resp_"+number) != "" {
			number = number[:runstream.RandomDigits]
		}
		if !strings.HasSuffix(number, mark) {
			return nil, nil
		}
		b := newBegun(d, strings.TrimPrefix(id, events.ExecutionPrefix))
		x, err := execution(ctx, upToDate, b.id)
		if events.IsNotFound(err) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		at, wrong := time.Parse(time.RFC3339Nano, x.CreatedAt)
		if e := echoOf(x); wrong != nil || at.Before(since) || e == nil || e.Request != d.digest {
			return nil, nil
		}
		if err := b.joins(ctx, upToDate, x); err != nil {
			return nil, err
		}
		return b, nil
	}
	if on.thread != nil {
		list, err := upToDate.ListQueue(ctx, events.ListQueue{ThreadID: on.thread.ID})
		if err != nil {
			return nil, err
		}
		waiting := []string{list.Active}
		for _, q := range list.Queued {
			waiting = append(waiting, q.ExecutionID)
		}
		for _, execution := range waiting {
			if b, err := join(execution); b != nil || err != nil {
				return b, err
			}
		}
		return nil, nil
	}
	q := events.ListRuns{Status: events.Executing, Limit: new(int64(1000))}
	for range pagesOfActive {
		list, err := client.Read(ctx, upToDate, q)
		if err != nil {
			return nil, err
		}
		for _, run := range list.Runs {
			if b, err := join(run.ExecutionID); b != nil || err != nil {
				return b, err
			}
		}
		if q.Cursor = list.NextCursor; q.Cursor == "" {
			break
		}
	}
	return nil, nil
}
