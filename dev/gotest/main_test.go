package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
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

func TestMeasures(t *testing.T) { t.Skip("it measures times: make test-long runs it") }

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
	code, err := run(&out, &errs, "test", root, []string{"./..."})
	// What is first of the two packages is not said, and one of them is the last line.
	want := regexp.MustCompile(`^(ok|\?) .*\n` +
		`skipped\town/a TestParts/one: a_test.go:13: there is no node\nskipped\t1 tests, for the reasons above\nskipped\t1 tests that other targets run\n(ok|\?) .*\n$`)
	if code != 0 || err != nil || !want.Match(out.Bytes()) || !bytes.Contains(out.Bytes(), []byte("ok  \town/a\t")) || !bytes.Contains(out.Bytes(), []byte("?   \town/b\t[no test files]\n")) {
		t.Errorf("code %d, %v:\n%s%s", code, err, &out, &errs)
	}
}

// A test that every target leaves to another one would run nowhere.
func TestRun_FailsWhereATestIsSkippedInItsOwnTarget(t *testing.T) {
	root := module(t, map[string]string{"a/a_test.go": passing})
	var out, errs bytes.Buffer
	code, err := run(&out, &errs, "test-long", root, []string{"./a"})
	if code != 1 || err == nil || !bytes.Contains(out.Bytes(), []byte("own/a TestMeasures: a_test.go:10: it measures times")) || !bytes.HasSuffix(out.Bytes(), []byte("\nFAIL\n")) {
		t.Errorf("code %d, %v:\n%s%s", code, err, &out, &errs)
	}
}

func TestChoose(t *testing.T) {
	file := filepath.Join(t.TempDir(), "long")
	if err := os.WriteFile(file, []byte("# takes long\nb TestB # a minute\n\na TestA\nb TestC\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	another := filepath.Join(t.TempDir(), "alone")
	if err := os.WriteFile(another, []byte("a TestD\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ only, without, want string }{
		"all":     {"", "", "-v"},
		"several": {"", file + "," + another, "-skip ^(TestB|TestA|TestC|TestD)$ -v"},
		"of both": {file + "," + another, "", "-run ^(TestB|TestA|TestC|TestD)$ -v ./a ./b"},
		"only":    {file, "", "-run ^(TestB|TestA|TestC)$ -v ./a ./b"},
		"without": {"", file, "-skip ^(TestB|TestA|TestC)$ -v"},
	} {
		got, err := choose(c.only, c.without, []string{"-v"})
		if err != nil || strings.Join(got, " ") != c.want {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	for _, c := range [][2]string{{file, file}, {file + ".gone", ""}} {
		if got, err := choose(c[0], c[1], nil); err == nil {
			t.Errorf("%q: %q", c, got)
		}
	}
	for _, text := range []string{"", "# none\n", "TestA\n", "a TestA TestB\n"} {
		if folders, names, err := parseList(text); err == nil {
			t.Errorf("%q: %q %q", text, folders, names)
		}
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
			code, err := run(&out, &errs, "test", module(t, c.files), []string{"./..."})
			all := errs.String() + out.String()
			if code == 0 || err != nil || !regexp.MustCompile(c.want).MatchString(all) {
				t.Errorf("code %d, %v:\n%s", code, err, all)
			}
		})
	}
}

// The tests that took longest are listed, longest first; parts of tests are not.
func TestReader_ListsSlowTests(t *testing.T) {
	var out bytes.Buffer
	r := &reader{out: &out, packages: map[string]*report{}}
	err := r.read(strings.NewReader(`{"Action":"pass","Package":"own/a","Test":"TestQuick","Elapsed":0.4}
{"Action":"pass","Package":"own/a","Test":"TestSlow/part","Elapsed":40}
{"Action":"pass","Package":"own/a","Test":"TestSlow","Elapsed":41.2}
{"Action":"pass","Package":"own/b","Test":"TestSlower","Elapsed":77}
`))
	r.end(false)
	if want := "slow\t77 s\town/b TestSlower\nslow\t41 s\town/a TestSlow\n"; err != nil || out.String() != want {
		t.Errorf("%v: %q, want %q", err, out.String(), want)
	}
}
