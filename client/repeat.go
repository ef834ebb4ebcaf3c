package client

import (
	"context"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/skein-threads/skein/events"
)

// repeatAfter returns after how long a request that has been sent a number of times, and has no
// answer, is sent again next to the ones that wait. Of several Skeins the server picks another one at
// random, so that one that hangs delays an answer by a second or two. An attempt is sent after 0, 1, 2,
// 4 and 7 seconds, and one that may take longer every 8 seconds from then on, as far as [copies] allows.
func repeatAfter(sent int) time.Duration {
	switch sent {
	case 1, 2:
		return time.Second
	case 3:
		return 2 * time.Second
	case 4:
		return 3 * time.Second
	}
	return attemptTimeout
}

// mostCopies is how many copies an attempt has at most: see repeatAfter and longestAttempt.
const mostCopies = 8

// copiesAhead is how many copies may be sent before there are answers for them.
const copiesAhead = 16

// copies bounds how many copies the requests of a connection send: one for each that was answered, and
// a few ahead. So where one Skein of several hangs, all are sent that help; and where all have too much
// to do, they do not get five times as much of it.
type copies struct {
	mu    sync.Mutex
	spent int // copies that no answer stands for
}

// take reports whether a copy may be sent.
func (c *copies) take() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.spent == copiesAhead {
		return false
	}
	c.spent++
	return true
}

// answered counts an answer.
func (c *copies) answered() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.spent = max(c.spent-1, 0)
}

// response is the reply to one copy of a request: a body, or a refusal, or an error if there is no
// reply.
type response struct {
	body    []byte
	refusal *events.Error
	err     error
}

// final reports whether a reply answers the request, whatever other copies get: one that was
// refused for now says nothing of a copy that another process has. A process whose read model is
// behind has waited for it as long as the others would.
func (r response) final() bool {
	if r.err != nil {
		return false
	}
	return r.refusal == nil || r.refusal.Code == events.ProjectionBehind || !r.refusal.Retry()
}

// sendRepeatedly sends a request, again while nobody answers, and returns the first final reply or
// else the last one, and how often it was sent. A repeat must do no harm: a command has its id.
func (c *Client) sendRepeatedly(ctx context.Context, subject string, body []byte) (last response, sent int) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // ends the copies that wait
	responses := make(chan response, mostCopies)
	var again <-chan time.Time
	timer := time.NewTimer(0)
	defer timer.Stop()
	send := func() {
		go func() {
			responses <- c.sendOnce(ctx, subject, body) // never blocks: it has room for all copies
		}()
		sent++
		timer.Reset(repeatAfter(sent))
		again = timer.C
	}
	send()
	for waiting := sent; ; {
		select {
		case <-again:
			if !c.copies.take() {
				timer.Reset(time.Second)
				continue
			}
			send()
			waiting++
		case r := <-responses:
			if waiting--; r.final() {
				c.copies.answered()
			}
			if r.final() || waiting == 0 {
				return r, sent
			}
			if r.err == nil { // somebody is there, and has too much to do
				again = nil
			}
		}
	}
}

// sendOnce sends a request, and waits for its reply.
func (c *Client) sendOnce(ctx context.Context, subject string, body []byte) response {
	m := c.message(subject, body)
	if end, ok := ctx.Deadline(); ok { // so that the service stops when the client no longer waits
		m.Header.Set(events.HeaderWait, strconv.FormatInt(max(1, time.Until(end).Milliseconds()), 10))
	}
	reply, err := c.nc.RequestMsgWithContext(ctx, m)
	if err != nil {
		return response{err: err}
	}
	return response{body: reply.Data, refusal: refused(reply)}
}

// refused returns the refusal that a reply holds, or nil.
func refused(reply *nats.Msg) *events.Error {
	return events.DecodeRefusal(reply.Header.Get(events.HeaderErrorCode), reply.Data)
}

// repeatable reports whether a query may be sent again before it is answered. Asking for the next
// event of a consumer takes it: a second copy would take another one.
func repeatable(query string) bool {
	row, known := events.QueryOf(events.NextOfConsumer{})
	return !known || query != row.Name
}
