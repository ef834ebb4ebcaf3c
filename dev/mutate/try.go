package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// outcome is what became of a mutant.
type outcome string

// The outcomes of a mutant.
const (
	killed   outcome = "killed"
	survived outcome = "SURVIVED"
	invalid  outcome = "INVALID" // no longer applies, does not compile, or is tested by nothing
)

// verdict is an outcome with its reason: of a mutant that was killed, the test that
// noticed.
type verdict struct {
	outcome
	why string
}

// try tests with a mutant.
func try(ctx context.Context, o options, m Mutant) verdict {
	body, err := m.Apply(os.DirFS(o.root))
	if err != nil {
		return verdict{invalid, err.Error()}
	}
	dir, err := os.MkdirTemp("", "skein-mutant-")
	if err != nil {
		return verdict{invalid, err.Error()}
	}
	defer os.RemoveAll(dir) //nolint:errcheck // a temporary folder
	overlay, err := overlay(dir, o.root, m.File, body)
	if err != nil {
		return verdict{invalid, err.Error()}
	}
	out, err := test(ctx, o, m.Package, m.Run, "-overlay="+overlay)
	return judge(out, err)
}

// overlay writes a changed file to a folder, and next to it what tells the go
// command to use it.
func overlay(dir, root, file string, body []byte) (string, error) {
	original, err := filepath.Abs(filepath.Join(root, file))
	if err != nil {
		return "", err
	}
	changed, list := filepath.Join(dir, filepath.Base(file)), filepath.Join(dir, "overlay.json")
	replace, err := json.Marshal(map[string]map[string]string{"Replace": {original: changed}})
	if err != nil {
		return "", err
	}
	return list, errors.Join(os.WriteFile(changed, body, 0o600), os.WriteFile(list, replace, 0o600))
}

// test runs tests of a package. The flags hold for programs that the tests build, too. The
// error is that of the go command.
func test(ctx context.Context, o options, pkg, run string, flags ...string) ([]byte, error) {
	command := exec.CommandContext(ctx, "go", "test", "-vet=off", "-count=1", "-timeout", o.timeout.String(), "-run", run, pkg)
	command.Dir = o.root
	command.Env = append(os.Environ(), "GOFLAGS="+strings.Join(append(flags, os.Getenv("GOFLAGS")), " "))
	command.WaitDelay = 5 * time.Second
	return command.CombinedOutput()
}

// judge says what the output of the tests means for a mutant.
func judge(out []byte, err error) verdict {
	var exit *exec.ExitError
	switch {
	case bytes.Contains(out, []byte("[no tests to run]")):
		return verdict{invalid, "no test has this name"}
	case err == nil:
		return verdict{survived, "every test passed"}
	case !errors.As(err, &exit):
		return verdict{invalid, err.Error()}
	case bytes.Contains(out, []byte("[build failed]")), bytes.Contains(out, []byte("[setup failed]")):
		return verdict{invalid, "it does not compile: " + firstMatch(out, `(?m)^\S+\.go:\d+.*$`)}
	}
	for _, sign := range []string{`(?m)^--- FAIL: (\S+)`, `(?m)^panic: .*$`, `(?m)^fatal error: .*$`} {
		if found := firstMatch(out, sign); found != "" {
			return verdict{killed, found}
		}
	}
	return verdict{invalid, "the tests ended in a way that says nothing: " + firstMatch(out, `(?m)^.+$`)}
}

func firstMatch(out []byte, pattern string) string {
	found := regexp.MustCompile(pattern).FindSubmatch(out)
	if found == nil {
		return ""
	}
	return strings.TrimSpace(string(found[len(found)-1]))
}

// unchanged runs the tests of the mutants without any: one that fails always would
// kill every mutant.
func unchanged(ctx context.Context, out io.Writer, o options, mutants []Mutant) error {
	var packages []string
	runs := map[string][]string{}
	for _, m := range mutants {
		if runs[m.Package] == nil {
			packages = append(packages, m.Package)
		}
		if !slices.Contains(runs[m.Package], m.Run) {
			runs[m.Package] = append(runs[m.Package], m.Run)
		}
	}
	for _, pkg := range packages {
		said, err := test(ctx, o, pkg, strings.Join(runs[pkg], "|"))
		if err != nil {
			return fmt.Errorf("the tests of %s fail without a mutant:\n%s", pkg, said)
		}
		fmt.Fprintf(out, "%-9s %s\n", "unchanged", pkg)
	}
	return nil
}
