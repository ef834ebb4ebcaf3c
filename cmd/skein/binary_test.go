package main_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// binary is the path of the tested program, built once.
var binary string

func TestMain(m *testing.M) { os.Exit(buildAndRun(m)) }

func buildAndRun(m *testing.M) int {
	dir, err := os.MkdirTemp("", "skein-test-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	binary = filepath.Join(dir, "skein")
	// The program that go run links stays in the build cache, for other packages' tests too.
	if out, err := exec.Command("go", "run", "-ldflags=-w", "-exec", "cp -f", ".", binary).CombinedOutput(); err != nil {
		panic(string(out))
	}
	return m.Run()
}

// secret signs requests to endpoints and webhooks.
const secret = "a-secret-that-is-nowhere-to-be-found"

// environment returns the environment of the tests, without variables that would change
// the program, with a timeout for a busy machine, and with the secrets of the tests.
func environment(add ...string) []string {
	env := []string{"SKEIN_TIMEOUT=2m", "HOOK_SECRET=" + secret, "BANK_SECRET=" + secret}
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "SKEIN_") {
			env = append(env, v)
		}
	}
	return append(env, add...)
}

// outcome is the result of one run of the program.
type outcome struct {
	out, err string
	code     int
	worked   time.Duration // processor time
}

// run runs the program to its end.
func run(t testing.TB, env []string, stdin string, args ...string) outcome {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), binary, args...)
	cmd.Env = environment(env...)
	cmd.Dir = t.TempDir()
	cmd.Stdin = strings.NewReader(stdin)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return outcome{out.String(), errs.String(), cmd.ProcessState.ExitCode(), cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()}
}

// server is a running `skein serve`.
type server struct {
	t   testing.TB
	cmd *exec.Cmd
	Ready,
	NATS,
	HTTP string
	env []string
}

// start runs `skein serve` on free ports and waits for its ready line.
func start(t testing.TB, store string, flags ...string) *server {
	t.Helper()
	return startLogged(t, os.Stderr, store, flags...)
}

// startLogged starts a server that writes its log to a writer.
func startLogged(t testing.TB, log io.Writer, store string, flags ...string) *server {
	t.Helper()
	return startCommand(t, log, exec.Command(binary, append([]string{"serve", "--json", "--store", store, "--log-level", "warn"}, flags...)...))
}

// startCommand runs a command that becomes skein serve, with --json.
func startCommand(t testing.TB, log io.Writer, cmd *exec.Cmd) *server {
	t.Helper()
	s := &server{t: t, cmd: cmd}
	s.cmd.Env = environment("SKEIN_NATS_LISTEN=127.0.0.1:0", "SKEIN_HTTP_LISTEN=127.0.0.1:0") // flags from variables
	s.cmd.Stderr = log
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.cmd.Process.Kill() })
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("no ready line: %v", err)
	}
	var ready struct {
		Ready      bool
		NATS, HTTP string
	}
	decode(t, line, &ready)
	if !ready.Ready {
		t.Fatalf("the ready line: %s", line)
	}
	s.Ready, s.NATS, s.HTTP = line, ready.NATS, ready.HTTP
	s.env = []string{"SKEIN_SERVER=" + s.NATS, "SKEIN_TENANT=acme"}
	return s
}

// stop ends the server as an operator does, and expects exit code 0 within 10 s.
func (s *server) stop() {
	s.t.Helper()
	begin := time.Now()
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		s.t.Fatal(err)
	}
	if err := s.cmd.Wait(); err != nil || time.Since(begin) > 10*time.Second {
		s.t.Errorf("serve ended with %v after %v", err, time.Since(begin))
	}
}

// ok runs a command against the server, which must succeed, and returns its output.
func (s *server) ok(args ...string) string {
	s.t.Helper()
	o := run(s.t, s.env, "", args...)
	if o.code != 0 {
		s.t.Fatalf("skein %s: exit %d: %s\n%.4000s", strings.Join(args, " "), o.code, o.err, o.out)
	}
	return o.out
}

func decode(t testing.TB, text string, v any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), v); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
}

// decodeLines decodes one document a line.
func decodeLines[T any](t testing.TB, text string) []T {
	t.Helper()
	var out []T
	for line := range strings.Lines(text) {
		var v T
		decode(t, line, &v)
		out = append(out, v)
	}
	return out
}
