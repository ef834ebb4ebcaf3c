// Package examples_test runs the examples against a real server, as a user would, and
// checks that the docs show them.
package examples_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/natstest"
	"github.com/skein-threads/skein/runtime"
	"github.com/skein-threads/skein/runtime/remote"
)

// EK-102, EK-103: a reactor in Node, using its NATS client alone, and a tool (SA-66).
func TestNode(t *testing.T) {
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("node is not installed")
	}
	npm, err := exec.LookPath("npm")
	if err != nil {
		t.Skip("npm is not installed")
	}
	dir := t.TempDir()
	for _, name := range []string{"package.json", "reactor.js", "tool.js"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(read(t, "node/"+name)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	install := exec.CommandContext(ctx, npm, "install", "--no-audit", "--no-fund", "--prefer-offline", "--fetch-retries=0", "--fetch-timeout=20000")
	install.Dir = dir
	if out, err := install.CombinedOutput(); err != nil {
		t.Skipf("npm cannot install the NATS client: %v: %.300s", err, out)
	}
	try(t, dir, nil, []string{node, "reactor.js"}, []string{node, "tool.js"})
}

// The same in Python. Without nats-py, a replacement of the few calls that are used
// speaks to the server.
func TestPython(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("python3 is not installed")
	}
	var env []string
	if exec.CommandContext(t.Context(), python, "-c", "import nats").Run() != nil {
		standIn, err := filepath.Abs("../dev/examples/testdata")
		if err != nil {
			t.Fatal(err)
		}
		t.Log("nats-py is not installed; a stand-in is used")
		env = []string{"PYTHONPATH=" + standIn, "PYTHONDONTWRITEBYTECODE=1"}
	}
	try(t, "python", env, []string{python, "reactor.py"}, []string{python, "tool.py"})
}

// try starts a reactor that shouts and a tool that adds, and calls them.
func try(t *testing.T, dir string, env, reactorCommand, toolCommand []string) {
	t.Helper()
	s := natstest.Start(t)
	nc, names := natstest.Connect(t, s), events.DefaultNames()
	env = append(append(os.Environ(), env...), "NATS_URL="+s.URL())
	run(t, dir, env, reactorCommand)
	run(t, dir, env, toolCommand)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()

	reactor, err := remote.Reactor(nc, names, "shout")
	if err != nil {
		t.Fatal(err)
	}
	said := func(parts string) *runtime.StepInput {
		return &runtime.StepInput{ItemID: "itm_2", Items: []events.Item{
			{ID: "itm_1", Type: events.Message, Role: events.User, Content: events.JSON(parts)},
			{ID: "itm_2", Type: events.Message, Role: events.Assistant, Content: events.JSON(`[]`)},
		}}
	}
	for range 3 { // a process answers more than once
		var out chunks
		got, err := reactor.React(ctx, said(`[{"type":"input_text","text":"hey "},{"type":"input_text","text":"you"}]`), &out)
		if err != nil {
			t.Fatal(err)
		}
		var part struct{ Type, Text string }
		if len(got.AssistantEvent.Content) != 1 || unmarshal(got.AssistantEvent.Content[0], &part) != nil || part.Type != events.OutputText || part.Text != "HEY YOU!" {
			t.Errorf("%s", got.AssistantEvent.Content)
		}
		var delta struct{ ID, Delta string }
		if len(out) != 1 || out[0].Type != runtime.ChunkTextDelta || unmarshal(out[0].Data, &delta) != nil || delta.ID != "itm_2" || delta.Delta != "HEY YOU!" {
			t.Errorf("%+v", out)
		}
	}
	_, err = reactor.React(ctx, &runtime.StepInput{Items: []events.Item{}}, nil)
	var retry *runtime.RetryError
	if err == nil || errors.As(err, &retry) || strings.Contains(err.Error(), "skein.reactor") {
		t.Errorf("without a message of a user: %v", err)
	}

	tool, err := remote.Tool(nc, names, runtime.ToolSpec{Name: "add"})
	if err != nil {
		t.Fatal(err)
	}
	for arguments, want := range map[string]runtime.ToolResult{
		`{"a":40,"b":2}`: runtime.Done(events.JSON("42")), `{"a":40}`: runtime.Failed("a and b are numbers"),
	} {
		got, err := tool.Call(ctx, &runtime.ToolInput{Name: "add", Arguments: events.JSON(arguments)})
		if err != nil || got.Status != want.Status || string(got.Result) != string(want.Result) || got.Error != want.Error {
			t.Errorf("%s: %+v, %v", arguments, got, err)
		}
	}
}

// run starts a program, waits until it reports that it is ready, and ends it with the
// test.
func run(t *testing.T, dir string, env, command []string) {
	t.Helper()
	c := exec.CommandContext(t.Context(), command[0], command[1:]...)
	c.Dir, c.Env = dir, env
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var said strings.Builder
	c.Stderr = &said
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Process.Kill() // it may have ended
		_ = c.Wait()         // it was killed
		if t.Failed() {
			t.Logf("%v: %s", command, said.String())
		}
	})
	ready := make(chan bool, 1)
	go func() {
		lines := bufio.NewScanner(out)
		ready <- lines.Scan() && lines.Text() == "ready"
	}()
	select {
	case ok := <-ready:
		if !ok {
			t.Fatalf("%v did not start", command)
		}
	case <-time.After(5 * time.Minute):
		t.Fatalf("%v is not ready", command)
	}
}

func unmarshal(raw events.JSON, into any) error {
	return json.Unmarshal(raw, into, json.MatchCaseInsensitiveNames(true))
}

type chunks []runtime.Chunk

func (c *chunks) Chunk(chunk runtime.Chunk) { *c = append(*c, chunk) }

// The docs show the examples as they are.
func TestDocumentsShowTheExamples(t *testing.T) {
	if !strings.Contains(read(t, "../docs/http-workers.md"), "\n"+read(t, "endpoint/tool.mjs")+"```\n") {
		t.Error("docs/http-workers.md does not show endpoint/tool.mjs as it is")
	}
	// Go code in the docs is that of the examples that run, except for its indentation.
	code := plain(read(t, "../runtime/remote/example_test.go"))
	blocks := strings.Split(read(t, "../docs/reactors.md"), "```go\n")
	if len(blocks) < 3 {
		t.Fatal("found no Go code")
	}
	for _, block := range blocks[1:] {
		shown, _, _ := strings.Cut(block, "```\n")
		if !strings.Contains(code, plain(shown)) {
			t.Errorf("docs/reactors.md shows code that no example runs:\n%s", shown)
		}
	}
}

func plain(code string) string {
	var lines []string
	for line := range strings.Lines(code) {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "\n")
}

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.FromSlash(name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// listening starts a program that first prints the address on which it listens, and ends it with
// the test.
func listening(t *testing.T, program *exec.Cmd) string {
	t.Helper()
	var errs bytes.Buffer
	program.Stderr = &errs
	out, err := program.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := program.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = program.Process.Kill()
		_ = program.Wait()
		if t.Failed() {
			t.Log(errs.String())
		}
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(strings.TrimPrefix(line, "listening on "))
}
