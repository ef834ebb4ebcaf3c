package service

import (
	"bytes"
	"context"
	"errors"
	"fmt"
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
}

func (p *process) Peers(n int) { p.peers.Store(int64(n)) }

func (p *process) Forwarded(outcome string) {
	if outcome == forwardSent {
		p.sent.Add(1)
	} else {
		p.returned.Add(1)
	}
}

// keyOf makes the body of a request its key.
func keyOf(_, _ string, body []byte) string { return string(body) }

// startProcess starts a process, each with its connections, and stops it after the test.
func startProcess(t *testing.T, server *embedded.Server, name string, e Endpoint) *process {
	t.Helper()
	p := &process{name: name, nc: natstest.Connect(t, server), peer: natstest.Connect(t, server)}
	e.Name, e.Description, e.Kind, e.Version = "skein-test", "A test.", "cmd", "1.0.0"
	if e.InFlight == 0 {
		e.InFlight = 1000
	}
	e.Forwarding = &Forwarding{Conn: p.peer, Key: keyOf, Metrics: p}
	s, err := Serve(p.nc, events.DefaultNames(), e, func(context.Context, string, string, []byte, Meta) (any, error) {
		return Bytes(name), nil
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

// acquainted waits until each process knows all of them. From then on they do, whatever
// happens to them and however slow the machine is, until one leaves or is seen to be gone.
func acquainted(t *testing.T, processes ...*process) {
	t.Helper()
	natstest.Eventually(t, "the processes know each other", func() bool {
		return !slices.ContainsFunc(processes, func(p *process) bool { return p.peers.Load() != int64(len(processes)) })
	})
	for _, p := range processes {
		p.forwards.end()
		p.forwards.ended.Wait()
	}
	for _, p := range processes {
		for _, other := range processes {
			p.forwards.peers.hear(&nats.Msg{Data: []byte(`{"id":"` + other.forwards.peers.self + `"}`)}, time.Now())
		}
	}
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
	server := natstest.Start(t)
	names, nc := events.DefaultNames(), natstest.Connect(t, server)
	p := newPeers(nc, names, func(int) {})
	now := time.Unix(1000, 0)
	hear := func(body string) { p.hear(&nats.Msg{Data: []byte(body)}, now) }
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
	hear(`{"id":"b"}`)
	hear(`{"id":"c"}`)
	want("with two more", "self", "b", "c")
	now = now.Add(aliveFor - time.Millisecond)
	hear(`{"id":"b"}`)
	p.announce(now)
	want("just before the time is over", "self", "b", "c")
	now = now.Add(time.Millisecond)
	p.announce(now)
	want("with one silent", "self", "b")
	hear(`{"id":"c"}`)
	want("with it back", "self", "b", "c")
	hear(`{"id":"b","leaving":true}`)
	want("with one gone", "self", "c")
	for _, bad := range []string{``, `{`, `{"id":""}`, `{"id":"a.b"}`, `{"id":">"}`, `{"id":"` + strings.Repeat("x", 33) + `"}`} {
		hear(bad)
	}
	want("after what is no announcement", "self", "c")
	for i := range 2 * mostPeers {
		hear(fmt.Sprintf(`{"id":"x%d"}`, i))
	}
	if n := len(*p.alive.Load()); n != mostPeers+1 {
		t.Errorf("%d are alive, want at most %d and this one", n, mostPeers)
	}
}

// When a process comes, only keys that it owns change hands.
func TestPeers_FewKeysMove(t *testing.T) {
	p := newPeers(natstest.Connect(t, natstest.Start(t)), events.DefaultNames(), func(int) {})
	now := time.Unix(1000, 0)
	for _, id := range []string{"b", "c"} {
		p.hear(&nats.Msg{Data: []byte(`{"id":"` + id + `"}`)}, now)
	}
	before := map[string]string{}
	for _, key := range keys(4000) {
		before[key] = p.owner(key)
	}
	p.hear(&nats.Msg{Data: []byte(`{"id":"d"}`)}, now)
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

// A flood is not forwarded faster than a peer is to be given, and what cannot be forwarded is
// answered where it arrived.
func TestForward_IsBounded(t *testing.T) {
	server := natstest.Start(t)
	a, b := startProcess(t, server, "a", Endpoint{}), startProcess(t, server, "b", Endpoint{})
	acquainted(t, a, b)
	key := "key"
	for a.forwards.peers.owner(key) == a.forwards.peers.self {
		key += "x"
	}
	now := time.Now()
	r := func(body []byte) incoming {
		return forwarded{&nats.Msg{Data: body, Header: nats.Header{events.HeaderReply: {"_INBOX.unread"}}}, "skein.cmd.acme.thread.create"}
	}
	f, to := a.forwards, a.forwards.owner(r([]byte(key)), "acme", "thread.create")
	if to != b.forwards.peers.self {
		t.Fatalf("the owner is %q", to)
	}
	n := 0
	for f.send(to, r([]byte(key)), now) {
		n++
	}
	if n != mostKept {
		t.Errorf("%d requests were forwarded at once, want %d", n, mostKept)
	}
	now = now.Add(returnedWithin)
	if !f.send(to, r([]byte(key)), now) {
		t.Error("nothing is forwarded after a flood")
	}
	n = 1
	for f.send(to, r(make([]byte, 1<<20)), now) {
		n++
	}
	if n != mostKeptBytes>>20 {
		t.Errorf("%d requests of 1 MiB were forwarded at once, want %d", n, mostKeptBytes>>20)
	}
	now = now.Add(returnedWithin)
	if f.send(to, r(make([]byte, events.MaxPayload)), now) {
		t.Error("a request was forwarded that does not fit into a message with what is added to it")
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.forget(now.Add(returnedWithin)); len(f.kept) != 0 || f.bytes != 0 {
		t.Errorf("%d requests with %d bytes are kept for ever", len(f.kept), f.bytes)
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
