package main_test

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/skein-threads/skein/eventlog"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/natstest"
)

// operationRow is one line of skein operation list --json.
type operationRow struct {
	Kind, Tenant, StartedAt, RecordedAt string
	Failed, Partial, LogOnly            bool
	Threads, Commits, Events            int
	Streams, Bytes                      int64
	Findings                            []struct {
		Kind  string
		Count int
	}
}

func (s *server) operations() []operationRow {
	s.t.Helper()
	return decodeLines[operationRow](s.t, s.ok("operation", "list", "--json"))
}

// An audit and a backup tell Skein what came of them: how much it was, what was found, and that it
// failed. The list and the console show that, also after a restart; what was found where, and into
// which folder, is not told.
func TestOperation_ReportsOfAuditAndBackup(t *testing.T) {
	t.Parallel()
	store := t.TempDir()
	s := start(t, store, "--tenant", "acme")
	var made reply
	decode(t, s.ok("thread", "create", "--json"), &made)
	s.ok("thread", "list") // the read models are up to date
	if list := s.operations(); len(list) != 0 {
		t.Errorf("before any: %+v", list)
	}
	nc := natstest.Dial(t, s.NATS)
	s.ok("audit", "verify", "--all-tenants")
	s.ok("audit", "verify", made.ThreadID, "--log-only")
	if o := run(t, s.env, "", "audit", "verify", "T-01900000-0000-7000-8000-000000000000"); o.code != 1 {
		t.Errorf("a thread that does not exist: %+v", o)
	}
	dir := filepath.Join(t.TempDir(), "secret-place")
	s.ok("backup", dir)
	if o := run(t, s.env, "", "backup", dir); o.code != 1 || !strings.Contains(o.err, "empty folder") || strings.Contains(o.err, "warning") {
		t.Errorf("a backup into a folder that is not empty: %+v", o)
	}
	if list := s.operations(); len(list) != 3 || list[0].Failed {
		t.Errorf("a backup that was refused counts as one that failed: %+v", list)
	}
	if err := eventlog.ReportOperation(t.Context(), nc, events.DefaultNames(), events.Operation{Kind: events.BackupOperation, StartedAt: events.TimeOf(time.Now()).ISO(), Failed: true}); err != nil {
		t.Fatal(err)
	}
	if _, err := nc.Request("skein.log.acme."+made.ThreadID, []byte("[]"), natstest.Patience); err != nil { // no commit
		t.Fatal(err)
	}
	if o := run(t, s.env, "", "audit", "verify", "--log-only"); o.code != 3 || strings.Contains(o.err, "warning") {
		t.Errorf("with a planted fault: %+v", o)
	}

	list := s.operations()
	if len(list) != 5 {
		t.Fatalf("%+v", list)
	}
	found, failed, copied, part, whole := list[0], list[1], list[2], list[3], list[4]
	if found.Kind != "audit" || found.Tenant != "acme" || !found.LogOnly || found.Partial || found.Failed || len(found.Findings) != 1 || found.Findings[0].Kind != "broken" || found.Findings[0].Count != 1 {
		t.Errorf("the audit with a fault: %+v", found)
	}
	if failed.Kind != "backup" || !failed.Failed || failed.Streams != 0 {
		t.Errorf("the backup that failed: %+v", failed)
	}
	if copied.Kind != "backup" || copied.Failed || copied.Streams < 3 || copied.Bytes == 0 {
		t.Errorf("the backup: %+v", copied)
	}
	if !part.Partial || !part.LogOnly || part.Threads != 1 || part.Failed {
		t.Errorf("the audit of a thread: %+v", part)
	}
	if whole.Partial || whole.Tenant != "" || whole.Threads != 1 || whole.Commits == 0 || whole.Events == 0 || len(whole.Findings) != 0 {
		t.Errorf("the whole audit: %+v", whole)
	}
	if text := s.ok("operation", "list"); !strings.Contains(text, "1 finding: broken 1") || !strings.Contains(text, "part of acme, log only") || !strings.Contains(text, "failed") {
		t.Error(text)
	}
	s.wantOnPage("broken 1", "1 finding", "The last one found faults", "tenant acme, the log only", "failed", "The last one failed")

	s.stop()
	s = start(t, store, "--tenant", "acme")
	if again := s.operations(); len(again) != 5 || again[0].RecordedAt != found.RecordedAt || again[0].StartedAt != found.StartedAt {
		t.Errorf("after a restart: %+v", again)
	}
	raw := s.ok("operation", "list", "--json")
	for _, secret := range []string{"secret-place", made.ThreadID, "commit"} {
		if strings.Contains(strings.ReplaceAll(raw, `"commits"`, ""), secret) {
			t.Errorf("a report tells %s: %s", secret, raw)
		}
	}
	s.stop()
}

// wantOnPage wants texts on the page System.
func (s *server) wantOnPage(texts ...string) {
	s.t.Helper()
	r, err := http.Get(s.HTTP + "/console/system")
	if err != nil {
		s.t.Fatal(err)
	}
	defer r.Body.Close()
	page, err := io.ReadAll(r.Body)
	if err != nil || r.StatusCode != http.StatusOK {
		s.t.Fatalf("%d, %v", r.StatusCode, err)
	}
	for _, want := range texts {
		if !strings.Contains(string(page), want) {
			s.t.Errorf("the page System has no %q", want)
		}
	}
}

// Without a Skein that takes reports, an audit and a backup end with their own exit codes, and say
// nothing of it. If something takes the report and does not answer, they end soon, and say so; if
// it refuses, they say why.
func TestOperation_NothingDependsOnAReport(t *testing.T) {
	t.Parallel()
	s := start(t, t.TempDir())
	s.ok("thread", "create")
	dir := filepath.Join(t.TempDir(), "backup")
	s.ok("backup", dir)
	s.stop()
	other := natstest.Start(t)
	env := []string{"SKEIN_SERVER=" + other.URL(), "SKEIN_TENANT=acme"}
	if o := run(t, env, "", "restore", dir); o.code != 0 || strings.Contains(o.err, "warning") {
		t.Fatalf("%+v", o)
	}
	verify := func() outcome { return run(t, env, "", "audit", "verify", "--all-tenants", "--log-only") }
	if o := verify(); o.code != 0 || o.err != "" {
		t.Errorf("without Skein: %+v", o)
	}
	if o := run(t, env, "", "backup", filepath.Join(t.TempDir(), "b")); o.code != 0 || o.err != "" {
		t.Errorf("a backup without Skein: %+v", o)
	}
	if o := run(t, env, "", "operation", "list"); o.code != 1 || !strings.HasPrefix(o.err, "skein: unavailable: ") || !strings.Contains(o.err, "skein serve") {
		t.Errorf("a list without Skein: %+v", o)
	}

	nc := natstest.Connect(t, other)
	silent, err := nc.SubscribeSync("skein.operation.report")
	if err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	if o := verify(); o.code != 0 || strings.Count(o.err, "\n") != 1 || !strings.Contains(o.err, "warning: Skein did not take a report") {
		t.Errorf("no answer: %+v", o)
	}
	if took := time.Since(begun); took < 2*time.Second || took > 2*time.Second+natstest.Patience/2 {
		t.Errorf("it took %v", took)
	}
	m, err := silent.NextMsg(natstest.Patience)
	if err != nil {
		t.Fatal(err)
	}
	var sent map[string]any
	if err := json.Unmarshal(m.Data, &sent); err != nil || sent["kind"] != "audit" || sent["logOnly"] != true {
		t.Errorf("%s: %v", m.Data, err)
	}
	if err := silent.Unsubscribe(); err != nil {
		t.Fatal(err)
	}
	if _, err := nc.Subscribe("skein.operation.report", func(m *nats.Msg) {
		answer := nats.NewMsg(m.Reply)
		answer.Header.Set("Nats-Service-Error-Code", "400")
		answer.Data = []byte(`{"error":{"code":"invalid_request","message":"not today"}}`)
		_ = nc.PublishMsg(answer)
	}); err != nil {
		t.Fatal(err)
	}
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
	if o := verify(); o.code != 0 || !strings.Contains(o.err, "not today") {
		t.Errorf("refused: %+v", o)
	}
	if _, err := nc.Request("skein.log.acme.T-0190c0de-0000-7000-a000-000000000001", []byte("[]"), natstest.Patience); err != nil {
		t.Fatal(err)
	}
	if o := verify(); o.code != 3 || !strings.Contains(o.err, "skein: found: ") {
		t.Errorf("a fault, and a refused report: %+v", o)
	}
	if _, err := os.Stat(filepath.Join(dir, "manifest.json")); err != nil {
		t.Error(err)
	}
}
