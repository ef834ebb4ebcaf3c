package examples_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
)

// The agents of the README and of docs/start/nats.md are the files of examples/readme, unchanged, and
// the command that follows them prints their answer. The requests of docs/start/nats.md are answered.
func TestREADME_AgentsAnswer(t *testing.T) {
	blocks := map[string]string{}
	for language, name := range map[string]string{"js": "readme/shout.mjs", "py": "readme/shout.py"} {
		page := map[string]string{"js": "../README.md", "py": "../docs/start/nats.md"}[language]
		text := read(t, page)
		_, rest, found := strings.Cut(text, "\n```"+language+"\n")
		block, _, closed := strings.Cut(rest, "```\n")
		if blocks[name] = block; !found || !closed || block != read(t, name) || strings.Contains(rest, "\n```"+language+"\n") {
			t.Errorf("%s does not show %s as it is, or has another block of %s", page, name, language)
		}
		const command = `skein thread react key:hello "hello there" --agent shout --follow`
		if !strings.Contains(text, "\n"+command+"\n") {
			t.Fatalf("%s does not show %s", page, command)
		}
	}
	binary := buildSkein(t)
	for name, block := range blocks {
		t.Run(name, func(t *testing.T) {
			env := serveAgent(t, binary, name, block)
			skein := func(args ...string) (out, said string, err error) {
				c := exec.CommandContext(t.Context(), binary, args...)
				c.Env = env
				var o, e bytes.Buffer
				c.Stdout, c.Stderr = &o, &e
				err = c.Run()
				return o.String(), e.String(), err
			}
			if _, said, err := skein("thread", "create", "--key", "hello", "--title", "Hello"); err != nil {
				t.Fatal(said)
			}
			args := []string{"thread", "react", "key:hello", "hello there", "--agent", "shout", "--follow"}
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			for {
				out, said, err := skein(args...)
				if strings.Contains(said, "not_found") && ctx.Err() == nil { // the agent is not running yet
					continue
				}
				if err != nil || out != "HELLO THERE\n" {
					t.Errorf("it printed %q and %q: %v", out, said, err)
				}
				break
			}
			if strings.HasSuffix(name, ".py") {
				sendRequests(t, env)
			}
		})
	}
}

// sendRequests sends the requests of docs/start/nats.md, to the server that the environment names.
func sendRequests(t *testing.T, env []string) {
	t.Helper()
	url, _ := strings.CutPrefix(env[slices.IndexFunc(env, func(v string) bool { return strings.HasPrefix(v, "SKEIN_SERVER=") })], "SKEIN_SERVER=")
	nc, err := nats.Connect(url)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	requests := regexp.MustCompile(`(?m)^nats req (\S+) '(.+)'$`).FindAllStringSubmatch(read(t, "../docs/start/nats.md"), -1)
	if len(requests) != 2 {
		t.Errorf("docs/start/nats.md has the requests %q", requests)
	}
	for _, r := range requests {
		reply, err := nc.RequestWithContext(t.Context(), r[1], []byte(r[2]))
		if err != nil || bytes.Contains(reply.Data, []byte(`"error":`)) || !bytes.Contains(reply.Data, []byte("T-")) {
			t.Errorf("%s: %v", r[0], err)
		}
	}
}

// The program of docs/start/go.md runs as it stands there, and finds what it said before.
func TestDocs_StartGo(t *testing.T) {
	_, program, _ := strings.Cut(read(t, "../docs/start/go.md"), "```go\n")
	program, _, _ = strings.Cut(program, "```")
	dir := t.TempDir()
	source, binary := filepath.Join(dir, "main.go"), filepath.Join(dir, "hello")
	if err := os.WriteFile(source, []byte(program), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-ldflags=-w", "-o", binary, source).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, want := range []string{"GOOD MORNING 2\n", "GOOD MORNING 4\n"} {
		cmd := exec.CommandContext(t.Context(), binary)
		cmd.Dir = dir
		if out, err := cmd.Output(); err != nil || string(out) != want {
			t.Errorf("it prints %q and not %q: %v", out, want, err)
		}
	}
}

// buildSkein builds the binary, or copies it from the build cache.
func buildSkein(t *testing.T) string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "skein")
	if out, err := exec.CommandContext(t.Context(), "go", "run", "-ldflags=-w", "-exec", "cp -f", "../cmd/skein", binary).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return binary
}

// serveAgent runs skein serve with an agent until the test ends, and returns the
// environment for skein's commands.
func serveAgent(t *testing.T, binary, name, block string) []string {
	t.Helper()
	program, env, dir := agentCommand(t, name, block)
	url := serveReadme(t, binary)
	env = append(env, "NATS_URL="+url, "SKEIN_SERVER="+url, "SKEIN_TENANT=acme")
	agent := exec.CommandContext(t.Context(), program[0], program[1:]...)
	agent.Dir, agent.Env = dir, env
	var errs bytes.Buffer
	agent.Stderr = &errs
	if err := agent.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = agent.Process.Kill()
		_ = agent.Wait()
		if t.Failed() {
			t.Log(errs.String())
		}
	})
	return env
}

// agentCommand returns how an agent is started: its program, its environment and its
// folder.
func agentCommand(t *testing.T, name, block string) (program, env []string, dir string) {
	t.Helper()
	dir = t.TempDir()
	file := filepath.Base(name)
	if err := os.WriteFile(filepath.Join(dir, file), []byte(block), 0o600); err != nil {
		t.Fatal(err)
	}
	env = os.Environ()
	if strings.HasSuffix(name, ".py") {
		python, err := exec.LookPath("python3")
		if err != nil {
			t.Skip("python3 is not installed")
		}
		if exec.CommandContext(t.Context(), python, "-c", "import nats").Run() != nil {
			standIn, err := filepath.Abs("../dev/examples/testdata")
			if err != nil {
				t.Fatal(err)
			}
			t.Log("nats-py is not installed; a stand-in is used")
			env = append(env, "PYTHONPATH="+standIn, "PYTHONDONTWRITEBYTECODE=1")
		}
		return []string{python, file}, env, dir
	}
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("node is not installed")
	}
	npm, err := exec.LookPath("npm")
	if err != nil {
		t.Skip("npm is not installed")
	}
	if err := os.WriteFile(filepath.Join(dir, "package.json"), []byte(read(t, "node/package.json")), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	install := exec.CommandContext(ctx, npm, "install", "--no-audit", "--no-fund", "--prefer-offline", "--fetch-retries=0", "--fetch-timeout=20000")
	install.Dir = dir
	if out, err := install.CombinedOutput(); err != nil {
		t.Skipf("npm cannot install the NATS client: %v: %.300s", err, out)
	}
	return []string{node, file}, env, dir
}

// serveReadme runs skein serve, and returns the address of its NATS server.
func serveReadme(t *testing.T, binary string) string {
	t.Helper()
	c := exec.Command(binary, "serve", "--json", "--store", t.TempDir(), "--nats-listen", "127.0.0.1:0", "--http-listen", "127.0.0.1:0", "--log-level", "warn")
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Process.Signal(syscall.SIGTERM)
		_ = c.Wait()
	})
	line, err := bufio.NewReader(out).ReadBytes('\n')
	if err != nil {
		t.Fatalf("no ready line: %v", err)
	}
	var ready struct {
		NATS string `json:"nats"`
	}
	if err := json.Unmarshal(line, &ready); err != nil || ready.NATS == "" {
		t.Fatalf("the ready line: %s", line)
	}
	return ready.NATS
}
