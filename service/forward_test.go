package service

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/rs/zerolog"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/embedded"
	"github.com/skein-threads/skein/internal/natstest"
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

// What a process owned is answered by the others while it stops, and afterwards.
func TestForward_ProcessStops(t *testing.T) {
	server := natstest.Start(t)
	stays, leaves := startProcess(t, server, "stays", Endpoint{}), startProcess(t, server, "leaves", Endpoint{})
	acquainted(t, stays, leaves)
	nc := natstest.Connect(t, server)
	stopped := make(chan struct{})
	var asking sync.WaitGroup
	var asked atomic.Int64
	for i := range 8 {
		asking.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-stopped:
					return
				default:
					m, err := nc.Request("skein.cmd.acme.thread.create", fmt.Append(nil, i, n), time.Minute)
					if err != nil || m.Header.Get(events.HeaderErrorCode) != "" {
						t.Errorf("a request while a process stops: %v %v", err, m)
						return
					}
					asked.Add(1)
				}
			}
		})
	}
	natstest.Eventually(t, "requests are forwarded", func() bool { return stays.sent.Load() > 100 && leaves.sent.Load() > 100 })
	if err := leaves.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	now := asked.Load()
	natstest.Eventually(t, "requests are answered after the stop", func() bool { return asked.Load() > now+100 })
	close(stopped)
	asking.Wait()
	for _, key := range keys(20) {
		if got := answerer(t, nc, key); got != "stays" {
			t.Errorf("%s was answered by %s", key, got)
		}
	}
}

// A process that stops says so: the others need not find out.
func TestForward_ProcessLeaves(t *testing.T) {
	server := natstest.Start(t)
	stays, leaves := startProcess(t, server, "stays", Endpoint{}), startProcess(t, server, "leaves", Endpoint{})
	acquainted(t, stays, leaves)
	if err := leaves.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	natstest.Eventually(t, "the other knows that it left", func() bool { return stays.peers.Load() == 1 })
}

// While a process stops, all that others forward to it, because they do not know yet, is
// answered by it, or returned to them.
func TestForward_StopLosesNothing(t *testing.T) {
	server := natstest.Start(t)
	p, nc := startProcess(t, server, "stops", Endpoint{InFlight: 1 << 20}), natstest.Connect(t, server)
	var answered, returned atomic.Int64
	for inbox, count := range map[string]*atomic.Int64{"answers": &answered, "returns": &returned} {
		_, err := nc.Subscribe(inbox, func(m *nats.Msg) {
			if code := m.Header.Get(events.HeaderErrorCode); code != "" {
				t.Errorf("it was refused: %s %s", code, m.Data)
			}
			count.Add(1)
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	m := nats.NewMsg(events.DefaultNames().Peer(p.forwards.peers.self) + ".cmd.acme.thread.create")
	m.Header.Set(events.HeaderReply, "answers")
	m.Reply = "returns"
	stopped := make(chan struct{})
	sent, begun := int64(0), false
	for done := false; !done || returned.Load() == 0; {
		select {
		case <-stopped:
			done = true
		default:
		}
		if sent-answered.Load()-returned.Load() > pendingRequests/8 {
			time.Sleep(time.Millisecond)
			continue
		}
		if err := nc.PublishMsg(m); err != nil {
			t.Fatal(err)
		}
		if sent++; !begun && answered.Load() > 1000 {
			begun = true
			go func() {
				defer close(stopped)
				if err := p.Stop(context.WithoutCancel(t.Context())); err != nil {
					t.Error(err)
				}
			}()
		}
	}
	natstest.Eventually(t, "everything is answered or returned", func() bool { return answered.Load()+returned.Load() == sent })
}

// While its connection to the others is stalled, or broken, a process answers what it would
// forward; and it stops in time.
func TestForward_ConnectionFails(t *testing.T) {
	for _, c := range []struct {
		name string
		fail func(stalling, *natstest.Proxy)
	}{
		{"stalled", func(s stalling, _ *natstest.Proxy) { close(s.stall) }},
		{"broken", func(_ stalling, p *natstest.Proxy) { p.Lead(t, "nats://127.0.0.1:1"); p.Cut() }},
	} {
		t.Run(c.name, func(t *testing.T) {
			server := natstest.Start(t)
			unable, proxy := stalling{make(chan struct{}), make(chan struct{})}, natstest.NewProxy(t, server.URL())
			nc, err := nats.Connect(proxy.URL(), nats.SetCustomDialer(unable), nats.ReconnectBufSize(-1), nats.MaxReconnects(-1))
			if err != nil {
				t.Fatal(err)
			}
			defer nc.Close()
			defer close(unable.release)
			failing := startProcessOn(t, server, nc, "failing", Endpoint{})
			other := startProcess(t, server, "other", Endpoint{})
			knowEachOther(t, failing, other)
			c.fail(unable, proxy)
			if c.name == "broken" {
				natstest.Eventually(t, "it knows", func() bool { return !failing.forwards.connected.Load() })
			}
			// What waits for the connection is taken back.
			answers := natstest.Connect(t, server)
			inbox, err := answers.SubscribeSync("answers")
			if err != nil || answers.Flush() != nil {
				t.Fatal(err)
			}
			waiting := 0
			for range 10 {
				m := &nats.Msg{Data: make([]byte, 60<<10), Header: nats.Header{events.HeaderReply: {"answers"}}}
				if failing.forwards.send(other.forwards.peers.self, forwarded{m, "skein.cmd.acme.thread.create"}, "acme", time.Now()) {
					waiting++
				}
			}
			for i := 1; i < waiting; i++ { // the first is being sent
				if _, err := inbox.NextMsg(natstest.Patience); err != nil {
					t.Fatalf("of %d requests: %v", waiting, err)
				}
			}
			// Lost is what is being sent when the connection stalls, and what the other sends to
			// this process while it is not known to be gone.
			asker, n, answered := natstest.Connect(t, server), 0, 0
			natstest.Eventually(t, "requests are answered, one after the other", func() bool {
				n++
				m, err := asker.Request("skein.cmd.acme.thread.create", []byte(fmt.Sprint("key", n, strings.Repeat("x", 60<<10))), 3*time.Second)
				answered++
				switch {
				case errors.Is(err, nats.ErrTimeout):
					answered = 0
				case err != nil || m.Header.Get(events.HeaderErrorCode) != "":
					t.Fatalf("request %d: %v %v", n, err, m)
				}
				return answered == 100
			})
			begun := time.Now()
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
			defer cancel()
			if err := failing.Stop(ctx); err != nil {
				t.Errorf("after %v: %v", time.Since(begun), err)
			}
			if ctx.Err() != nil {
				t.Error("the stop took all of its time")
			}
		})
	}
}

// A process that cannot answer owns nothing for some time, so that a request which is sent
// again is answered by another.
func TestForward_AilingProcess(t *testing.T) {
	server := natstest.Start(t)
	well, ails := startProcess(t, server, "well", Endpoint{}), startProcess(t, server, "ails", Endpoint{})
	ails.answerWith(nil, events.Errorf(events.Unavailable, "the log is gone: %w", errors.New("no connection")))
	acquainted(t, well, ails)
	nc := natstest.Connect(t, server)
	natstest.Eventually(t, "the ailing process was asked", func() bool {
		m, err := nc.Request("skein.cmd.acme.thread.create", []byte("key"+nats.NewInbox()), time.Minute)
		return err == nil && m.Header.Get(events.HeaderErrorCode) != ""
	})
	natstest.Eventually(t, "the other knows", func() bool { return well.peers.Load() == 1 })
	// It still receives what the queue group sends it, and forwards all of that.
	for _, key := range keys(40) {
		if got := answerer(t, nc, key); got != "well" {
			t.Fatalf("%s was answered by %s", key, got)
		}
	}
}

// A service that cannot be started leaves nothing behind that receives requests.
func TestForward_NotStarted(t *testing.T) {
	nc := natstest.Connect(t, natstest.Start(t))
	_, err := Serve(nc, events.DefaultNames(), Endpoint{
		Name: "not a name", Kind: "cmd", Version: "1.0.0", InFlight: 1, Forwarding: &Forwarding{Conn: nc, Key: keyOf},
	}, nil, zerolog.Nop())
	if err == nil {
		t.Fatal("a service was started")
	}
	if n := nc.NumSubscriptions(); n != 0 {
		t.Errorf("%d subscriptions are left", n)
	}
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

// A request that is forwarded to a process which has just died is answered by the one that
// forwarded it.
func TestForward_ProcessDies(t *testing.T) {
	server := natstest.Start(t)
	lives, dies := startProcess(t, server, "lives", Endpoint{}), startProcess(t, server, "dies", Endpoint{})
	acquainted(t, lives, dies)
	nc := natstest.Connect(t, server)
	var lost []string
	for _, key := range keys(40) {
		if answerer(t, nc, key) == "dies" {
			lost = append(lost, key)
		}
	}
	dies.nc.Close()
	dies.peer.Close()
	natstest.Eventually(t, "the server knows that it died", func() bool {
		_, err := nc.Request(events.DefaultNames().Peer(dies.forwards.peers.self)+".x", nil, time.Second)
		return errors.Is(err, nats.ErrNoResponders)
	})
	for i, key := range lost {
		if got := answerer(t, nc, key); got != "lives" {
			t.Errorf("%s was answered by %s", key, got)
		}
		if n := lives.returned.Load(); n != 1 {
			t.Fatalf("after %d requests %d were returned, want 1: then the process is known to have died", i+1, n)
		}
	}
	if lives.peers.Load() != 1 {
		t.Errorf("%d processes are alive", lives.peers.Load())
	}
}

// A process that says nothing for two seconds owns nothing more; one that announces itself again
// does.
func TestPeers_Silent(t *testing.T) {
	var told []string
	p := newPeers(events.DefaultNames(), func(m *nats.Msg) { told = append(told, string(m.Data)) }, func(int) {})
	now := time.Unix(1000, 0)
	announced := func(body string) { p.announced(&nats.Msg{Data: []byte(body)}, now) }
	owners := func() []string {
		got := map[string]bool{}
		for _, key := range keys(100) {
			got[p.owner(key)] = true
		}
		return slices.Sorted(func(yield func(string) bool) {
			for id := range got {
				if !yield(strings.Replace(id, p.self, "self", 1)) {
					return
				}
			}
		})
	}
	want := func(when string, want ...string) {
		t.Helper()
		slices.Sort(want)
		if got := owners(); !slices.Equal(got, want) {
			t.Errorf("%s: the owners are %v, want %v", when, got, want)
		}
	}
	want("at first", "self")
	announced(`{"id":"b"}`)
	announced(`{"id":"c"}`)
	want("with two more", "self", "b", "c")
	now = now.Add(aliveFor - time.Millisecond)
	announced(`{"id":"b"}`)
	p.announce(now, true)
	want("just before the time is over", "self", "b", "c")
	now = now.Add(time.Millisecond)
	p.announce(now, true)
	want("with one silent", "self", "b")
	announced(`{"id":"c"}`)
	want("with it back", "self", "b", "c")
	announced(`{"id":"b","leaving":true}`)
	want("with one gone", "self", "c")
	for _, bad := range []string{``, `{`, `{"id":""}`, `{"id":"a.b"}`, `{"id":">"}`, `{"id":"` + strings.Repeat("x", 33) + `"}`} {
		announced(bad)
	}
	want("after what is no announcement", "self", "c")
	for i := range 2 * mostPeers {
		announced(fmt.Sprintf(`{"id":"x%d"}`, i))
	}
	if n := len(p.owners.Load().ids); n != mostPeers+1 {
		t.Errorf("%d own something, want at most %d and this one", n, mostPeers)
	}
	p.announce(now, false)
	want("when it is not connected", "self")
	// One that cannot answer owns nothing for some time, and says so.
	announced(`{"id":"b"}`)
	told = nil
	p.ail(now)
	want("ailing", "b")
	now = now.Add(ailingFor - time.Millisecond)
	announced(`{"id":"c"}`)
	p.announce(now, true)
	now = now.Add(time.Millisecond)
	p.announce(now, true)
	want("well again", "c", "self")
	ails, serves := `{"id":"`+p.self+`","leaving":true}`, `{"id":"`+p.self+`"}`
	if !slices.Equal(told, []string{ails, ails, ails, serves}) {
		t.Errorf("the others were told %q", told)
	}
}

// When a process comes, only keys that it owns change hands.
func TestPeers_FewKeysMove(t *testing.T) {
	p := newPeers(events.DefaultNames(), func(*nats.Msg) {}, func(int) {})
	now := time.Unix(1000, 0)
	for _, id := range []string{"b", "c"} {
		p.announced(&nats.Msg{Data: []byte(`{"id":"` + id + `"}`)}, now)
	}
	before := map[string]string{}
	for _, key := range keys(4000) {
		before[key] = p.owner(key)
	}
	p.announced(&nats.Msg{Data: []byte(`{"id":"d"}`)}, now)
	moved := 0
	for key, was := range before {
		if is := p.owner(key); is != was {
			moved++
			if is != "d" {
				t.Fatalf("%s moved from %s to %s", key, was, is)
			}
		}
	}
	if moved < 800 || moved > 1200 {
		t.Errorf("%d of 4000 keys moved to the fourth process, want about a fourth", moved)
	}
}

// A request counts once for the rate of its tenant, wherever it is answered.
func TestForward_RateIsCountedOnce(t *testing.T) {
	server := natstest.Start(t)
	limits := Endpoint{Tenants: Limits{Rate: 0.001, Burst: 20}}
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
		natstest.Eventually(t, "all is published", func() bool { return len(f.outbox) == 0 })
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
		if err != nil || !bytes.Equal(m.Data, []byte(to.name)) {
			t.Errorf("what was forwarded to %s was answered with %v %v", to.name, m, err)
		}
	}
	if n, _, _ := log.Pending(); n != 0 {
		t.Errorf("%d answers were sent to the log", n)
	}
}
