package main

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// A test program that has not changed is run as it is, one that has changed is made
// again, and packages of one name are all tested.
func TestKeepPrograms_LinksWhatHasChanged(t *testing.T) {
	passes := func(name string) string {
		return "package a\n\nimport \"testing\"\n\nfunc " + name + "(*testing.T) {}\n"
	}
	root := module(t, map[string]string{"a/a_test.go": passes("TestOne"), "deep/a/a_test.go": passes("TestTwo"), "b/b.go": "package b\n"})
	folder := t.TempDir()
	goTest := func() (int, string) {
		t.Helper()
		runs, err := plan(root, folder, []string{"-count=1", "-vet=off", "./..."})
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		code, err := run(&out, io.Discard, "test", root, runs...)
		if err != nil {
			t.Fatal(err)
		}
		return code, out.String()
	}
	sizes := func() (of []int64) {
		t.Helper()
		for _, run := range []string{"0", "1"} {
			info, err := os.Stat(filepath.Join(folder, run, "a.test"))
			if err != nil {
				t.Fatal(err)
			}
			of = append(of, info.Size())
		}
		return of
	}
	want := func(code int, out string, lines ...string) {
		t.Helper()
		for _, line := range lines {
			if !strings.Contains(out, line) {
				t.Errorf("code %d, without %q:\n%s", code, line, out)
			}
		}
	}
	code, out := goTest()
	if want(code, out, "ok  \town/a\t", "ok  \town/deep/a\t", "?   \town/b\t"); code != 0 {
		t.Errorf("code %d:\n%s", code, out)
	}
	for _, run := range []string{"0", "1"} { // a program may be followed by anything
		f, err := os.OpenFile(filepath.Join(folder, run, "a.test"), os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteString("as it was"); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	marked := sizes()
	code, out = goTest()
	if want(code, out, "ok  \town/a\t", "ok  \town/deep/a\t"); code != 0 {
		t.Errorf("code %d:\n%s", code, out)
	}
	if now := sizes(); !slices.Equal(now, marked) {
		t.Errorf("the programs have %d bytes, want %d: they were made again", now, marked)
	}
	if err := os.WriteFile(filepath.Join(root, "deep/a/a_test.go"), []byte(strings.ReplaceAll(failing, "package c", "package a")), 0o600); err != nil {
		t.Fatal(err)
	}
	code, out = goTest()
	if want(code, out, "ok  \town/a\t", "--- FAIL: TestFails", "FAIL\town/deep/a\t"); code == 0 || !strings.HasSuffix(out, "\nFAIL\n") {
		t.Errorf("code %d:\n%s", code, out)
	}
}

func TestPlan(t *testing.T) {
	none := module(t, map[string]string{})
	for _, folder := range []string{"", t.TempDir()} {
		if runs, err := plan(none, folder, []string{"-v", "./..."}); err != nil || !reflect.DeepEqual(runs, [][]string{{"-v", "./..."}}) {
			t.Errorf("where there is no package: %q, %v", runs, err)
		}
		if runs, err := plan(none, folder, []string{"-v"}); err == nil {
			t.Errorf("without a pattern: %q", runs)
		}
	}
	two := module(t, map[string]string{"a/a.go": "package a\n", "b/b_test.go": "package b\n"})
	for _, packages := range [][]string{{"./..."}, {two + "/a", two + "/b"}} {
		runs, err := plan(two, "", append([]string{"-timeout", "1m"}, packages...))
		if want := [][]string{{"-timeout", "1m", "own/b", "own/a"}}; err != nil || !reflect.DeepEqual(runs, want) {
			t.Errorf("%q, want %q: %v", runs, want, err)
		}
	}
}

func TestApart(t *testing.T) {
	got := apart([]string{"m", "m/a", "m/b/a", "m/b/m", "m/c", "m/c/a"})
	if want := [][]string{{"m", "m/a", "m/c"}, {"m/b/a", "m/b/m"}, {"m/c/a"}}; !reflect.DeepEqual(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// The packages with the most files of tests come first, the others in their order.
func TestLongestFirst(t *testing.T) {
	got := longestFirst("a 1 0\nb 0 0\nc 2 3\nd 1 0\ne 4 0\n")
	if want := []string{"c", "e", "a", "d", "b"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
