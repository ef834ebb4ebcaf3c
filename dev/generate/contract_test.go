package main

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/skein-threads/skein/dev/repository"
	"github.com/skein-threads/skein/internal/change"
	"github.com/skein-threads/skein/schema"
)

// EK-185: what schema/files say today is recorded, or this fails.
func TestContractIsRecorded(t *testing.T) {
	if err := checkContract(repository.Root()); err != nil {
		t.Error(err)
	}
	c, _, err := recorded(repository.Root())
	if err != nil {
		t.Fatal(err)
	}
	body, err := os.ReadFile(filepath.Join(repository.Root(), contractPath))
	if err != nil || !bytes.Equal(body, c.lines()) {
		t.Errorf("%s was written by hand (%v)", contractPath, err)
	}
	all, err := schema.Files()
	if err != nil || len(c.Schemas) != len(all) {
		t.Errorf("%d schemas are recorded of %d (%v)", len(c.Schemas), len(all), err)
	}
}

// small writes a tree with one command and one event, and records it.
func small(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	for path, body := range map[string]string{
		"commands/a.json": `{"description":"x","additionalProperties":false,"properties":{"n":{"maximum":9}}}`,
		"events/b.json":   `{"properties":{"s":{"enum":["one"]}}}`,
	} {
		put(t, root, path, body)
	}
	if err := recordContract(io.Discard, root, "1.2.3"); err != nil {
		t.Fatal(err)
	}
	if err := checkContract(root); err != nil {
		t.Fatal(err)
	}
	return root
}

func put(t *testing.T, root, path, body string) {
	t.Helper()
	if err := write(filepath.Join(root, "schema", "files", filepath.FromSlash(path)), []byte(body)); err != nil {
		t.Fatal(err)
	}
}

// EK-182, EK-183, EK-184, EK-185: a change that is not recorded fails the check;
// it is recorded under a version that says its level, or under a greater one.
func TestAChangeNeedsItsVersion(t *testing.T) {
	for name, c := range map[string]struct {
		path, body    string // "" removes the file
		level, reason string
		small, least  string
	}{
		"words": {"commands/a.json", `{"description":"y","additionalProperties":false,"properties":{"n":{"maximum":9}}}`,
			"patch", "commands/a.json#/$comment: other words (patch)", "1.2.3", "1.2.4"},
		"a looser bound": {"commands/a.json", `{"description":"x","additionalProperties":false,"properties":{"n":{"maximum":10}}}`,
			"minor", "commands/a.json#/properties/n/maximum: was 9, now 10 (minor)", "1.2.9", "1.3.0"},
		"a value more": {"events/b.json", `{"properties":{"s":{"enum":["one","two"]}}}`,
			"minor", `events/b.json#/properties/s/enum: "two" is new (minor)`, "1.2.4", "1.3.0"},
		"a file more": {"queries/c.json", `{}`, "minor", "queries/c.json: new (minor)", "1.2.4", "1.3.0"},
		"a property less": {"events/b.json", `{"properties":{}}`,
			"major", "events/b.json#/properties/s: removed (major)", "1.3.0", "2.0.0"},
		"a file less": {"events/b.json", "", "major", "events/b.json: removed (major)", "1.99.99", "2.0.0"},
	} {
		root := small(t)
		if c.body != "" {
			put(t, root, c.path, c.body)
		} else if err := os.Remove(filepath.Join(root, "schema", "files", filepath.FromSlash(c.path))); err != nil {
			t.Fatal(err)
		}
		says(t, name, checkContract(root), "not 1.2.3 any more", "the change is "+c.level, c.reason, "-contract "+c.least)
		for _, v := range []string{c.small, "1.2.2", "0.9.9"} {
			says(t, name, recordContract(io.Discard, root, v), v+" is too small", "the smallest version is "+c.least, c.reason)
		}
		if err := recordContract(io.Discard, root, c.least); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := checkContract(root); err != nil {
			t.Errorf("%s: recorded, and %v", name, err)
		}
		if err := recordContract(io.Discard, root, "3.0.0"); err != nil {
			t.Errorf("%s: a greater version: %v", name, err)
		}
	}
}

func says(t *testing.T, name string, err error, words ...string) {
	t.Helper()
	for _, word := range words {
		if err == nil || !strings.Contains(err.Error(), word) {
			t.Errorf("%s: %v; it does not say %s", name, err, word)
		}
	}
}

func TestContractThatCannotBeRead(t *testing.T) {
	root := small(t)
	for _, bad := range []string{"", "1", "1.2", "1.2.3.4", "v1.2.3", "01.2.3", "1.2.3-rc1", "-1.2.3", "1.2.99999999999999999999"} {
		says(t, bad, recordContract(io.Discard, root, bad), "is not a version")
	}
	path := filepath.Join(root, filepath.FromSlash(contractPath))
	for _, body := range []string{`{`, `{"version":"one"}`} {
		if err := write(path, []byte(body)); err != nil {
			t.Fatal(err)
		}
		says(t, body, checkContract(root), contractPath)
		says(t, body, recordContract(io.Discard, root, "9.0.0"), contractPath)
	}
	put(t, root, "events/b.json", `{`)
	says(t, "broken schema", checkContract(root), "schema/files/events/b.json")
}

// EK-185: -check fails until -contract was used; without flags there is a hint.
func TestFlags(t *testing.T) {
	root := t.TempDir()
	place(t, root, requirementsPath, "# None\n")
	var out bytes.Buffer
	if err := generate(&out, options{root: root}); err != nil || !strings.Contains(out.String(), "hint: no contract is recorded") {
		t.Errorf("%v: %s", err, out.String())
	}
	says(t, "nothing recorded", generate(&out, options{root: root, check: true}), "-contract 1.0.0")
	says(t, "two flags", generate(&out, options{root: root, check: true, contract: "1.0.0"}), "give one")
	if err := generate(&out, options{root: root, contract: "1.0.0"}); err != nil {
		t.Error(err)
	}
	out.Reset()
	for _, check := range []bool{true, false} {
		if err := generate(&out, options{root: root, check: check}); err != nil || out.Len() > 0 {
			t.Errorf("check %t: %v: %s", check, err, out.String())
		}
	}
	path := filepath.Join(root, filepath.FromSlash(contractPath))
	body, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := write(path, bytes.Replace(body, []byte(`"maxItems":200`), []byte(`"maxItems":300`), 1)); err != nil {
		t.Fatal(err)
	}
	put(t, root, "events/left.over.json", "{}")
	says(t, "both", generate(&out, options{root: root, check: true}), "1 stale", "the change is major", "maxItems: was 300, now 200 (major)")
}

// Each schema file is the same as itself, and differs from its bare form in words only.
func TestBareForm_OfEachFile(t *testing.T) {
	all, err := schema.Files()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range all {
		bare, err := change.Bare(f.Body)
		if err != nil || strings.Contains(string(bare), "\n") || strings.Contains(string(bare), `"description":"`) {
			t.Errorf("%s: %v %s", f.Path, err, bare)
		}
		if level, why := change.Compare(sideOf(f.Path), f.Body, f.Body); level != change.Same {
			t.Errorf("%s: %s %q", f.Path, level, why)
		}
		if level, why := change.Compare(sideOf(f.Path), bare, f.Body); level != change.Patch {
			t.Errorf("%s: %s %q", f.Path, level, why)
		}
	}
}

func TestSideOf(t *testing.T) {
	for path, want := range map[string]change.Side{
		"commands/thread.create.json": change.Asked, "queries/thread.get.json": change.Asked, "resources/request.json": change.Asked,
		"resources/reply.json": change.Answered, "events/thread.created.json": change.Answered, "commit.json": change.Answered, "event-envelope.json": change.Answered,
	} {
		if got := sideOf(path); got != want {
			t.Errorf("%s: %d", path, got)
		}
	}
}
