package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"

	"go.yaml.in/yaml/v3"
	"golang.org/x/mod/module"

	"github.com/skein-threads/skein/dev/repository"
)

// product is the module that is released.
const product = "github.com/skein-threads/skein"

// The release that the tests make.
const (
	testVersion = "0.1.0-test.1"
	testCommit  = "0123456789abcdef0123456789abcdef01234567"
	testDate    = "2026-01-02T03:04:05Z"
)

// released skips a test unless the target of the tests of releases runs it.
func released(t *testing.T) {
	t.Helper()
	if os.Getenv("SKEIN_RELEASE") == "" {
		t.Skip("it builds programs and packages for a release: make test-release runs it")
	}
}

// settings is the part of .goreleaser.yaml that the tests use themselves.
type settings struct {
	Env      []string
	Builds   []struct{ GOOS, GOARCH, Flags, LDFlags []string }
	Archives []struct {
		Name      string `yaml:"name_template"`
		Overrides []struct {
			GOOS    string
			Formats []string
		} `yaml:"format_overrides"`
		Files []struct{ Src, Dst string }
	}
	NFPMs []map[string]any
	Signs []struct {
		Cmd  string
		Args []string
	}
}

func goreleaser(t *testing.T) settings {
	t.Helper()
	body, err := os.ReadFile(filepath.Join(repository.Root(), ".goreleaser.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var s settings
	if err := yaml.Unmarshal(body, &s); err != nil {
		t.Fatal(err)
	}
	if len(s.Builds) != 1 || len(s.Archives) != 1 || len(s.NFPMs) != 1 || len(s.Signs) != 1 {
		t.Fatalf("%d builds, %d archives, %d packages and %d signatures; the tests know one of each", len(s.Builds), len(s.Archives), len(s.NFPMs), len(s.Signs))
	}
	return s
}

// builder builds from the module as a proxy has it, once for all tests: what go install makes of
// it, and what a release does.
type builder struct {
	mu       sync.Mutex
	dir      string
	programs map[string]string // by flags of the linker
}

// build returns the program that the flags of the linker make.
func (b *builder) build(t *testing.T, ldflags string) string {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	if program, ok := b.programs[ldflags]; ok {
		return program
	}
	proxy := filepath.Join(b.dir, "proxy")
	if len(b.programs) == 0 {
		publish(t, proxy, module.Version{Path: product, Version: "v" + testVersion})
	}
	bin := filepath.Join(b.dir, "bin"+string(rune('a'+len(b.programs))))
	known := strings.TrimSpace(output(t, "", nil, "go", "env", "GOMODCACHE"))
	env := append(goreleaser(t).Env, "GOSUMDB=off", "GOFLAGS=-modcacherw -trimpath", "GOBIN="+bin, "GOMODCACHE="+filepath.Join(b.dir, "mod"),
		"GOPROXY=file://"+proxy+",file://"+filepath.Join(known, "cache", "download")+","+strings.TrimSpace(output(t, "", nil, "go", "env", "GOPROXY")))
	output(t, b.dir, env, "go", "install", "-ldflags="+ldflags, product+"/cmd/skein@latest")
	b.programs[ldflags] = filepath.Join(bin, "skein")
	return b.programs[ldflags]
}

// release returns the program with the flags of a release.
func (b *builder) release(t *testing.T) string {
	t.Helper()
	return b.build(t, releaseFlags(t))
}

// releaseFor returns the program of a release for a system. Those for others than this machine's are
// built from the tree.
func (b *builder) releaseFor(t *testing.T, s system) string {
	t.Helper()
	if (s == system{runtime.GOOS, runtime.GOARCH}) {
		return b.release(t)
	}
	program := filepath.Join(t.TempDir(), "skein")
	c := goreleaser(t)
	env := append(c.Env, "GOFLAGS="+strings.Join(c.Builds[0].Flags, " "), "GOOS="+s.os, "GOARCH="+s.arch)
	output(t, repository.Root(), env, "go", "build", "-ldflags="+releaseFlags(t), "-o", program, "./cmd/skein")
	return program
}

// releaseFlags returns the linker's flags of a release.
func releaseFlags(t *testing.T) string {
	t.Helper()
	known := map[string]string{"Version": testVersion, "FullCommit": testCommit, "CommitDate": testDate}
	return regexp.MustCompile(`\{\{\.(\w+)\}\}`).ReplaceAllStringFunc(goreleaser(t).Builds[0].LDFlags[0], func(s string) string {
		return known[strings.Trim(s, "{.}")]
	})
}

// told is what skein version says, as JSON.
func told(t *testing.T, program string) (v struct{ Version, Commit, Date, Contract string }) {
	t.Helper()
	if err := json.Unmarshal([]byte(output(t, "", nil, program, "version", "--json")), &v); err != nil {
		t.Fatal(err)
	}
	return v
}

// output runs a program to its end, and returns what it printed.
func output(t *testing.T, dir string, env []string, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir, cmd.Env = cmp.Or(dir, "."), append(clean(), env...)
	var problems bytes.Buffer
	cmd.Stderr = &problems
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s%s", strings.Join(append([]string{name}, args...), " "), err, out, problems.String())
	}
	return string(out)
}

// clean is the environment without variables that would change skein.
func clean() []string {
	var env []string
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "SKEIN_") {
			env = append(env, v)
		}
	}
	return env
}
