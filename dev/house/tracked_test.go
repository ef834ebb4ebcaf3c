package house

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// largestTracked is the most bytes that a tracked file may have: no source, page or picture
// needs as many, and a clone keeps each version of it for ever.
const largestTracked = 1 << 20

func TestTracked_NothingLargeOrBuilt(t *testing.T) {
	root := top(t)
	if _, err := os.Stat(filepath.Join(root, ".git")); errors.Is(err, fs.ErrNotExist) {
		t.Skip("not a checkout of git: nothing is tracked")
	}
	out, err := exec.CommandContext(t.Context(), "git", "-C", root, "ls-files", "-z").Output()
	if err != nil {
		t.Fatalf("git ls-files: %v", err)
	}
	names := strings.FieldsFunc(string(out), func(r rune) bool { return r == 0 })
	if len(names) == 0 {
		t.Fatal("git tracks no file")
	}
	for _, name := range names {
		what, err := unfit(filepath.Join(root, filepath.FromSlash(name)))
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // deleted, and not committed yet
			t.Error(err)
		}
		if what != "" {
			t.Errorf("%s: %s; remove it with git rm --cached, and ignore it in .gitignore", name, what)
		}
	}
}

// unfit says why a file must not be tracked: it is too large, or an executable that is not a
// script. It returns "" for a file that may be.
func unfit(name string) (string, error) {
	info, err := os.Lstat(name)
	if err != nil {
		return "", err
	}
	if !info.Mode().IsRegular() {
		return "", nil
	}
	if info.Size() > largestTracked {
		return fmt.Sprintf("%d bytes, of at most %d", info.Size(), largestTracked), nil
	}
	f, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	start := make([]byte, 4)
	n, err := io.ReadFull(f, start)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return "", err
	}
	start = start[:n]
	executable := info.Mode().Perm()&0o111 != 0 && !bytes.HasPrefix(start, []byte("#!"))
	if executable || bytes.HasPrefix(start, []byte("\x7fELF")) {
		return "an executable that is not a script", nil
	}
	return "", nil
}

func TestTracked_NothingLargeOrBuilt_Bites(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct {
		name, text string
		mode       fs.FileMode
		fit        bool
	}{
		{"text", "package a\n", 0o644, true},
		{"empty", "", 0o644, true},
		{"script", "#!/bin/sh\n", 0o755, true},
		{"largest", strings.Repeat("a", largestTracked), 0o644, true},
		{"too large", strings.Repeat("a", largestTracked+1), 0o644, false},
		{"executable", "package a\n", 0o755, false},
		{"binary", "\x7fELF\x02", 0o644, false},
	} {
		name := filepath.Join(dir, c.name)
		if err := os.WriteFile(name, []byte(c.text), c.mode); err != nil {
			t.Fatal(err)
		}
		if what, err := unfit(name); err != nil || (what == "") != c.fit {
			t.Errorf("%s: %q, %v", c.name, what, err)
		}
	}
}
