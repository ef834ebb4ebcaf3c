package audit

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/skein-threads/skein/eventlog"
	"github.com/skein-threads/skein/eventlog/assets"
	"github.com/skein-threads/skein/eventlog/streams"
	"github.com/skein-threads/skein/eventlog/timeline"
	"github.com/skein-threads/skein/internal/retry"
)

// retention determines which events the timeline must still have.
type retention struct {
	age    time.Duration // 0: unlimited
	state  jetstream.StreamState
	now    time.Time // of the server
	copies int
	stream jetstream.Stream
}

// expirySlack is how long before it expires a message may be missing: servers' clocks differ,
// and a check takes time.
const expirySlack = time.Minute

func (v *verifier) retention(ctx context.Context) (retention, error) {
	stream, err := v.log.JetStream().Stream(ctx, v.log.Config().Names.Stream(assets.TimelineStream))
	if err != nil {
		return retention{}, fmt.Errorf("read timeline: %w", err)
	}
	info := stream.CachedInfo()
	r := retention{age: info.Config.MaxAge, state: info.State, now: info.TimeStamp, copies: info.Config.Replicas, stream: stream}
	if r.now.IsZero() {
		r.now = time.Now()
	}
	return r, nil
}

// keeps reports whether a message stored at a time has not expired.
func (r retention) keeps(at time.Time) bool {
	return r.age == 0 || r.now.Sub(at) < r.age-expirySlack
}

// since returns the first commit that the timeline must still show: messages are published
// after the log stored the commit, and so expire later.
func (r retention) since(ctx context.Context, log *eventlog.Log, end uint64) (uint64, error) {
	if r.age == 0 {
		return 1, nil
	}
	return firstSince(ctx, log, r.now.Add(expirySlack-r.age), end)
}

// due reports whether the timeline must currently show a message of the log.
func (r retention) due(m streams.Message) bool {
	stored, err := time.Parse(time.RFC3339Nano, m.Header.Get(nats.JSTimeStamp))
	if err != nil {
		return false
	}
	r.now = time.Now()
	return r.keeps(stored)
}

// A lagging copy may answer the request for the last message.
const (
	lagTries = 10
	lagWait  = 200 * time.Millisecond
)

// endsWithin reports whether the timeline's last message is missing although it has not
// expired. A purged stream does not say when its last message was stored.
func (r retention) endsWithin(ctx context.Context) (bool, error) {
	if r.state.LastSeq == 0 || !r.state.LastTime.IsZero() && !r.keeps(r.state.LastTime) {
		return false, nil
	}
	for try := 1; ; try++ {
		_, err := r.stream.GetMsg(ctx, r.state.LastSeq)
		switch {
		case err == nil:
			return false, nil
		case !errors.Is(err, jetstream.ErrMsgNotFound):
			return false, fmt.Errorf("read the timeline's last message: %w", err)
		case r.copies <= 1 || try == lagTries:
			return true, nil
		}
		if !retry.Sleep(ctx, lagWait) {
			return false, context.Cause(ctx)
		}
	}
}

// cutOff reports messages that are missing from the timeline's end: only expiry removes its
// newest message, and a running relay continues after the gap. It returns the last commit that
// is shown.
func (v *verifier) cutOff(ctx context.Context, r retention) (shownTo uint64, err error) {
	last := uint64(0)
	for m, err := range timeline.Of(v.log).Readable(ctx, "*", "*") {
		if err != nil {
			return 0, fmt.Errorf("read timeline: %w", err)
		}
		last = max(last, m.Seq)
		if at, bad := parseShown(m); bad == nil {
			shownTo = max(shownTo, at.seq)
		}
	}
	f := Finding{Kind: KindTimeline, Detail: fmt.Sprintf(
		"the timeline's messages %d to %d are missing, and what they showed is not older than what it keeps; rebuild it with: skein replay timeline", last+1, r.state.LastSeq)}
	names := v.log.Config().Names
	for m, err := range v.log.Stored(ctx, names.Log(anyTenant(v.options.Tenant), "*"), max(shownTo, 1)) {
		if err != nil {
			return shownTo, v.damaged(ctx, fmt.Errorf("the log: %w", err), Finding{Kind: KindBroken})
		}
		if m.Seq > v.last {
			break
		}
		if !r.due(m) {
			continue
		}
		f.Tenant, f.Thread, _ = names.ParseLog(m.Subject)
		if f.Seq = m.Seq; m.Seq > shownTo { // or it was the end of that commit
			break
		}
	}
	if f.Seq != 0 { // else everything that it could show has expired
		v.find(f)
	}
	return shownTo, nil
}
