package service

import (
	"context"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/rs/zerolog"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/embedded"
	"github.com/skein-threads/skein/internal/natstest"
	"github.com/skein-threads/skein/quota"
)

// process is a service as one of several processes has it. Its answers are its name.
type process struct {
	*Service
	name     string
	nc, peer *nats.Conn
	sent     atomic.Int64
	returned atomic.Int64
	peers    atomic.Int64
	answers  atomic.Pointer[answer]
}

// answer is what a process answers.
type answer struct {
	value any
	err   error
}

func (p *process) answerWith(value any, err error) { p.answers.Store(&answer{value, err}) }

func (p *process) Peers(n int) { p.peers.Store(int64(n)) }

func (p *process) Forwarded(outcome string) {
	switch outcome {
	case forwardSent:
		p.sent.Add(1)
	case forwardReturned:
		p.returned.Add(1)
	}
}

// keyOf makes the body of a request its key.
func keyOf(_, _ string, body []byte) string { return string(body) }

// startProcess starts a process, each with its connections, and stops it after the test.
func startProcess(t *testing.T, server *embedded.Server, name string, e Endpoint) *process {
	t.Helper()
	return startProcessOn(t, server, natstest.Connect(t, server), name, e)
}

func startProcessOn(t *testing.T, server *embedded.Server, peer *nats.Conn, name string, e Endpoint) *process {
	t.Helper()
	p := &process{name: name, nc: natstest.Connect(t, server), peer: peer}
	p.answerWith(Bytes(name), nil)
	e.Name, e.Description, e.Kind, e.Version = "skein-test", "A test.", "cmd", "1.0.0"
	if e.InFlight == 0 {
		e.InFlight = 1000
	}
	e.Forwarding = &Forwarding{Conn: p.peer, Key: keyOf, Metrics: p}
	s, err := Serve(p.nc, events.DefaultNames(), e, func(context.Context, string, string, []byte, Meta) (any, error) {
		got := p.answers.Load()
		return got.value, got.err
	}, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	p.Service = s
	t.Cleanup(func() {
		if err := s.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return p
}

// acquainted waits until the processes know each other. From then on they do, whatever
// happens to them and however slow the machine is, until one leaves or is seen to be gone.
func acquainted(t *testing.T, processes ...*process) {
	t.Helper()
	knowEachOther(t, processes...)
	for _, p := range processes {
		p.forwards.end()
		p.forwards.running.Wait()
	}
	for _, p := range processes {
		for _, other := range processes {
			p.forwards.peers.announced(&nats.Msg{Data: []byte(`{"id":"` + other.forwards.peers.self + `"}`)}, time.Now())
		}
	}
}

// knowEachOther waits until each process knows all of them.
func knowEachOther(t *testing.T, processes ...*process) {
	t.Helper()
	natstest.Eventually(t, "the processes know each other", func() bool {
		return !slices.ContainsFunc(processes, func(p *process) bool { return p.peers.Load() != int64(len(processes)) })
	})
}

// answerer sends a request, and returns the name of the process that answered it.
func answerer(t *testing.T, nc *nats.Conn, key string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	m, err := nc.RequestWithContext(ctx, "skein.cmd.acme.thread.create", []byte(key))
	if err != nil {
		t.Fatalf("the request of %s: %v", key, err)
	}
	if code := m.Header.Get(events.HeaderErrorCode); code != "" {
		t.Fatalf("the request of %s: %s %s", key, code, m.Data)
	}
	return string(m.Data)
}

func keys(n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprint("key", i)
	}
	return all
}

// Whichever process receives a request, the owner of its key answers it, and the keys are
// shared among all.
func TestForward_OwnerAnswers(t *testing.T) {
	server := natstest.Start(t)
	all := []*process{startProcess(t, server, "a", Endpoint{}), startProcess(t, server, "b", Endpoint{}), startProcess(t, server, "c", Endpoint{})}
	acquainted(t, all...)
	nc := natstest.Connect(t, server)
	owns := map[string]int{}
	for _, key := range keys(60) {
		owner := answerer(t, nc, key)
		owns[owner]++
		for range 5 {
			if got := answerer(t, nc, key); got != owner {
				t.Fatalf("%s was answered by %s, and before by %s", key, got, owner)
			}
		}
	}
	if len(owns) != 3 {
		t.Errorf("the keys are answered by %v", owns)
	}
	if all[0].sent.Load()+all[1].sent.Load()+all[2].sent.Load() == 0 {
		t.Error("nothing was forwarded")
	}
	answerer(t, nc, "") // without a key any may answer
}

// Of a request's headers only those that mean something to a service are forwarded: others
// would be published with Skein's permissions, and the server acts on some. A client can hide
// one from the server, which ends headers at CR and LF, where a client's library does at LF.
func TestForward_Headers(t *testing.T) {
	server := natstest.Start(t)
	a, b := startProcess(t, server, "a", Endpoint{}), startProcess(t, server, "b", Endpoint{})
	acquainted(t, a, b)
	nc := natstest.Connect(t, server)
	forwards, err := nc.SubscribeSync("skein.peer.>")
	if err != nil {
		t.Fatal(err)
	}
	traced, err := nc.SubscribeSync("skein.log.>")
	if err != nil {
		t.Fatal(err)
	}
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
	raw, err := net.Dial("tcp", strings.TrimPrefix(server.URL(), "nats://"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = raw.Close() }()
	header := "NATS/1.0\r\nX: a\nNats-Trace-Dest: skein.log.globex.T-1\r\nskein-reply: elsewhere\r\n" +
		"traceparent: trace\r\nSkein-Wait-Ms: 5000\r\nNats-Msg-Id: 1\r\n\r\n"
	if _, err := fmt.Fprint(raw, "CONNECT {\"verbose\":false,\"headers\":true}\r\n"); err != nil {
		t.Fatal(err)
	}
	for i := range 100 {
		body := fmt.Sprint("key", i)
		if _, err := fmt.Fprintf(raw, "HPUB skein.cmd.acme.thread.create %d %d\r\n%s%s\r\n", len(header), len(header)+len(body), header, body); err != nil {
			t.Fatal(err)
		}
	}
	natstest.Eventually(t, "some are forwarded", func() bool { return a.sent.Load()+b.sent.Load() > 20 })
	for n := a.sent.Load() + b.sent.Load(); n > 0; n-- {
		m, err := forwards.NextMsg(time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		got := slices.Sorted(maps.Keys(m.Header))
		if !slices.Equal(got, []string{events.HeaderReply, events.HeaderWait, events.HeaderTraceParent}) || m.Header.Get(events.HeaderReply) != "" {
			t.Fatalf("a request was forwarded with %q", m.Header)
		}
	}
	if n, _, _ := traced.Pending(); n != 0 {
		t.Errorf("the server wrote %d traces into the log", n)
	}
}

// A request counts once for the rate of its tenant, wherever it is answered.
func TestForward_RateIsCountedOnce(t *testing.T) {
	server := natstest.Start(t)
	limits := Endpoint{Tenants: quota.Limits{Rate: 0.001, Burst: 20}}
	a, b := startProcess(t, server, "a", limits), startProcess(t, server, "b", limits)
	acquainted(t, a, b)
	nc := natstest.Connect(t, server)
	admitted := 0
	for i := range 200 {
		m, err := nc.Request("skein.cmd.acme.thread.create", fmt.Append(nil, "key", i), time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		if m.Header.Get(events.HeaderErrorCode) == "" {
			admitted++
		}
	}
	if admitted != 40 {
		t.Errorf("%d of 200 requests were admitted, want 20 by each process", admitted)
	}
}

// A flood is not forwarded faster than a peer is to be sent, nor by one tenant so fast that
// those of others are not; and what cannot be forwarded is answered where it arrived.
func TestForward_IsBounded(t *testing.T) {
	server := natstest.Start(t)
	a, b := startProcess(t, server, "a", Endpoint{}), startProcess(t, server, "b", Endpoint{})
	acquainted(t, a, b)
	f, to, now := a.forwards, b.forwards.peers.self, time.Now().Add(-time.Hour) // nothing seems to be stalled
	r := func(size int) incoming {
		return forwarded{&nats.Msg{Data: make([]byte, size), Header: nats.Header{events.HeaderReply: {"_INBOX.unread"}}}, "skein.cmd.acme.thread.create"}
	}
	next := func() { // a time at which what was forwarded before is published, and forgotten
		natstest.Eventually(t, "all is published", func() bool { return len(f.outbox.queue) == 0 })
		now = now.Add(returnedWithin)
	}
	all := func(tenant string, size int) (n int) {
		for f.send(to, r(size), tenant, now) {
			n++
		}
		return n
	}
	for range 2 {
		next()
		for i := range tenantsPart {
			if n := all(fmt.Sprint("tenant", i), 1); n != mostKept/tenantsPart {
				t.Errorf("%d requests of tenant %d were forwarded at once, want %d", n, i, mostKept/tenantsPart)
			}
		}
		if n := all("one more", 1); n != 0 {
			t.Errorf("%d requests of one more tenant were forwarded", n)
		}
	}
	next()
	const large = 60 << 10
	if n, want := all("acme", large), mostKeptBytes/tenantsPart/large; n > want || n < want-1 {
		t.Errorf("%d requests of 60 KiB were forwarded at once, want %d", n, want)
	}
	next()
	if f.send(to, r(largestForwarded), "acme", now) {
		t.Error("a large request was forwarded")
	}
	m := &nats.Msg{Header: nats.Header{"X": {strings.Repeat("x", largestForwarded)}}}
	if f.send(to, forwarded{m, "skein.cmd.acme.thread.create"}, "acme", now) {
		t.Error("a request with large headers was forwarded")
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.kept.forget(now)
	if k := f.kept; len(k.list) != 0 || k.total != (use{}) || len(k.tenants) != 0 {
		t.Errorf("%d requests are kept for ever: %+v %v", len(k.list), k.total, k.tenants)
	}
}

// A peer answers nothing on a subject on which an answer would do harm, and does not forward
// what was forwarded to it.
func TestForward_ReplySubjects(t *testing.T) {
	server := natstest.Start(t)
	a, b := startProcess(t, server, "a", Endpoint{}), startProcess(t, server, "b", Endpoint{})
	acquainted(t, a, b)
	nc := natstest.Connect(t, server)
	log, err := nc.SubscribeSync("skein.log.>")
	if err != nil {
		t.Fatal(err)
	}
	inbox := nats.NewInbox()
	answers, err := nc.SubscribeSync(inbox)
	if err != nil {
		t.Fatal(err)
	}
	for _, to := range []*process{a, b} {
		for _, reply := range []string{"skein.log.acme.T-1", inbox} {
			m := nats.NewMsg(events.DefaultNames().Peer(to.forwards.peers.self) + ".cmd.acme.thread.create")
			m.Header.Set(events.HeaderReply, reply)
			m.Data = []byte("key")
			if err := nc.PublishMsg(m); err != nil {
				t.Fatal(err)
			}
		}
		m, err := answers.NextMsg(time.Minute)
		if err != nil || string(m.Data) != to.name {
			t.Errorf("what was forwarded to %s was answered with %v %v", to.name, m, err)
		}
	}
	if n, _, _ := log.Pending(); n != 0 {
		t.Errorf("%d answers were sent to the log", n)
	}
}
