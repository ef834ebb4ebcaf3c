package service

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/retry"
)

// Forwarding lets each of several processes that share a service answer the requests that
// concern what it owns. The queue group delivers a request to any of them; one that is not
// the owner forwards it, and the owner answers the caller.
//
// It is for speed alone. Processes need not agree on the owner, and a request that cannot
// be forwarded is answered by the process that received it: nothing that is stored may
// depend on it.
type Forwarding struct {
	// Conn carries announcements of the processes to each other and what they forward. It
	// is not the one that requests come on, so that a flood of these delays neither. It
	// should not keep what is published while it is not connected.
	Conn *nats.Conn
	// Key names what a request concerns: requests with the same key have the same owner.
	// Those without a key are not forwarded. It is called for each request within its
	// tenant's rate, one after another, with what callers sent.
	Key func(tenant, name string, body []byte) string
	// Metrics receives what happens; default none.
	Metrics ForwardingMetrics
}

// ForwardingMetrics counts the processes, and the requests that another process owns: forwarded to
// the owner, returned because the owner was gone, or executed here because they could not be
// forwarded.
type ForwardingMetrics interface {
	Peers(n int)
	Forwarded(outcome string)
}

// The outcomes of ForwardingMetrics.
const (
	forwardSent     = "sent"
	forwardReturned = "returned"
	forwardHere     = "here"
)

const (
	// largestForwarded is the size of a request, with its headers, that is forwarded; larger
	// ones are answered where they arrive.
	largestForwarded = 64 << 10
	// returnedWithin is how long a forwarded request is kept, in case it cannot be delivered.
	// The server says so at once, when it has received it.
	returnedWithin = time.Second
	// mostKept and mostKeptBytes bound those, and what waits to be sent: a flood of more
	// buries no peer, and no memory. One tenant has a fourth.
	mostKept      = 32 << 10
	mostKeptBytes = 64 << 20
	tenantsPart   = 4
	// ailsAfter is how many requests must fail, one after another, for a process to ail.
	ailsAfter = 16
	// partingTime bounds what a process that stops waits for its peers.
	partingTime = 5 * time.Second
)

// incoming is a request as it arrived over NATS: from a caller or a peer.
type incoming interface {
	Subject() string
	Headers() micro.Headers
	Data() []byte
	Reply() string
}

// forwarding is the part of a service that forwards requests and receives those of others.
// It is safe for concurrent use; nil forwards nothing.
type forwarding struct {
	Forwarding
	names   events.Names
	peers   *peers
	accept  func(incoming) // a request of a peer, or one that was returned; must return at once
	inbox   string
	subs    []*nats.Subscription
	outbox  *outbox
	end     context.CancelFunc // of the announcements
	running sync.WaitGroup
	blocked atomic.Bool  // the connection took nothing when this process left
	failed  atomic.Int32 // how many requests could not be answered, one after another

	mu   sync.Mutex // guards what follows
	kept keptRequests
}

// newForwarding returns what start starts.
func newForwarding(f Forwarding, names events.Names, accept func(incoming)) *forwarding {
	count := func(int) {}
	if f.Metrics != nil {
		count = f.Metrics.Peers
	} else {
		f.Metrics = noForwarding{}
	}
	fw := &forwarding{
		Forwarding: f, names: names, accept: accept, inbox: f.Conn.NewRespInbox(), end: func() {},
		kept: keptRequests{tenants: map[string]use{}},
	}
	fw.outbox = newOutbox(f.Conn, fw.takeBack)
	fw.peers = newPeers(names, func(m *nats.Msg) { fw.outbox.put(m) }, count)
	return fw
}

// start begins to receive what peers forward, and to announce this process until ctx ends.
// After an error call leave and drain.
func (f *forwarding) start(ctx context.Context) error {
	err := errors.Join(
		f.subscribe(f.names.Peer(f.peers.self)+".>", f.receive),
		f.subscribe(f.inbox+".*", f.returned),
		f.subscribe(f.names.Peers(), func(m *nats.Msg) { f.peers.announced(m, time.Now()) }),
		f.Conn.Flush(),
	)
	if err != nil {
		return fmt.Errorf("subscribing to what peers forward: %w", err)
	}
	ctx, f.end = context.WithCancel(ctx)
	f.running.Go(func() { f.announce(ctx) })
	return nil
}

func (f *forwarding) subscribe(subject string, handle nats.MsgHandler) error {
	sub, err := f.Conn.Subscribe(subject, handle)
	if err != nil {
		return err
	}
	f.subs = append(f.subs, sub)
	return sub.SetPendingLimits(pendingRequests, pendingBytes)
}

// announce keeps the other processes informed until ctx ends, and this one from waiting for
// a stalled connection.
func (f *forwarding) announce(ctx context.Context) {
	for {
		now := time.Now()
		f.peers.announce(now, f.outbox.connected.Load())
		f.mu.Lock()
		f.kept.forget(now)
		f.mu.Unlock()
		f.outbox.relieve(now)
		if !retry.Sleep(ctx, announceEvery) {
			return
		}
	}
}

// forward sends a request to the owner of its key, and reports whether it did: then the
// request is no longer this process's, unless it is returned. It returns at once.
func (f *forwarding) forward(r incoming, tenant, name string, now time.Time) bool {
	if tenant == "" {
		return false
	}
	key := f.Key(tenant, name, r.Data())
	if key == "" {
		return false
	}
	to := f.peers.owner(key)
	if to == f.peers.self {
		return false
	}
	outcome := forwardHere
	if f.send(to, r, tenant, now) {
		outcome = forwardSent
	}
	f.Metrics.Forwarded(outcome)
	return outcome == forwardSent
}

// send forwards a request to a peer, and reports whether it did.
func (f *forwarding) send(to string, r incoming, tenant string, now time.Time) bool {
	size := len(r.Subject()) + len(r.Reply()) + len(r.Data())
	for name, values := range r.Headers() {
		for _, v := range values {
			size += len(name) + len(v)
		}
	}
	if size > largestForwarded || !f.outbox.connected.Load() || f.outbox.stalled(now) {
		return false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.kept.forget(now)
	if !f.kept.room(tenant, size) {
		return false
	}
	m := nats.NewMsg(f.names.Peer(to) + strings.TrimPrefix(r.Subject(), f.names.Prefix))
	// Others stay behind: the server acts on some, with the permissions of who publishes them.
	for _, name := range []string{events.HeaderTraceParent, events.HeaderWait} {
		if v := r.Headers().Get(name); v != "" {
			m.Header.Set(name, v)
		}
	}
	m.Header.Set(events.HeaderReply, r.Reply())
	m.Data, m.Reply = r.Data(), f.inbox+"."+strconv.FormatUint(f.kept.next(), 36)
	if !f.outbox.put(m) {
		return false
	}
	f.kept.add(kept{m, tenant, to, now, size})
	return true
}

// returned takes back a request of which the server says that nobody is there to take it.
func (f *forwarding) returned(m *nats.Msg) {
	if m.Header.Get("Status") != "503" {
		return
	}
	f.mu.Lock()
	r := f.kept.remove(f.number(m.Subject))
	f.mu.Unlock()
	if r.msg == nil {
		return
	}
	f.peers.lost(r.to, time.Now())
	f.Metrics.Forwarded(forwardReturned)
	f.accept(f.incoming(r.msg))
}

// takeBack answers here what was not published. Announcements are lost.
func (f *forwarding) takeBack(m *nats.Msg) {
	if m.Reply == "" {
		return
	}
	f.mu.Lock()
	f.kept.remove(f.number(m.Reply))
	f.mu.Unlock()
	f.Metrics.Forwarded(forwardReturned)
	f.accept(f.incoming(m))
}

// number returns the number of a request, from its subject in the inbox.
func (f *forwarding) number(subject string) uint64 {
	n, err := strconv.ParseUint(strings.TrimPrefix(subject, f.inbox+"."), 36, 64)
	if err != nil {
		return 0 // which none has
	}
	return n
}

// receive accepts a request that a peer forwarded.
func (f *forwarding) receive(m *nats.Msg) { f.accept(f.incoming(m)) }

// incoming returns the request in a forwarded message.
func (f *forwarding) incoming(m *nats.Msg) incoming {
	_, rest, _ := strings.Cut(strings.TrimPrefix(m.Subject, f.names.Peer("")), ".")
	return forwarded{m, f.names.Prefix + "." + rest}
}

// answered counts whether a request could be answered. A process that fails again and again,
// and at nothing else succeeds, ails: it owns nothing for some time, so that a request which is
// sent again is answered by another.
func (f *forwarding) answered(ok bool) {
	switch {
	case f == nil:
	case ok:
		f.failed.Store(0)
	case f.failed.Add(1) >= ailsAfter:
		f.failed.Store(0)
		f.peers.ail(time.Now())
	}
}

// leave tells the others to answer their requests themselves, and forwards nothing more.
func (f *forwarding) leave(ctx context.Context) {
	if f == nil {
		return
	}
	f.end()
	f.running.Wait()
	f.peers.leave(time.Now())
	ctx, cancel := context.WithTimeout(ctx, partingTime)
	defer cancel()
	if !f.outbox.close(ctx) {
		f.blocked.Store(true)
		return
	}
	if f.outbox.connected.Load() {
		_ = f.Conn.FlushWithContext(ctx)
	}
}

// drain ends the subscriptions of a process that has left. When it returns, all that was
// forwarded or returned to this process has been accepted, unless the connection is broken,
// or ctx or partingTime has ended.
func (f *forwarding) drain(ctx context.Context) {
	if f == nil || f.blocked.Load() { // as would be each call to the connection
		return
	}
	ctx, cancel := context.WithTimeout(ctx, partingTime)
	defer cancel()
	for _, sub := range f.subs {
		if !f.outbox.connected.Load() {
			_ = sub.Unsubscribe() // it fails only if it has ended
			continue
		}
		closed := sub.StatusChanged(nats.SubscriptionClosed)
		if sub.Drain() != nil {
			continue // it has ended, or its connection has
		}
		select {
		case <-closed:
		case <-ctx.Done():
		}
	}
}

// forwarded is a request as one process sends it to another.
type forwarded struct {
	msg     *nats.Msg
	subject string
}

func (r forwarded) Subject() string        { return r.subject }
func (r forwarded) Headers() micro.Headers { return micro.Headers(r.msg.Header) }
func (r forwarded) Data() []byte           { return r.msg.Data }
func (r forwarded) Reply() string          { return r.msg.Header.Get(events.HeaderReply) }

// noForwarding receives nothing.
type noForwarding struct{}

func (noForwarding) Peers(int)        {}
func (noForwarding) Forwarded(string) {}
