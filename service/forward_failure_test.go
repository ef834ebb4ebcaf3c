package service

import (
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
	"github.com/skein-threads/skein/internal/natstest"
)

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

// What others forwarded to a process before it stopped, because they did not know yet, is
// answered by it, and what they forward later is returned to them.
func TestForward_StopLosesNothing(t *testing.T) {
	server := natstest.Start(t)
	busy := make(chan struct{})
	p := startProcess(t, server, "stops", Endpoint{Metrics: limitedFunc(func() { <-busy })})
	nc := natstest.Connect(t, server)
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
	forward := func(n int, answerTo string) {
		t.Helper()
		m := nats.NewMsg(events.DefaultNames().Peer(p.forwards.peers.self) + ".cmd.acme.thread.create")
		m.Header.Set(events.HeaderReply, answerTo)
		m.Reply = "returns"
		for range n {
			if err := nc.PublishMsg(m); err != nil {
				t.Fatal(err)
			}
		}
		if err := nc.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	forward(1, "skein.log.x") // which it refuses, and that takes time: the others wait
	forward(100, "answers")
	stopped := make(chan error)
	go func() { stopped <- p.Stop(context.WithoutCancel(t.Context())) }()
	requests := p.forwards.subs[0]
	natstest.Eventually(t, "it takes no more", func() bool { return requests.IsDraining() || !requests.IsValid() })
	close(busy)
	if err := natstest.Within(t, "the end of the stop", stopped); err != nil {
		t.Error(err)
	}
	natstest.Eventually(t, "all are answered", func() bool { return answered.Load() == 100 })
	forward(100, "answers")
	natstest.Eventually(t, "all are returned", func() bool { return returned.Load() == 100 })
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
			unable, proxy := newStalling(), natstest.NewProxy(t, server.URL())
			nc := natstest.Dial(t, proxy.URL(), nats.SetCustomDialer(unable.dialer()), nats.ReconnectBufSize(-1), nats.MaxReconnects(-1))
			defer close(unable.release)
			failing := startProcessOn(t, server, nc, "failing", Endpoint{})
			other := startProcess(t, server, "other", Endpoint{})
			knowEachOther(t, failing, other)
			c.fail(unable, proxy)
			if c.name == "broken" {
				natstest.Eventually(t, "it knows", func() bool { return !failing.forwards.outbox.connected.Load() })
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
				m, err := asker.Request("skein.cmd.acme.thread.create", []byte(fmt.Sprint("key", n, strings.Repeat("x", 60<<10))), 5*time.Second)
				answered++
				switch {
				case errors.Is(err, nats.ErrTimeout):
					answered = 0
				case err != nil || m.Header.Get(events.HeaderErrorCode) != "":
					t.Fatalf("request %d: %v %v", n, err, m)
				}
				return answered == 40
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

// A process that cannot answer, and at nothing succeeds, owns nothing for some time, so that a
// request which is sent again is answered by another. Where all fail, all own something.
func TestForward_AilingProcess(t *testing.T) {
	server := natstest.Start(t)
	well, ails := startProcess(t, server, "well", Endpoint{}), startProcess(t, server, "ails", Endpoint{})
	acquainted(t, well, ails)
	nc := natstest.Connect(t, server)
	unavailable := events.Errorf(events.Unavailable, "the log is gone: %w", errors.New("no connection"))
	ails.answerWith(nil, unavailable)
	failed, row := 0, 0
	natstest.Eventually(t, "the process that is well answers all", func() bool {
		m, err := nc.Request("skein.cmd.acme.thread.create", []byte("key"+nats.NewInbox()), time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		row++
		if m.Header.Get(events.HeaderErrorCode) != "" {
			failed++
			row = 0
		}
		return row == 100
	})
	if failed < ailsAfter {
		t.Errorf("it ails after %d requests, want %d", failed, ailsAfter)
	}
	well.answerWith(nil, unavailable)
	natstest.Eventually(t, "both ail", func() bool {
		_, err := nc.Request("skein.cmd.acme.thread.create", []byte("key"), time.Minute)
		return err == nil && len(*well.forwards.peers.owners.Load()) == 2 && len(*ails.forwards.peers.owners.Load()) == 2
	})
}

// A few failures among what succeeds are no reason to give threads away.
func TestForward_SomeRequestsFail(t *testing.T) {
	server := natstest.Start(t)
	p := startProcess(t, server, "a", Endpoint{})
	for range 4 {
		for range ailsAfter - 1 {
			p.forwards.answered(false)
		}
		p.forwards.answered(true)
	}
	if got := *p.forwards.peers.owners.Load(); !slices.Equal(got, []string{p.forwards.peers.self}) {
		t.Errorf("the owners are %q", got)
	}
}

// What waited too long to be sent, because the connection is slow, is answered here, and not
// late by another.
func TestForward_WaitedTooLong(t *testing.T) {
	server := natstest.Start(t)
	unable := newStalling()
	nc := natstest.Dial(t, server.URL(), nats.SetCustomDialer(unable.dialer()))
	slow, other := startProcessOn(t, server, nc, "slow", Endpoint{}), startProcess(t, server, "other", Endpoint{})
	acquainted(t, slow, other)
	asker := natstest.Connect(t, server)
	inbox, err := asker.SubscribeSync("answers")
	if err != nil || asker.Flush() != nil {
		t.Fatal(err)
	}
	close(unable.stall)
	m := &nats.Msg{Data: make([]byte, 60<<10), Header: nats.Header{events.HeaderReply: {"answers"}}}
	begun, n := time.Now(), 0
	for range 10 {
		if slow.forwards.send(other.forwards.peers.self, forwarded{m, "skein.cmd.acme.thread.create"}, "acme", begun) {
			n++
		}
	}
	time.Sleep(time.Until(begun.Add(2 * lateAfter))) // so long they wait
	close(unable.release)
	by := map[string]int{}
	for range n {
		answer, err := inbox.NextMsg(natstest.Patience)
		if err != nil {
			t.Fatal(err)
		}
		by[string(answer.Data)]++
	}
	if by["other"] > 1 || n < 2 { // the first was being sent
		t.Errorf("of %d requests %v answered", n, by)
	}
}

// A service that cannot be started leaves nothing behind that receives requests.
func TestForward_NotStarted(t *testing.T) {
	nc := natstest.Connect(t, natstest.Start(t))
	for _, e := range []Endpoint{{Name: "not a name", Pattern: ">"}, {Name: "skein-test", Pattern: "no subject"}} {
		e.Kind, e.Version, e.InFlight, e.Forwarding = "cmd", "1.0.0", 1, &Forwarding{Conn: nc, Key: keyOf}
		if _, err := Serve(nc, events.DefaultNames(), e, nil, zerolog.Nop()); err == nil {
			t.Fatalf("%q was started", e.Name)
		}
		natstest.Eventually(t, "no subscription is left", func() bool { return nc.NumSubscriptions() == 0 })
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
	for _, subject := range []string{events.DefaultNames().Peer(dies.forwards.peers.self) + ".x", "$SRV.PING.skein-test." + dies.service.Info().ID} {
		natstest.Eventually(t, "the server knows that it died", func() bool {
			_, err := nc.Request(subject, nil, time.Second)
			return errors.Is(err, nats.ErrNoResponders)
		})
	}
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

// What may have been sent is not taken back: it would be done twice.
func TestForward_WriteFails(t *testing.T) {
	server := natstest.Start(t)
	fail := make(chan struct{})
	nc := natstest.Dial(t, server.URL(), nats.SetCustomDialer(failing(fail)), nats.ReconnectBufSize(-1))
	a, b := startProcessOn(t, server, nc, "a", Endpoint{}), startProcess(t, server, "b", Endpoint{})
	acquainted(t, a, b)
	asker := natstest.Connect(t, server)
	inbox, err := asker.SubscribeSync("answers")
	if err != nil || asker.Flush() != nil {
		t.Fatal(err)
	}
	close(fail)
	m := &nats.Msg{Data: make([]byte, 60<<10), Header: nats.Header{events.HeaderReply: {"answers"}}}
	if !a.forwards.send(b.forwards.peers.self, forwarded{m, "skein.cmd.acme.thread.create"}, "acme", time.Now()) {
		t.Fatal("it was not forwarded")
	}
	answer, err := inbox.NextMsg(natstest.Patience)
	if err != nil || string(answer.Data) != "b" {
		t.Fatalf("it was answered with %v %v", answer, err)
	}
	if !a.forwards.outbox.close(t.Context()) {
		t.Fatal("it is still being sent")
	}
	if n := a.returned.Load(); n != 0 {
		t.Errorf("%d requests were taken back, and done", n)
	}
}
