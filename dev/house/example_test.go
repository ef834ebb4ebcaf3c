package house

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// step is a place of the example in CONTRIBUTING.md: a file, and either the whole of it
// or what changes in it.
type step struct {
	file  string
	whole string
	edits []edit
}

// edit replaces the only occurrence of a text.
type edit struct{ old, new string }

// The example of CONTRIBUTING.md is complete: followed in a copy of the tree it adds a
// command, an event, a document and a query that work against a real server, and leaving
// out a row fails the test that the step names. It touches at most ten files.
func TestContributing_AddAnEvent(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(top(t), "CONTRIBUTING.md"))
	if err != nil {
		t.Fatal(err)
	}
	steps, err := parseSteps(string(page))
	if err != nil {
		t.Fatal(err)
	}
	if len(steps) == 0 || len(steps) > 10 {
		t.Fatalf("the example touches %d files; at most ten are promised", len(steps))
	}
	c := newCopy(t)
	for _, s := range steps {
		if err := s.apply(c.tree); err != nil {
			t.Errorf("step %s: %v", s.file, err)
		}
	}
	if t.Failed() {
		return
	}
	if out, err := c.goTool(t, "run", "./dev/generate", "-root", c.tree); err != nil {
		t.Fatalf("generating: %v\n%s", err, out)
	}
	if out, err := c.goTool(t, "test", "-run", "^TestNotes$", "."); err != nil {
		t.Fatalf("the example does not work: %v\n%s", err, out)
	}
	// This test needs a document of every read model, and finds an event for the new one.
	if out, err := c.goTool(t, "test", "-run", "^TestQueries_DeletedThreadIsNotFoundWhateverABucketHolds$", "./projections/query"); err != nil {
		t.Fatalf("the example breaks a test that no step names: %v\n%s", err, out)
	}
	checks := regexp.MustCompile("`(Test\\w+)`")
	left := 0
	for _, s := range steps {
		for _, check := range checks.FindAllStringSubmatch(s.promise(string(page)), -1) {
			left++
			t.Run(check[1], func(t *testing.T) { s.mustBeMissed(t, c, check[1]) })
		}
	}
	if left < 3 {
		t.Errorf("the example names %d checks of what is left out; it had 3", left)
	}
	t.Run("without its precondition", c.mustNotCompile)
}

// mustNotCompile leaves out the precondition of the example's event.
func (c *treeCopy) mustNotCompile(t *testing.T) {
	path := filepath.Join(c.tree, "commands", "thread", "note.go")
	followed, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	without, _, there := strings.Cut(string(followed), "func (r preconditions) NoteAdded")
	if !there {
		t.Fatal("the example has no precondition")
	}
	if err := os.WriteFile(path, []byte(without), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := c.goTool(t, "build", "./commands/thread"); err == nil || !strings.Contains(out, "missing method NoteAdded") {
		t.Errorf("an event without a precondition compiles: %v\n%s", err, out)
	}
}

// mustBeMissed undoes the edits of the step that are rows of a list, and expects the
// check to fail for it.
func (s step) mustBeMissed(t *testing.T, c *treeCopy, check string) {
	path := filepath.Join(c.tree, s.file)
	followed, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := os.WriteFile(path, followed, 0o600); err != nil {
			t.Error(err)
		}
	}()
	for _, e := range s.edits {
		if !strings.Contains(e.new, "(") { // a constant that other files use
			continue
		}
		without := bytes.Replace(followed, []byte(e.new), []byte(e.old), 1)
		if err := os.WriteFile(path, without, 0o600); err != nil {
			t.Fatal(err)
		}
		out, err := c.goTool(t, "test", "-run", "^"+check+"$", "./"+filepath.Dir(s.file))
		if err == nil || !strings.Contains(out, "--- FAIL: "+check) {
			continue
		}
		return
	}
	t.Errorf("without the rows in %s, %s does not fail", s.file, check)
}

// promise returns what the page says of the step before its first block.
func (s step) promise(page string) string {
	_, rest, _ := strings.Cut(page, ". `"+s.file+"`")
	text, _, _ := strings.Cut(rest, "\n```")
	return text
}

// parseSteps reads the steps of the example: a numbered line that begins with the name
// of a file, and its blocks.
func parseSteps(page string) ([]step, error) {
	_, page, found := strings.Cut(page, "\n## Add an event\n")
	if !found {
		return nil, errors.New("CONTRIBUTING.md has no section Add an event")
	}
	page, _, _ = strings.Cut(page, "\n## ")
	begin := regexp.MustCompile("^[0-9]+\\. `([^`]+)`")
	var steps []step
	var block []string
	fence := ""
	for line := range strings.SplitSeq(page, "\n") {
		switch {
		case fence == "" && begin.MatchString(line):
			steps = append(steps, step{file: begin.FindStringSubmatch(line)[1]})
		case fence == "" && strings.HasPrefix(line, "```"):
			fence, block = strings.TrimPrefix(line, "```"), nil
		case fence != "" && line == "```":
			if len(steps) == 0 {
				return nil, errors.New("a block stands before the first step")
			}
			steps[len(steps)-1].add(fence, block)
			fence = ""
		case fence != "":
			block = append(block, line)
		}
	}
	return steps, nil
}

// add takes the lines of a block.
func (s *step) add(fence string, lines []string) {
	if fence != "diff" {
		s.whole += strings.Join(lines, "\n") + "\n"
		return
	}
	var e edit
	for _, line := range lines {
		text := ""
		if line != "" {
			text = line[1:]
		}
		if !strings.HasPrefix(line, "+") {
			e.old += text + "\n"
		}
		if !strings.HasPrefix(line, "-") {
			e.new += text + "\n"
		}
	}
	s.edits = append(s.edits, e)
}

// apply writes a new file, or changes one that is there.
func (s step) apply(tree string) error {
	path := filepath.Join(tree, filepath.FromSlash(s.file))
	if s.whole != "" {
		if _, err := os.Stat(path); err == nil {
			return errors.New("the file exists; change it with a diff block")
		}
		return os.WriteFile(path, []byte(s.whole), 0o600)
	}
	body, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	for _, e := range s.edits {
		if n := bytes.Count(body, []byte(e.old)); n != 1 {
			return fmt.Errorf("the file holds these lines %d times, not once:\n%s", n, e.old)
		}
		body = bytes.Replace(body, []byte(e.old), []byte(e.new), 1)
	}
	return os.WriteFile(path, body, 0o600)
}

// treeCopy is a copy of the tree. The go command runs in the tree itself, with the files
// of the copy that differ laid over it, so that the build cache serves all others.
type treeCopy struct{ top, tree string }

// newCopy copies the sources and the documentation.
func newCopy(t *testing.T) *treeCopy {
	t.Helper()
	c := &treeCopy{top: top(t), tree: t.TempDir()}
	from := os.DirFS(c.top)
	err := fs.WalkDir(from, ".", func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (path == ".git" || path == "bin"):
			return fs.SkipDir
		case entry.IsDir():
			return os.MkdirAll(filepath.Join(c.tree, path), 0o750)
		case !entry.Type().IsRegular():
			return nil
		}
		body, err := fs.ReadFile(from, path)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(c.tree, path), body, 0o600)
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// goTool runs the go command on the copy.
func (c *treeCopy) goTool(t *testing.T, command string, arguments ...string) (string, error) {
	t.Helper()
	laid := filepath.Join(t.TempDir(), "overlay.json")
	if err := os.WriteFile(laid, c.overlay(t), 0o600); err != nil {
		t.Fatal(err)
	}
	arguments = append([]string{command, "-overlay", laid}, arguments...)
	if command == "test" {
		arguments = slices.Insert(arguments, 1, "-count=1", "-vet=off", "-ldflags=-w")
	}
	run := exec.CommandContext(t.Context(), "go", arguments...)
	run.Dir = c.top
	out, err := run.CombinedOutput()
	return string(out), err
}

// overlay says which files of the copy stand for files of the tree.
func (c *treeCopy) overlay(t *testing.T) []byte {
	t.Helper()
	replace := map[string]string{}
	err := filepath.WalkDir(c.tree, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		name, err := filepath.Rel(c.tree, path)
		if err != nil {
			return err
		}
		now, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if was, err := os.ReadFile(filepath.Join(c.top, name)); err != nil || !bytes.Equal(was, now) {
			replace[filepath.Join(c.top, name)] = path
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	body, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	return body
}
