package commands

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go"
	"github.com/rs/zerolog"

	"github.com/skein-threads/skein/commands/thread"
	"github.com/skein-threads/skein/eventlog"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/embedded"
	"github.com/skein-threads/skein/internal/natstest"
	"github.com/skein-threads/skein/schema"
	"github.com/skein-threads/skein/service"
)

const tenant = "acme"

// world is a server with a dispatcher on it, and more of them if asked for.
type world struct {
	t      testing.TB
	server *embedded.Server
	nc     *nats.Conn
	log    *eventlog.Log
	d      *Dispatcher
}

func newWorld(t testing.TB, cfg Config) *world {
	t.Helper()
	w := &world{t: t, server: natstest.Start(t)}
	w.nc = natstest.Connect(t, w.server)
	w.log = openLog(t, w.nc)
	if err := w.log.Ensure(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.d = newDispatcher(t, w.log, cfg)
	return w
}

func openLog(t testing.TB, nc *nats.Conn) *eventlog.Log {
	t.Helper()
	log, err := eventlog.Open(nc, eventlog.Config{Patience: natstest.Patience}, zerolog.Nop(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(log.Close)
	return log
}

func newDispatcher(t testing.TB, log *eventlog.Log, cfg Config) *Dispatcher {
	t.Helper()
	validator, err := schema.New()
	if err != nil {
		t.Fatal(err)
	}
	if cfg.Secret, err = log.Secret(t.Context(), eventlog.WriterSecret); err != nil {
		t.Fatal(err)
	}
	return NewDispatcher(log, validator, cfg, zerolog.Nop(), nil)
}

// another returns a dispatcher on a connection of its own, like that of another process.
func (w *world) another(cfg Config) *Dispatcher {
	w.t.Helper()
	return newDispatcher(w.t, openLog(w.t, natstest.Connect(w.t, w.server)), cfg)
}

// ask does a command by a request as it is on the wire.
func ask(t testing.TB, d *Dispatcher, name, body string) (*events.Reply, *events.Error) {
	t.Helper()
	reply, err := d.Do(t.Context(), tenant, name, []byte(body), Meta{})
	if err == nil {
		return reply, nil
	}
	var e *events.Error
	if !errors.As(err, &e) {
		t.Errorf("%s: %T: %v", name, err, err)
		e = events.AsError(err)
	}
	return nil, e
}

// must does a command that has to be done.
func must(t testing.TB, d *Dispatcher, name, body string) *events.Reply {
	t.Helper()
	reply, err := ask(t, d, name, body)
	if err != nil {
		t.Fatalf("%s %.300s: %v (%v)", name, body, err, err.Cause)
	}
	return reply
}

// refused runs a command that must be refused with that code, and returns the refusal.
func refused(t testing.TB, d *Dispatcher, code events.Code, name, body string) *events.Error {
	t.Helper()
	reply, err := ask(t, d, name, body)
	if err == nil {
		t.Fatalf("%s %.300s was done: %+v", name, body, reply)
	}
	if err.Code != code {
		t.Fatalf("%s %.300s: %v (%v), want %s", name, body, err, err.Cause, code)
	}
	return err
}

// create creates a thread and returns its id.
func create(t testing.TB, d *Dispatcher) string {
	t.Helper()
	return must(t, d, "thread.create", `{}`).ThreadID
}

// on returns a request for a thread.
func on(threadID, data string) string {
	return `{"threadId":` + strconv.Quote(threadID) + `,"data":` + data + `}`
}

// with returns the same with a command id.
func with(id, threadID, data string) string {
	return `{"commandId":` + strconv.Quote(id) + `,"threadId":` + strconv.Quote(threadID) + `,"data":` + data + `}`
}

const hello = `{"item":{"type":"message","role":"user","content":[{"type":"input_text","text":"hello"}]}}`

// lastSeq returns the sequence of the log's last commit.
func (w *world) lastSeq() uint64 {
	w.t.Helper()
	seq, err := w.log.LastSeq(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	return seq
}

// commits reads an aggregate from the log, and checks that its chain, versions
// and times hold.
func (w *world) commits(aggregate string) []*events.Commit {
	w.t.Helper()
	var list []*events.Commit
	checker, chain, seq := events.NewTimelineChecker(), "", uint64(0)
	for c, err := range w.log.Thread(w.t.Context(), tenant, aggregate, 1) {
		if err != nil {
			w.t.Fatal(err)
		}
		if want := events.Chain(chain, c.Body); c.Chain != want || c.Seq <= seq {
			w.t.Fatalf("commit %d (after %d) of %s breaks the chain", c.Seq, seq, aggregate)
		}
		chain, seq = c.Chain, c.Seq
		for i := range c.Events {
			if err := checker.Check(&c.Events[i]); err != nil {
				w.t.Fatal(err)
			}
		}
		list = append(list, c)
	}
	return list
}

// byCommand counts the events of an aggregate that each command made.
func (w *world) byCommand(aggregate string) map[string]int {
	w.t.Helper()
	count := map[string]int{}
	for _, c := range w.commits(aggregate) {
		for i := range c.Events {
			count[c.Events[i].CommandID]++
		}
	}
	return count
}

// states compares the state that a dispatcher holds of a thread with one that
// is made from the log.
func (w *world) sameAsLog(d *Dispatcher, id string) {
	w.t.Helper()
	fresh := &thread.State{}
	for _, c := range w.commits(id) {
		thread.Apply(fresh, c)
	}
	e := &entry{tenant: tenant, id: id}
	if err := d.load(w.t.Context(), e); err != nil {
		w.t.Fatal(err)
	}
	held, err := e.state.Encode()
	if err != nil {
		w.t.Fatal(err)
	}
	made, err := fresh.Encode()
	if err != nil {
		w.t.Fatal(err)
	}
	if !bytes.Equal(held, made) {
		w.t.Fatalf("the state of %s is\n%.2000s\nand from the log\n%.2000s", id, held, made)
	}
}

// until asks again and again until something is so, and fails if it never is.
// It is for what nobody tells of, such as a snapshot that is kept.
func (w *world) until(what string, so func() bool) {
	w.t.Helper()
	for deadline := time.Now().Add(natstest.Patience); !so(); {
		if time.Now().After(deadline) {
			w.t.Fatalf("%s never came", what)
		}
	}
}

// kept returns a thread's snapshot, nil if there is none or it is being replaced.
func (w *world) kept(id string) *thread.State {
	w.t.Helper()
	raw, err := eventlog.SnapshotsOn(w.log.Streams()).Load(w.t.Context(), tenant, id)
	if err != nil || raw == nil {
		return nil
	}
	s, err := thread.DecodeState(raw)
	if err != nil {
		w.t.Fatal(err)
	}
	return s
}

// snapshotOf waits for a thread's snapshot of a version or later.
func (w *world) snapshotOf(id string, version int64) {
	w.t.Helper()
	w.until(fmt.Sprintf("a snapshot of version %d", version), func() bool {
		s := w.kept(id)
		return s != nil && s.Version >= version
	})
}

// serve answers commands on NATS, as a process does.
func (w *world) serve(d *Dispatcher, inFlight int) *service.Service {
	w.t.Helper()
	s, err := service.Serve(w.nc, events.DefaultNames(), service.Endpoint{
		Name: "skein-commands", Description: "Commands.", Kind: "cmd", Version: "1.0.0", InFlight: inFlight,
		Requests: []string{"thread.create"},
	}, d.Handle, zerolog.Nop())
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = s.Stop(context.Background()) })
	return s
}

// request sends a command over NATS and returns the raw reply.
func request(t testing.TB, nc *nats.Conn, subject string, body []byte) *nats.Msg {
	t.Helper()
	m, err := nc.Request(subject, body, time.Minute)
	if err != nil {
		t.Fatalf("%.100q: %v", subject, err)
	}
	return m
}

// overNATS does a command by a request and reads the reply strictly.
func overNATS(t testing.TB, nc *nats.Conn, name, body string) *events.Reply {
	t.Helper()
	m := request(t, nc, events.DefaultNames().Command(tenant, name), []byte(body))
	if code := m.Header.Get("Nats-Service-Error-Code"); code != "" {
		t.Fatalf("%s %.300s: %s %s", name, body, code, m.Data)
	}
	var reply events.Reply
	if err := json.Unmarshal(m.Data, &reply, json.RejectUnknownMembers(true)); err != nil {
		t.Fatalf("%s: %v: %s", name, err, m.Data)
	}
	return &reply
}

// clock returns a clock that does not advance.
func clock(iso string) func() time.Time {
	at, err := time.Parse(time.RFC3339, iso)
	return func() time.Time {
		if err != nil {
			panic(err)
		}
		return at
	}
}
