package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/mod/module"
	modzip "golang.org/x/mod/zip"

	"github.com/skein-threads/skein/dev/repository"
)

// go install takes the module from a proxy, as a user without a checkout gets it: without go.work,
// from the files that a version of the module has.
func testGoInstall(t *testing.T, b *builder) {
	if got := told(t, b.build(t, "")); got.Version != testVersion || got.Contract != contract(t) {
		t.Errorf("the installed program is %+v; want version %s and contract %s", got, testVersion, contract(t))
	}
}

// publish lays the tracked files of the product out as a proxy serves them.
func publish(t *testing.T, proxy string, m module.Version) {
	t.Helper()
	dir := filepath.Join(proxy, filepath.FromSlash(m.Path), "@v")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	var archive bytes.Buffer
	if err := modzip.CreateFromDir(&archive, m, exported(t)); err != nil {
		t.Fatal(err)
	}
	mod, err := os.ReadFile(filepath.Join(repository.Root(), "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	for name, body := range map[string][]byte{
		"list":             []byte(m.Version + "\n"),
		m.Version + ".mod": mod, m.Version + ".zip": archive.Bytes(),
		m.Version + ".info": []byte(`{"Version":"` + m.Version + `","Time":"2026-01-02T03:04:05Z"}`),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), body, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// exported is a folder with the files of the repository that git knows, as they are now.
func exported(t *testing.T) string {
	t.Helper()
	root, to := repository.Root(), t.TempDir()
	for name := range strings.SplitSeq(output(t, root, nil, "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"), "\x00") {
		body, err := os.ReadFile(filepath.Join(root, name))
		if name == "" || os.IsNotExist(err) { // removed, and not committed yet
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(to, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, body, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return to
}

// contract is the version of the contract that the repository records.
func contract(t *testing.T) string {
	t.Helper()
	body, err := os.ReadFile(filepath.Join(repository.Root(), "internal", "build", "contract"))
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(body))
}
