package main_test

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/skein-threads/skein/internal/natstest"
)

// Key-value pairs are set, listed and deleted on the command line. They outlive a kill of the
// server, keys whose time is over included, and are in a backup.
func TestKV_KilledBackedUpAndRestored(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := start(t, dir)
	s.ok("kv", "set", "conversations", "chat_T-1", `[{"role":"user"}]`)
	s.ok("kv", "set", "conversations", "a b.*>", `null`, "--ttl", "24h")
	s.ok("kv", "set", "conversations", "brief", `1`, "--ttl", "1s")
	s.ok("kv", "set", "conversations", "gone", `1`)
	if out := s.ok("kv", "rm", "conversations", "gone"); out != "deleted 1\n" {
		t.Errorf("deleted: %q", out)
	}
	if out := s.ok("kv", "rm", "conversations", "gone"); out != "nothing to delete\n" {
		t.Errorf("deleted again: %q", out)
	}
	natstest.Eventually(t, "the key is gone", func() bool {
		return strings.Contains(s.ok("kv", "get", "conversations", "brief", "--json"), `"exists":false`)
	})
	if o := run(t, s.env, "", "kv", "get", "conversations", "brief"); o.code != 1 || !strings.HasPrefix(o.err, "skein: not_found: ") {
		t.Errorf("a key that is gone: %d %s", o.code, o.err)
	}
	for _, wrong := range [][]string{{"set", "b", "k", "text"}, {"set", "b", "k", "1", "--ttl", "1ms"}, {"rm", "b"}, {"rm", "b", "k", "--prefix", ""}} {
		if o := run(t, s.env, "", append([]string{"kv"}, wrong...)...); o.code != 2 {
			t.Errorf("%v: %d %s", wrong, o.code, o.err)
		}
	}
	s.kill()
	s = start(t, dir)
	want := "a b.*>\nchat_T-1\n"
	check := func(s *server) {
		t.Helper()
		if out := s.ok("kv", "list", "conversations"); out != want {
			t.Errorf("the keys are %q, want %q", out, want)
		}
		if out := s.ok("kv", "list", "conversations", "--order", "desc", "--values"); out != "chat_T-1\t[{\"role\":\"user\"}]\na b.*>\tnull\n" {
			t.Errorf("the pairs are %q", out)
		}
		if out := s.ok("kv", "list", "conversations", "--limit", "1", "--values", "--json"); out != `{"key":"a b.*>","value":null}`+"\n" {
			t.Errorf("as JSON: %q", out)
		}
		if out := s.ok("kv", "get", "conversations", "chat_T-1"); out != `[{"role":"user"}]`+"\n" {
			t.Errorf("the value is %q", out)
		}
		if out := s.ok("kv", "get", "conversations", "a b.*>", "--json"); out != `{"exists":true,"value":null}`+"\n" {
			t.Errorf("null is %q", out)
		}
	}
	check(s)
	backup := filepath.Join(t.TempDir(), "backup")
	s.ok("backup", backup)
	s.stop()
	restored := filepath.Join(t.TempDir(), "store")
	if o := run(t, nil, "", "restore", backup, "--store", restored); o.code != 0 {
		t.Fatalf("restored: %d %s %s", o.code, o.out, o.err)
	}
	s = start(t, restored)
	check(s)
	s.stop()
}

// What is erased is nowhere in the files of the store.
func TestKV_ErasedIsNowhereOnDisk(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := start(t, dir)
	s.ok("kv", "set", "private", "ada", `"marker-of-ada"`)
	s.ok("kv", "set", "private", "bob", `"marker-of-bob"`)
	s.ok("kv", "rm", "private", "--prefix", "ad", "--erase")
	s.stop()
	found := map[string]bool{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		raw, err := os.ReadFile(path)
		for _, marker := range []string{"marker-of-ada", "marker-of-bob"} {
			found[marker] = found[marker] || bytes.Contains(raw, []byte(marker))
		}
		return err
	})
	if err != nil || found["marker-of-ada"] || !found["marker-of-bob"] {
		t.Errorf("found %v, %v", found, err)
	}
}
