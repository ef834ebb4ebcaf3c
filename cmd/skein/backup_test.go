package main_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/skein-threads/skein/internal/natstest"
)

// A backup that was made while Skein runs is restored into another server: the log is
// complete, everything derived is rebuilt, and all of it verifies. A backup that was
// changed is not restored, and none is restored next to an existing log.
func TestBackupAndRestore(t *testing.T) {
	t.Parallel()
	s := start(t, t.TempDir())
	for range 5 {
		s.ok("thread", "create")
	}
	before := s.ok("thread", "list", "--json")
	dir := filepath.Join(t.TempDir(), "backup")
	s.ok("backup", dir)
	if o := run(t, s.env, "", "backup", dir); o.code != 1 || !strings.Contains(o.err, "empty folder") {
		t.Errorf("into a folder that is not empty: %d %s", o.code, o.err)
	}
	if o := run(t, s.env, "", "restore", dir); o.code != 1 || !strings.Contains(o.err, "there already") {
		t.Errorf("over a log: %d %s", o.code, o.err)
	}

	other := natstest.Start(t)
	there := []string{"SKEIN_SERVER=" + other.URL(), "SKEIN_TENANT=acme"}
	snapshot := filepath.Join(dir, "SKEIN_LOG.snapshot")
	kept, err := os.ReadFile(snapshot)
	if err != nil {
		t.Fatal(err)
	}
	changed := append([]byte{}, kept...)
	changed[len(changed)/2] ^= 1
	if err := os.WriteFile(snapshot, changed, 0o600); err != nil {
		t.Fatal(err)
	}
	if o := run(t, there, "", "restore", dir); o.code != 1 || !strings.Contains(o.err, "nothing was restored") {
		t.Errorf("one that was changed: %d %s", o.code, o.err)
	}
	if err := os.WriteFile(snapshot, kept, 0o600); err != nil {
		t.Fatal(err)
	}
	if o := run(t, there, "", "restore", dir); o.code != 0 || !strings.Contains(o.out, "5 threads") || !strings.Contains(o.out, "0 findings") {
		t.Errorf("restored: %d %s %s", o.code, o.out, o.err)
	}
	again := start(t, "", "--nats", other.URL())
	if after := again.ok("thread", "list", "--json"); after != before {
		t.Errorf("before %s\nafter %s", before, after)
	}
	again.ok("thread", "create")
	again.ok("thread", "list") // wait until everything derived is up to date
	again.ok("audit", "verify", "--all-tenants")
	again.ok("replay", "--verify")
}

// A backup restored into a folder is a store that a Skein can serve; a folder that is
// not empty is not changed.
func TestRestore_IntoAStore(t *testing.T) {
	t.Parallel()
	s := start(t, t.TempDir())
	for range 3 {
		s.ok("thread", "create")
	}
	before := s.ok("thread", "list", "--json")
	dir := filepath.Join(t.TempDir(), "backup")
	s.ok("backup", dir)
	s.stop()

	store := filepath.Join(t.TempDir(), "store")
	// A variable is for many commands, and does not contradict the flag.
	env := []string{"SKEIN_SERVER=nats://127.0.0.1:1", "SKEIN_REPLICAS=3"}
	if o := run(t, env, "", "restore", dir, "--store", store); o.code != 0 || !strings.Contains(o.out, "3 threads") {
		t.Fatalf("restored: %d %s %s", o.code, o.out, o.err)
	}
	if o := run(t, nil, "", "restore", dir, "--store", store); o.code != 1 || !strings.Contains(o.err, "empty") {
		t.Errorf("over a store: %d %s", o.code, o.err)
	}
	if o := run(t, nil, "", "restore", dir, "--store", store, "--replicas", "3"); o.code != 2 {
		t.Errorf("with replicas: %d %s", o.code, o.err)
	}
	s = start(t, store)
	if after := s.ok("thread", "list", "--json"); after != before {
		t.Errorf("before %s\nafter %s", before, after)
	}
	s.ok("audit", "verify", "--all-tenants")
	s.stop()
}

// A backup says how many purged threads it may still hold something of.
func TestBackup_SaysWhatIsBeingErased(t *testing.T) {
	t.Parallel()
	nats := natstest.Start(t)
	s := start(t, "", "--nats", nats.URL())
	s.ok("thread", "create")
	s.ok("thread", "list")
	s.stop()
	backup := func() outcome {
		return run(t, nil, "", "backup", filepath.Join(t.TempDir(), "backup"), "--server", nats.URL())
	}
	if o := backup(); o.code != 0 || strings.Contains(o.err, "purged") {
		t.Errorf("without one: %+v", o)
	}
	nc := natstest.Connect(t, nats)
	for id, note := range map[string]string{"T-1": `{"tenant":"acme","thread":"T-1","seq":1,"purge":true}`, "T-2": `{"tenant":"acme","thread":"T-2","seq":2}`} {
		if _, err := nc.Request("$KV.thread_threads._.deletion.acme."+id, []byte(note), natstest.Patience); err != nil {
			t.Fatal(err)
		}
	}
	if o := backup(); o.code != 0 || !strings.Contains(o.err, "1 thread purged and not erased yet") {
		t.Errorf("with one: %+v", o)
	}
}
