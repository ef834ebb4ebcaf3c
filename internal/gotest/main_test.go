package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// module makes a module of files.
func module(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	files["go.mod"] = "module own\n\ngo 1.24\n"
	for name, body := range files {
		path := filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(body), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

const passing = `package a

import (
	"fmt"
	"testing"
)

func TestPasses(t *testing.T) { fmt.Println("noise"); t.Log("noise") }

func TestMeasures(t *testing.T) { t.Skip("it measures times") }

func TestParts(t *testing.T) {
	t.Run("one", func(t *testing.T) { t.Skipf("there is no %s", "node") })
	t.Run("two", func(t *testing.T) {})
}
`

const failing = `package c

import "testing"

func TestFails(t *testing.T) { t.Error("it is broken") }

func TestPasses(t *testing.T) { t.Log("noise") }
`

func TestRun_ListsWhatIsSkipped(t *testing.T) {
	root := module(t, map[string]string{"a/a_test.go": passing, "b/b.go": "package b\n"})
	var out, errs bytes.Buffer
	code, err := run(&out, &errs, regexp.MustCompile("^TestMeasures$"), root, []string{"./..."})
	// What is first of the two packages is not said, and one of them is the last line.
	want := regexp.MustCompile(`^(ok|\?) .*\n` +
		`skipped\town/a TestParts/one: a_test.go:13: there is no node\nskipped\t1 tests, for the reasons above\n(ok|\?) .*\n$`)
	if code != 0 || err != nil || !want.Match(out.Bytes()) || !bytes.Contains(out.Bytes(), []byte("ok  \town/a\t")) || !bytes.Contains(out.Bytes(), []byte("?   \town/b\t[no test files]\n")) {
		t.Errorf("code %d, %v:\n%s%s", code, err, &out, &errs)
	}
	out.Reset()
	if _, err := run(&out, &errs, regexp.MustCompile("^$"), root, []string{"./a"}); err != nil || !regexp.MustCompile(`own/a TestMeasures: a_test.go:10: it measures times\n`).Match(out.Bytes()) {
		t.Errorf("%v:\n%s", err, &out)
	}
}

func TestRun_ShowsWhatFails(t *testing.T) {
	for name, c := range map[string]struct {
		files map[string]string
		want  string
	}{
		"a test": {map[string]string{"c/c_test.go": failing},
			`^    c_test.go:5: it is broken\n--- FAIL: TestFails \(\S+\)\nFAIL\nFAIL\town/c\t\S+\nFAIL\n$`},
		"a build": {map[string]string{"c/c_test.go": "package c\n\nvar x int = \"\"\n"}, `(?s)c_test.go:3:13: cannot use .*FAIL\town/c \[build failed\]\nFAIL\n$`},
		"a panic": {map[string]string{"c/c_test.go": "package c\n\nimport \"testing\"\n\nfunc TestPanics(*testing.T) { panic(\"no\") }\n"},
			`(?s)panic: no.*FAIL\town/c\t\S+\nFAIL\n$`},
		"no package": {map[string]string{}, `no packages to test\nFAIL\n$`},
	} {
		t.Run(name, func(t *testing.T) {
			var out, errs bytes.Buffer
			code, err := run(&out, &errs, regexp.MustCompile("^$"), module(t, c.files), []string{"./..."})
			all := errs.String() + out.String()
			if code == 0 || err != nil || !regexp.MustCompile(c.want).MatchString(all) {
				t.Errorf("code %d, %v:\n%s", code, err, all)
			}
		})
	}
}
