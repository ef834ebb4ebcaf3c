package examples_test

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// The agent of examples/person asks a person, whose answer is the result of its call;
// docs/agents.md shows its tool unchanged.
func TestPerson_AgentAsks(t *testing.T) {
	tool, _, _ := strings.Cut(read(t, "person/desk.yaml"), "---\n")
	if !strings.Contains(read(t, "../docs/agents.md"), "```yaml\n"+tool+"```\n") {
		t.Error("docs/agents.md does not show the tool of examples/person/desk.yaml as it is")
	}
	binary := buildSkein(t)
	env := serveAgent(t, binary, "person/clerk.py", read(t, "person/clerk.py"))
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	skein := func(args ...string) string {
		t.Helper()
		c := exec.CommandContext(ctx, binary, args...)
		c.Env = env
		c.Stderr = os.Stderr
		out, err := c.Output()
		if err != nil {
			t.Fatalf("skein %s: %v", strings.Join(args, " "), err)
		}
		return string(out)
	}
	file, err := filepath.Abs("person/desk.yaml")
	if err != nil {
		t.Fatal(err)
	}
	skein("apply", "-f", file)
	skein("thread", "create", "--key", "order", "--agent", "desk")
	wait := exec.CommandContext(ctx, binary, "thread", "react", "key:order", "refund o-1", "--wait", "--timeout", "4m")
	wait.Env = env
	var out, said bytes.Buffer
	wait.Stdout, wait.Stderr = &out, &said
	if err := wait.Start(); err != nil {
		t.Fatal(err)
	}
	for list := ""; !strings.Contains(list, "how_much: How much of order o-1 is refunded?"); list = skein("approval", "list") {
		if ctx.Err() != nil {
			t.Fatal("no person was asked")
		}
	}
	skein("approval", "resolve", "key:order", "ask-1", "--result", `{"eur":5}`)
	if err := wait.Wait(); err != nil || !strings.Contains(out.String(), `Refunded: {"eur": 5}`) || !strings.Contains(said.String(), "waiting for a person: How much of order o-1 is refunded?") {
		t.Errorf("it printed %q and %q: %v", out.String(), said.String(), err)
	}
}
