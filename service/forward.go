package service

import (
	"context"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"sync"
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
// be forwarded is answered by the process that received it: nothing that is stored may depend on it.
type Forwarding struct {
	// Conn carries announcements of the processes to each other and what they forward. It
	// is not the one that requests come on, so that a flood of these delays neither.
	Conn *nats.Conn
	// Key names what a request concerns: requests with the same key have the same owner.
	// Those without a key are not forwarded. It is called for each request, one after
	// another, with what callers sent.
	Key func(tenant, name string, body []byte) string
	// Metrics receives what happens; default none.
	Metrics ForwardingMetrics
}

// ForwardingMetrics receives how many processes there are, and where requests went: sent to
// the owner, or returned because the owner was gone.
type ForwardingMetrics interface {
	Peers(n int)
	Forwarded(outcome string)
}

// The outcomes of ForwardingMetrics.
const (
	forwardSent     = "sent"
	forwardReturned = "returned"
)

const (
	// returnedWithin is how long a forwarded request is kept, in case it cannot be delivered.
	// The server says so at once.
	returnedWithin = time.Second
	// mostKept and mostKeptBytes bound those: a flood of more buries no peer, and no memory.
	mostKept      = 8192
	mostKeptBytes = 32 << 20
)

// incoming is a request as it arrived, from a caller or a peer.
type incoming interface {
	Subject() string
	Headers() micro.Headers
	Data() []byte
	Reply() string
}

// forwarding is the part of a service that forwards requests and takes those of others. It
// is safe for concurrent use.
type forwarding struct {
	Forwarding
	names events.Names
	peers *peers
	take  func(incoming) // a request of a peer, or one that was returned; must return at once
	inbox string
	subs  []*nats.Subscription
	end   context.CancelFunc // of the announcements
	ended sync.WaitGroup

	mu    sync.Mutex // guards what follows
	first uint64     // the number of the first in kept
	kept  []kept
	bytes int
}

// kept is a request that was forwarded lately.
type kept struct {
	incoming // nil: it was returned
	to       string
	at       time.Time
	bytes    int
}

// startForwarding begins to take requests of peers, and then announces this process.
func startForwarding(ctx context.Context, f Forwarding, names events.Names, take func(incoming)) (*forwarding, error) {
	count := func(int) {}
	if f.Metrics != nil {
		count = f.Metrics.Peers
	} else {
		f.Metrics = noForwarding{}
	}
	fw := &forwarding{Forwarding: f, names: names, peers: newPeers(f.Conn, names, count), take: take, inbox: f.Conn.NewRespInbox()}
	for subject, handle := range map[string]nats.MsgHandler{
		names.Peer(fw.peers.self) + ".>": fw.receive,
		fw.inbox + ".*":                  fw.returned,
		names.Peers():                    func(m *nats.Msg) { fw.peers.hear(m, time.Now()) },
	} {
		sub, err := f.Conn.Subscribe(subject, handle)
		if err == nil {
			err = sub.SetPendingLimits(pendingRequests, pendingBytes)
			fw.subs = append(fw.subs, sub)
		}
		if err != nil {
			return nil, fmt.Errorf("subscribing to what peers forward: %w", err)
		}
	}
	if err := f.Conn.Flush(); err != nil {
		return nil, fmt.Errorf("subscribing to what peers forward: %w", err)
	}
	ctx, fw.end = context.WithCancel(ctx)
	fw.ended.Go(func() { fw.announce(ctx) })
	return fw, nil
}

// announce keeps the other processes informed until ctx ends.
func (f *forwarding) announce(ctx context.Context) {
	for {
		now := time.Now()
		f.peers.announce(now)
		f.mu.Lock()
		f.forget(now)
		f.mu.Unlock()
		if !retry.Sleep(ctx, announceEvery) {
			return
		}
	}
}

// owner returns the peer that a request is to be forwarded to; empty: it is answered here.
func (f *forwarding) owner(r incoming, tenant, name string) string {
	if f == nil || tenant == "" || f.peers.alone() {
		return ""
	}
	key := f.Key(tenant, name, r.Data())
	if key == "" {
		return ""
	}
	if to := f.peers.owner(key); to != f.peers.self {
		return to
	}
	return ""
}

// send forwards a request, and reports whether it did: then the request is no longer this
// process's, unless it is returned.
func (f *forwarding) send(to string, r incoming, now time.Time) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.forget(now)
	if len(f.kept) >= mostKept || f.bytes+len(r.Data()) > mostKeptBytes {
		return false
	}
	m := nats.NewMsg(f.names.Peer(to) + strings.TrimPrefix(r.Subject(), f.names.Prefix))
	maps.Copy(m.Header, nats.Header(r.Headers()))
	m.Header.Set(events.HeaderReply, r.Reply())
	m.Data, m.Reply = r.Data(), f.inbox+"."+strconv.FormatUint(f.first+uint64(len(f.kept)), 36)
	if f.Conn.PublishMsg(m) != nil { // as when it is too large with its header
		return false
	}
	f.kept = append(f.kept, kept{r, to, now, len(m.Data)})
	f.bytes += len(m.Data)
	f.Metrics.Forwarded(forwardSent)
	return true
}

// forget drops what was forwarded too long ago to be returned. Hold f.mu.
func (f *forwarding) forget(now time.Time) {
	for len(f.kept) > 0 && now.Sub(f.kept[0].at) >= returnedWithin {
		f.bytes -= f.kept[0].bytes
		f.kept[0].incoming = nil
		f.kept, f.first = f.kept[1:], f.first+1
	}
}

// returned takes back a request of which the server says that nobody is there to take it.
func (f *forwarding) returned(m *nats.Msg) {
	if m.Header.Get("Status") != "503" {
		return
	}
	n, err := strconv.ParseUint(strings.TrimPrefix(m.Subject, f.inbox+"."), 36, 64)
	if err != nil {
		return
	}
	f.mu.Lock()
	var r kept
	if i := n - f.first; i < uint64(len(f.kept)) {
		r = f.kept[i]
		f.kept[i].incoming = nil
	}
	f.mu.Unlock()
	if r.incoming == nil {
		return
	}
	f.peers.lost(r.to)
	f.Metrics.Forwarded(forwardReturned)
	f.take(r.incoming)
}

// receive takes a request that a peer forwarded.
func (f *forwarding) receive(m *nats.Msg) {
	f.take(forwarded{m, f.names.Prefix + strings.TrimPrefix(m.Subject, f.names.Peer(f.peers.self))})
}

// leave tells the others to answer their requests themselves, and forwards nothing more.
func (f *forwarding) leave(ctx context.Context) {
	if f == nil {
		return
	}
	f.end()
	f.ended.Wait()
	f.peers.leave()
	_ = f.Conn.FlushWithContext(ctx)
}

// drain ends the subscriptions of a process that has left. When it returns, all that was
// forwarded or returned to this process has been taken, unless ctx has ended.
func (f *forwarding) drain(ctx context.Context) {
	if f == nil {
		return
	}
	for _, sub := range f.subs {
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

// forwarded is a request that a peer received.
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
