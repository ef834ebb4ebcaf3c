package repository

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// What changes a file of the tree changes the digest, and what a build writes does not.
func TestDigest_ChangesWithTheTree(t *testing.T) {
	root := t.TempDir()
	write := func(name, body string, at time.Time) {
		t.Helper()
		path := filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(body), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, at, at); err != nil {
			t.Fatal(err)
		}
	}
	digest := func() string {
		t.Helper()
		d, err := Digest(root)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	first := time.Unix(1_700_000_000, 0)
	write("docs/page.md", "one", first)
	was := digest()
	write("bin/skein", "binary", first)
	if now := digest(); now != was {
		t.Errorf("a build has changed it from %s to %s", was, now)
	}
	for name, change := range map[string]func(){
		"another time": func() { write("docs/page.md", "one", first.Add(time.Second)) },
		"another size": func() { write("docs/page.md", "three", first) },
		"a new file":   func() { write("docs/new.md", "one", first) },
	} {
		was := digest()
		if change(); digest() == was {
			t.Errorf("%s: the same digest", name)
		}
	}
	if _, err := os.Stat(filepath.Join(Root(), "go.work")); err != nil {
		t.Error(err)
	}
}
