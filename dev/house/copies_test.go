package house

import (
	"bytes"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// smallestCopy is the size in bytes from which a file that equals another's counts as a copy.
const smallestCopy = 512

// What a dependency contains is imported, not copied.
func TestTree_CopiesNothingOfDependencies(t *testing.T) {
	dirs := moduleDirs(t)
	if len(dirs) < 10 {
		t.Fatalf("only %d modules were found", len(dirs))
	}
	root := top(t)
	own := bySize(t, root)
	for _, dir := range dirs {
		for file, original := range copies(t, own, dir) {
			name, err := filepath.Rel(root, file)
			if err != nil {
				t.Fatal(err)
			}
			t.Errorf("%s is a copy of %s: import the module", name, original)
		}
	}
}

func TestCopiesRuleBites(t *testing.T) {
	own, module := t.TempDir(), t.TempDir()
	text := bytes.Repeat([]byte("<lexer/>\n"), 100)
	for _, file := range []string{filepath.Join(own, "go.xml"), filepath.Join(module, "golang.xml")} {
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if found := copies(t, bySize(t, own), module); len(found) != 1 {
		t.Errorf("the copy was not found: %v", found)
	}
}

// moduleDirs returns the folders of the modules that this one depends on.
func moduleDirs(t *testing.T) []string {
	t.Helper()
	list := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{if not .Main}}{{.Dir}}{{end}}", "all")
	list.Dir = top(t)
	out, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(strings.Split(string(out), "\n"), func(dir string) bool { return dir == "" })
}

// bySize returns the files below a folder that are large enough to matter, by their size.
func bySize(t *testing.T, root string) map[int64][]string {
	t.Helper()
	files := map[int64][]string{}
	walk(t, root, func(name string, size int64) {
		if size >= smallestCopy && filepath.Base(name) != "LICENSE" {
			files[size] = append(files[size], name)
		}
	})
	return files
}

// copies returns the files that equal one below a folder.
func copies(t *testing.T, own map[int64][]string, dir string) map[string]string {
	t.Helper()
	found := map[string]string{}
	walk(t, dir, func(name string, size int64) {
		for _, file := range own[size] {
			if bytes.Equal(read(t, file), read(t, name)) {
				found[file] = name
			}
		}
	})
	return found
}

func walk(t *testing.T, root string, visit func(name string, size int64)) {
	t.Helper()
	err := filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && name != root && skipped(name) && filepath.Base(name) != "testdata":
			return fs.SkipDir
		case !entry.Type().IsRegular():
			return nil
		}
		info, err := entry.Info()
		if err == nil {
			visit(name, info.Size())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
