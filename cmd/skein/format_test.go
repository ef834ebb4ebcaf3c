package main_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// What a newer Skein has stored is refused by name, before anything is changed: a store, the log of
// a server, and a backup.
func TestFormat_OfANewerSkein(t *testing.T) {
	t.Parallel()
	dir, backup := t.TempDir(), filepath.Join(t.TempDir(), "backup")
	s := start(t, dir)
	s.ok("thread", "create")
	s.ok("backup", backup)
	s.format("2", "0.9.0")
	refused := func(args ...string) {
		t.Helper()
		o := run(t, []string{"SKEIN_NATS_LISTEN=127.0.0.1:0", "SKEIN_HTTP_LISTEN=127.0.0.1:0", "SKEIN_SERVER=" + s.NATS, "SKEIN_TENANT=acme"}, "", args...)
		for _, want := range []string{"format 2", "formats up to 1", "use Skein 0.9.0 or a newer one"} {
			if o.code != 1 || !strings.Contains(o.err, want) {
				t.Errorf("skein %v: exit %d, %s; want %q", args, o.code, o.err, want)
			}
		}
	}
	refused("audit", "verify", "--all-tenants")
	refused("backup", filepath.Join(t.TempDir(), "another"))
	s.stop()
	before := tree(t, dir)
	refused("serve", "--store", dir)
	refused("store", "check", "--store", dir)
	refused("store", "repair", "--store", dir, "--accept-loss")
	if !slices.Equal(before, tree(t, dir)) {
		t.Error("the store was changed")
	}
	manifest := filepath.Join(backup, "manifest.json")
	body, err := os.ReadFile(manifest)
	if err != nil {
		t.Fatal(err)
	}
	changed := strings.NewReplacer(`"skein.format":"1"`, `"skein.format":"2"`, `"skein.format.first":"0.1.0"`, `"skein.format.first":"0.9.0"`).Replace(strings.ReplaceAll(string(body), `": "`, `":"`))
	if changed == string(body) || os.WriteFile(manifest, []byte(changed), 0o600) != nil {
		t.Fatal("the manifest has no format")
	}
	into := filepath.Join(t.TempDir(), "restored")
	refused("restore", backup, "--store", into)
	if restored, err := filepath.Glob(filepath.Join(into, "jetstream", "*", "streams", "SKEIN_LOG")); err != nil || len(restored) > 0 {
		t.Errorf("something was restored: %v (%v)", restored, err)
	}
}

// format changes the format that the log has.
func (s *server) format(number, first string) {
	s.t.Helper()
	nc, err := nats.Connect(s.NATS)
	if err != nil {
		s.t.Fatal(err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		s.t.Fatal(err)
	}
	log, err := js.Stream(s.t.Context(), "SKEIN_LOG")
	if err != nil {
		s.t.Fatal(err)
	}
	cfg := log.CachedInfo().Config
	cfg.Metadata["skein.format"], cfg.Metadata["skein.format.first"] = number, first
	if _, err := js.UpdateStream(s.t.Context(), cfg); err != nil {
		s.t.Fatal(err)
	}
}
