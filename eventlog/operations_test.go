package eventlog_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/rs/zerolog"

	"github.com/skein-threads/skein/eventlog"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/natstest"
)

// open returns a store on a connection of its own, which answers.
func openOperations(t *testing.T, nc *nats.Conn) *eventlog.Operations {
	t.Helper()
	log, err := eventlog.Open(nc, eventlog.Config{}, zerolog.Nop(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(log.Close)
	store, err := eventlog.OpenOperations(t.Context(), log.Streams(), time.Now)
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Answer(nc); err != nil {
		t.Fatal(err)
	}
	return store
}

func auditOf(threads int64) events.Operation {
	return events.Operation{Kind: events.AuditOperation, StartedAt: events.TimeOf(time.Now()).ISO(), Threads: threads}
}

func report(t *testing.T, nc *nats.Conn, o events.Operation) {
	t.Helper()
	if err := eventlog.ReportOperation(t.Context(), nc, events.DefaultNames(), o); err != nil {
		t.Fatal(err)
	}
}

// threads returns the number of threads of each operation that is listed.
func threads(t *testing.T, nc *nats.Conn) (out []int64) {
	t.Helper()
	list, err := eventlog.ListOperations(t.Context(), nc, events.DefaultNames())
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range list.Operations {
		if _, err := events.ParseTime(o.RecordedAt); err != nil {
			t.Errorf("%+v: %v", o, err)
		}
		out = append(out, o.Threads)
	}
	return out
}

// The last 20 of each kind are kept, the latest first: the 21st audit drops the oldest audit, and
// no backup.
func TestStore_KeepsTheLatestOfEachKind(t *testing.T) {
	server := natstest.Start(t)
	openOperations(t, natstest.Connect(t, server))
	nc := natstest.Connect(t, server)
	if list := threads(t, nc); len(list) != 0 {
		t.Errorf("an empty store lists %v", list)
	}
	report(t, nc, events.Operation{Kind: events.BackupOperation, StartedAt: events.TimeOf(time.Now()).ISO(), Streams: 4})
	for i := range int64(eventlog.KeptOperations) {
		report(t, nc, auditOf(i+1))
	}
	if list := threads(t, nc); fmt.Sprint(list) != "[20 19 18 17 16 15 14 13 12 11 10 9 8 7 6 5 4 3 2 1 0]" {
		t.Errorf("%v", list)
	}
	report(t, nc, auditOf(21))
	if list := threads(t, nc); fmt.Sprint(list) != "[21 20 19 18 17 16 15 14 13 12 11 10 9 8 7 6 5 4 3 2 0]" {
		t.Errorf("after the 21st: %v", list)
	}
}

// What was reported is there after a restart of the server.
func TestStore_OutlivesTheServer(t *testing.T) {
	dir := t.TempDir()
	server := natstest.Start(t, natstest.StoreDir(dir))
	nc := natstest.Connect(t, server)
	openOperations(t, nc)
	report(t, nc, auditOf(7))
	nc.Close()
	server.Shutdown()
	nc = natstest.Connect(t, natstest.Start(t, natstest.StoreDir(dir)))
	openOperations(t, nc)
	if list := threads(t, nc); fmt.Sprint(list) != "[7]" {
		t.Errorf("after a restart: %v", list)
	}
}

// What is malformed or too large is refused on the wire, and what could not be answered, or has a
// reply subject on which an answer would do harm, is not stored either.
func TestAnswer_RefusesWhatIsNoReport(t *testing.T) {
	server := natstest.Start(t)
	openOperations(t, natstest.Connect(t, server))
	nc := natstest.Connect(t, server)
	good := `{"kind":"audit","startedAt":"` + events.TimeOf(time.Now()).ISO() + `","tookMs":1}`
	for body, code := range map[string]string{
		`{}`: "400", `nonsense`: "400", strings.Replace(good, "audit", "erasure", 1): "400",
		strings.Replace(good, "{", `{"creds":"x",`, 1): "400", good + strings.Repeat(" ", events.MaxOperationBytes): "413",
		strings.Repeat("x", 1<<20-1000): "413",
	} {
		m, err := nc.Request("skein.operation.report", []byte(body), natstest.Patience)
		if err != nil || m.Header.Get(events.HeaderErrorCode) != code || events.DecodeError(m.Data) == nil {
			t.Errorf("%.60s: %v, %+v", body, err, m)
		}
	}
	if m, err := nc.Request("skein.operation.list", []byte(`{"limit":1}`), natstest.Patience); err != nil || m.Header.Get(events.HeaderErrorCode) != "400" {
		t.Errorf("a list with a field: %v, %+v", err, m)
	}
	for _, reply := range []string{"skein.log.acme.T-1", "$KV.operations.audit"} {
		if err := nc.PublishRequest("skein.operation.report", reply, []byte(good)); err != nil {
			t.Fatal(err)
		}
	}
	report(t, nc, auditOf(5)) // after those above
	if list := threads(t, nc); fmt.Sprint(list) != "[5]" {
		t.Errorf("stored: %v", list)
	}
}

// Without a Skein that keeps reports, the sender learns so at once; where nothing answers, it
// waits as long as its context.
func TestReport_WithoutAnAnswer(t *testing.T) {
	nc := natstest.Connect(t, natstest.Start(t))
	if err := eventlog.ReportOperation(t.Context(), nc, events.DefaultNames(), auditOf(1)); !errors.Is(err, nats.ErrNoResponders) {
		t.Errorf("nobody is there: %v", err)
	}
	if _, err := eventlog.ListOperations(t.Context(), nc, events.DefaultNames()); events.AsError(err).Code != events.Unavailable || !strings.Contains(err.Error(), "skein serve") {
		t.Errorf("nobody is asked: %v", err)
	}
	silent, err := nc.SubscribeSync("skein.operation.report")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := eventlog.ReportOperation(ctx, nc, events.DefaultNames(), auditOf(1)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("nothing answers: %v", err)
	}
	if m, err := silent.NextMsg(natstest.Patience); err != nil || strings.Contains(string(m.Data), "recordedAt") {
		t.Errorf("%v, %v", m, err)
	}
}
