package examples_test

import (
	"context"
	"io"
	"net/http"
	"net/http/cookiejar"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// docs/state.md shows parts of the program examples/visitors as they are, and its visitors are
// answered as the page says.
func TestVisitors_WalkThrough(t *testing.T) {
	page := read(t, "../docs/state.md")
	_, walk, _ := strings.Cut(page, "\n### A walk-through\n")
	_, shown, _ := strings.Cut(walk, "\n```go\n")
	shown, _, found := strings.Cut(shown, "```\n")
	if !found {
		t.Fatal("docs/state.md shows nothing of examples/visitors/main.go")
	}
	for part := range strings.SplitSeq(shown, "\n\n") {
		if !strings.Contains(plain(read(t, "visitors/main.go")), plain(part)) {
			t.Errorf("docs/state.md shows what is not in examples/visitors/main.go:\n%s", part)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	binary, program := buildSkein(t), filepath.Join(t.TempDir(), "visitors")
	if out, err := exec.CommandContext(ctx, "go", "build", "-o", program, "./visitors").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	url := serveReadme(t, binary)
	env := append(os.Environ(), "NATS_URL="+url, "SKEIN_SERVER="+url, "SKEIN_TENANT=acme", "LISTEN=127.0.0.1:0")
	server := exec.CommandContext(ctx, program)
	server.Env = env
	address := listening(t, server)
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	visitor := &http.Client{Jar: jar}
	thread := ""
	// Each answer on the page is below the command that it answers.
	said := regexp.MustCompile(`(?m)^    curl .* -d '(.*)' 127\.0\.0\.1:8080\n    (.*)$`).FindAllStringSubmatch(page, -1)
	if len(said) != 3 {
		t.Fatalf("docs/state.md shows %d visits", len(said))
	}
	for _, pair := range said {
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+address, strings.NewReader(pair[1]))
		if err != nil {
			t.Fatal(err)
		}
		response, err := visitor.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(response.Body)
		_ = response.Body.Close()
		if err != nil || string(body) != pair[2] {
			t.Errorf("%s is answered with %s: %v", pair[1], body, err)
		}
		thread, _, _ = strings.Cut(response.Header.Get("x-thread-id"), ";")
	}
	skein := func(want string, args ...string) { // until the background work has been done
		t.Helper()
		if command := "bin/skein " + strings.Join(args, " "); !strings.Contains(strings.ReplaceAll(page, "'", ""), command) {
			t.Errorf("docs/state.md does not show %s", command)
		}
		for i, arg := range args {
			args[i] = strings.ReplaceAll(arg, "$T", thread)
		}
		for ; ; time.Sleep(100 * time.Millisecond) {
			c := exec.CommandContext(ctx, binary, args...)
			c.Env = env
			out, err := c.CombinedOutput()
			if err == nil && strings.Contains(string(out), want) {
				return
			}
			if ctx.Err() != nil {
				t.Fatalf("skein %s prints %s, and not %s: %v", args, out, want, err)
			}
		}
	}
	skein(`{"messages":["hello","how are you today"]}`, "state", "get", "$T")
	skein("eval short of agent Chat did not pass", "query", "log.list", `{"threadId":"$T"}`)
	skein("version", "state", "destroy", "$T")
	skein(`"messages":["hello","how are you today"]`, "kv", "get", "archives", "$T")
}
