package streams

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/skein-threads/skein/internal/retry"
)

// clusterStart is how long a cluster may take to elect the leader of a stream: its servers may
// have been started together with this process. It also bounds the wait for a server that
// does not answer.
const clusterStart = time.Minute

// Patiently calls do, which makes a stream ready, and retries it while a cluster refuses
// because its servers have not found each other yet, or a busy server does not answer.
func (c *Conn) Patiently(ctx context.Context, do func(context.Context) error) error {
	return retry.Do(ctx, retry.Policy{First: 250 * time.Millisecond, Limit: clusterStart}, func() error { return do(ctx) }, func(err error) bool {
		return MayPass(err) && (c.cfg.Replicas != 1 || young(err) || silent(err))
	})
}

// interest is how long it may take until every server of a cluster knows the subscribers of
// a subject.
const interest = 10 * time.Second

// UntilResponders retries a request while it has no responders.
func UntilResponders(ctx context.Context, request func() error) error {
	return retry.Do(ctx, retry.Policy{First: 50 * time.Millisecond, Limit: interest}, request, func(err error) bool { return errors.Is(err, nats.ErrNoResponders) })
}

// Error codes of a cluster, besides those of Classify.
const (
	codeNoPeers       = 10005 // no server to place a stream on
	codeNotLeader     = 10009 // this server does not lead (any more)
	codeNoJetStream   = 10076
	codeNoneInAccount = 10039
)

// young reports whether an error is one that only a cluster returns, before its servers have
// found each other. Streams with a single copy get it too.
func young(err error) bool {
	var api *jetstream.APIError
	return errors.As(err, &api) && (api.ErrorCode == codeNoPeers || api.ErrorCode == codeNotLeader)
}

// silent reports whether an error says that a request was not answered in time.
func silent(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, nats.ErrTimeout)
}

// MayPass reports whether a cluster may do later what it refuses now.
func MayPass(err error) bool {
	var api *jetstream.APIError
	var refused *Refusal
	if errors.As(err, &refused) { // by the leader of a stream, see Leader
		return refused.Code == 503
	}
	if !errors.As(err, &api) {
		return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, nats.ErrTimeout) || errors.Is(err, nats.ErrNoResponders)
	}
	switch api.ErrorCode {
	case codeNoJetStream, codeNoneInAccount, codeInsufficient:
		return false
	case codeNoPeers, codeNotLeader, jetstream.JSErrCodeStreamNameInUse: // another process makes it at this moment
		return true
	}
	return api.Code == 503
}

// SilentError says that a read of a stream was not answered.
type SilentError struct {
	Stream string
	Seq    uint64        // from which on was read
	Waited time.Duration // for an answer
	Others bool          // meanwhile the stream's leader answered what else it was asked
}

func (e *SilentError) Error() string {
	text := fmt.Sprintf("stream %s did not answer a read from sequence %d on within %v", e.Stream, e.Seq, e.Waited)
	if e.Others {
		text += ", and answers others: a block of it may be unreadable, which skein store check names on the server's machine"
	}
	return text
}

// Unwrap returns a timeout, unless the stream's leader answers others.
func (e *SilentError) Unwrap() error {
	if e.Others {
		return nil
	}
	return nats.ErrTimeout
}

// silentTries is how many times a read may stay unanswered while the stream's leader answers
// other requests. Each try waits twice as long as the one before.
const silentTries = 3

// How long a read is waited for of a stream that is known to have an unreadable block: at first a
// share of the usual time, and at least so many times what the leader needs for an answer.
const (
	rottenShare  = 20
	rottenFactor = 20
	rottenFor    = time.Minute // from when that was found: a disk that was only slow is waited for then
)

// untilAnswered retries an unanswered read of a stream for [Config.Patience]: a server may be
// slow because of its disk or other work, or have to count first. It returns earlier if the
// stream is damaged: [Config.Damage] says so, or the stream's leader answers other requests.
// Once that was found of a stream, other reads of it that are not answered are given up sooner, for
// a minute.
func (c *Conn) untilAnswered(ctx context.Context, stream string, q GetRequest, read func(within time.Duration) error) error {
	others := 0 // tries that were not answered while others were
	began, within := time.Now(), c.readTimeout
	rotten := c.isRotten(stream)
	if rotten && c.cfg.Patience > 0 {
		within /= rottenShare
	}
	for ; ; within = min(2*within, max(c.cfg.Patience-time.Since(began), c.readTimeout)) {
		err := read(within)
		var silent *SilentError
		var incomplete *IncompleteError
		var unreadable *UnreadableError
		if errors.As(err, &unreadable) {
			if cause := c.cfg.Damage(stream, q.Seq, math.MaxUint64); cause != nil {
				unreadable.Cause = cause
			}
			return err
		}
		unanswered := errors.Is(err, nats.ErrNoResponders)
		if ctx.Err() != nil || !unanswered && !errors.As(err, &silent) && !errors.As(err, &incomplete) {
			return err
		}
		if cause := c.cfg.Damage(stream, q.Seq, math.MaxUint64); cause != nil {
			if silent != nil {
				c.rotten.Store(stream, time.Now())
			}
			return &UnreadableError{Stream: stream, Seq: q.Seq, Cause: cause}
		}
		if c.cfg.Patience == 0 || incomplete != nil {
			return err
		}
		asked := time.Now()
		switch alive, gone := c.answers(ctx, stream); {
		case gone:
			return fmt.Errorf("stream %s: %w", stream, jetstream.ErrStreamNotFound)
		case alive && !unanswered && rotten && within >= rottenFactor*time.Since(asked):
			others = silentTries
		case alive && !unanswered:
			if others++; !rotten && c.findsNone(ctx, stream, q) { // it need not wait as long again
				rotten, within = true, c.readTimeout/rottenShare
			}
		}
		if others >= silentTries && !c.isRotten(stream) {
			c.rotten.Store(stream, time.Now())
		}
		waited := time.Since(began)
		if silent != nil {
			silent.Waited, silent.Others = waited.Round(time.Millisecond), others >= silentTries
		}
		if others >= silentTries || waited >= c.cfg.Patience || !retry.Sleep(ctx, min(time.Second, c.readTimeout)) {
			return err
		}
	}
}

// isRotten reports whether a stream was found to have an unreadable block, not long ago.
func (c *Conn) isRotten(stream string) bool {
	found, _ := c.rotten.Load(stream)
	at, rotten := found.(time.Time)
	return rotten && time.Since(at) < c.rottenFor
}

// isUnreadable reports whether the server could not read a message of a stream that it had found,
// however often it tried, not long ago.
func (c *Conn) isUnreadable(stream string) bool {
	found, _ := c.unreadable.Load(stream)
	at, unreadable := found.(time.Time)
	return unreadable && time.Since(at) < c.rottenFor
}

// findsNone repeats an unanswered read of many messages as a read of one, and reports whether the
// server answers that there is none. A server with an unreadable block does: it answers the read of
// one, but cannot count what matches for the read of many.
func (c *Conn) findsNone(ctx context.Context, stream string, q GetRequest) bool {
	if !c.counts(ctx, q) {
		return false
	}
	q = GetRequest{Seq: q.Seq, Next: q.Next}
	body, err := json.Marshal(q)
	if err != nil {
		return false
	}
	got, _, err := c.directOnce(ctx, stream, q, body, c.readTimeout)
	return err == nil && len(got) == 0
}

// counts reports whether a server has to read blocks to count what follows a read of many messages,
// and is the only one that can answer: another copy may be readable.
func (c *Conn) counts(ctx context.Context, q GetRequest) bool {
	if q.Batch == 0 || q.Next == "" || q.Next == ">" || q.Start != nil || c.ReadOnly() {
		return false
	}
	several, err := c.Replicated(ctx)
	return err == nil && !several
}

// oneByOne reads many messages of a stream that has an unreadable block: single reads are answered
// at once. The last message that it returns claims that more follow, and after the
// last that can be read it returns none, as it does at the end: see noneLeft.
func (c *Conn) oneByOne(ctx context.Context, stream string, q GetRequest) (out []Message, err error) {
	for seq, bytes := q.Seq, 0; len(out) < q.Batch && (q.MaxBytes == 0 || bytes < q.MaxBytes); {
		got, err := c.Direct(ctx, stream, GetRequest{Seq: seq, Next: q.Next})
		if err != nil {
			return nil, err
		}
		if len(got) == 0 {
			break
		}
		out, seq, bytes = append(out, got[0]), got[0].Seq+1, bytes+len(got[0].Data)
	}
	if n := len(out); n > 0 {
		out[n-1].Pending = 1
	}
	return out, nil
}

// answers asks the leader of a stream for its state, which auditors may do too, and
// reports whether it answers, or says that there is no such stream.
func (c *Conn) answers(ctx context.Context, stream string) (alive, gone bool) {
	ctx, cancel := context.WithTimeout(ctx, c.readTimeout)
	defer cancel()
	_, err := c.js.Stream(ctx, stream)
	return err == nil, errors.Is(err, jetstream.ErrStreamNotFound)
}
