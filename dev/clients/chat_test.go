// Package clients_test runs released clients of the protocols that Skein speaks over HTTP
// against a server, as their users do.
package clients_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/skein-threads/skein"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/skeintest"
)

// install installs the clients of package.json into a temporary folder, along with files of
// this folder.
func install(t *testing.T, files ...string) (dir, node string) {
	t.Helper()
	return installFrom(t, "package.json", files...)
}

// installFrom is install with the packages of another package.json.
func installFrom(t *testing.T, manifest string, files ...string) (dir, node string) {
	t.Helper()
	node, npm := findNode(t)
	dir = t.TempDir()
	for _, name := range append(files, manifest) {
		copyFile(t, filepath.FromSlash(name), filepath.Join(dir, filepath.Base(name)))
	}
	npmInstall(t, npm, dir)
	return dir, node
}

// copyFile copies a file.
func copyFile(t *testing.T, from, to string) {
	t.Helper()
	raw, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(to, raw, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// findNode returns the paths of node and npm, or skips the test where one is missing.
func findNode(t *testing.T) (node, npm string) {
	t.Helper()
	if os.Getenv("SKEIN_CLIENTS") == "" {
		t.Skip("it installs packages from npm; make test-clients runs it")
	}
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("node is not installed")
	}
	if npm, err = exec.LookPath("npm"); err != nil {
		t.Skip("npm is not installed")
	}
	return node, npm
}

// npmInstall installs the packages of dir/package.json, or skips the test where they cannot be
// fetched.
func npmInstall(t *testing.T, npm, dir string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, npm, "install", "--no-audit", "--no-fund", "--ignore-scripts", "--prefer-offline", "--fetch-retries=1", "--fetch-timeout=20000")
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Skipf("npm cannot install the packages: %v: %.300s", err, out)
	}
}

// script says what the reactor of TestAISDK says next to a slow message.
type script chan string

// ServeHTTP passes on a piece of the answer; an empty one ends it.
func (s script) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	select {
	case s <- r.URL.Query().Get("piece"):
	case <-r.Context().Done():
	}
}

func (s script) react(ctx context.Context, in *skein.StepInput, out skein.Stream) (*skein.Reaction, error) {
	emit := func(kind, text string) {
		data, err := json.Marshal(map[string]string{"id": kind, "delta": text})
		if err == nil {
			out.Chunk(skein.Chunk{Type: kind + "-delta", Data: data})
		}
	}
	said := in.LastText(events.User)
	switch {
	case in.Agent == "careful":
		return call(in), nil
	case said == "fail":
		return nil, errors.New("the model is gone")
	case said == "change your mind":
		emit("text", "It is, ")
		select {
		case <-s: // the client shows it
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		out.Chunk(skein.Chunk{Type: events.ChunkContextSubstate, Data: []byte(`{"substate":"retrying"}`)})
		emit("text", "It was")
		return skein.Answer("It was"), nil
	case said == "think":
		emit("reasoning", "let me ")
		emit("reasoning", "think")
		r := skein.Answer("you said think")
		r.AssistantEvent.Content = append([]events.JSON{events.JSON(`{"type":"reasoning","summary":[{"type":"summary_text","text":"let me think"}]}`)}, r.AssistantEvent.Content...)
		return r, nil
	case said == "Where is order 42?":
		emit("text", "It is ")
		emit("text", "on its way.")
		return skein.Answer("It is on its way."), nil
	case said != "slow":
		return skein.Answer("you said " + said), nil
	}
	var all strings.Builder
	for {
		select {
		case piece := <-s:
			if piece == "" {
				return skein.Answer(all.String()), nil
			}
			all.WriteString(piece)
			emit("text", piece)
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// call asks for a call that needs an approval, and for one that the client makes.
func call(in *skein.StepInput) *skein.Reaction {
	if in.Iteration > 0 {
		return skein.Answer("done")
	}
	r := skein.Answer("let me see, ")
	for _, c := range []skein.ToolCall{
		{CallID: "c1", Name: "refund", Arguments: []byte(`{"eur":5}`)}, {CallID: "c2", Name: "how_much", Arguments: []byte(`{"question":"How much?"}`)},
	} {
		r.ToolCalls = append(r.ToolCalls, c)
		r.AssistantEvent.Content = append(r.AssistantEvent.Content,
			events.JSON(`{"type":"tool-`+c.Name+`","toolCallId":"`+c.CallID+`","input":`+string(c.Arguments)+`}`))
	}
	return r
}

// The AI SDK's chat, with its own transport, parses every stream and ends with the messages
// that the server has: of version 7, and of version 6.
func TestAISDK(t *testing.T) {
	dir, node := install(t, "chat.mjs")
	for _, sdk := range []string{"ai", "ai6"} {
		t.Run(sdk, func(t *testing.T) { chats(t, node, dir, sdk) })
	}
}

func chats(t *testing.T, node, dir, sdk string) {
	say := make(script)
	s := serve(t, say)
	s.Must(s.Tool(skein.NewTool("refund", func(_ context.Context, in struct {
		EUR int `json:"eur"`
	}) (map[string]any, error) {
		return map[string]any{"refunded": in.EUR, "__proto__": map[string]bool{"admin": true}}, nil
	}, skein.Description("Refunds."))))
	var apply events.ApplyDefinitions
	for _, d := range []struct {
		kind events.DefinitionKind
		text string
	}{
		{events.ToolKind, `{"name":"refund","description":"Refunds.","type":"go","auto":false}`},
		{events.ToolKind, `{"name":"how_much","description":"Asks.","type":"person"}`},
		{events.AgentKind, `{"name":"careful","type":"ai_human","reactor":"assistant","tools":["refund","how_much"]}`},
	} {
		apply.Definitions = append(apply.Definitions, events.NewDefinition{Kind: d.kind, Definition: []byte(d.text)})
	}
	if _, err := s.Client("acme").Send(t.Context(), "", apply); err != nil {
		t.Fatal(err)
	}
	control := httptest.NewServer(say)
	t.Cleanup(control.Close)
	runScript(t, node, dir, "chat.mjs", "SKEIN_URL="+s.Addresses().HTTP, "CONTROL_URL="+control.URL, "AI_SDK="+sdk)
}

// serve starts a server that listens for HTTP, with the reactor assistant.
func serve(t *testing.T, say script) *skeintest.Server {
	t.Helper()
	s := skeintest.Start(t, func(o *skein.Options) {
		o.NATSListen, o.HTTPListen, o.Tenant = "127.0.0.1:0", "127.0.0.1:0", "acme"
	})
	s.Must(s.Reactor("assistant", say.react))
	return s
}

// runScript runs a script of tests in Node.
func runScript(t *testing.T, node, dir, name string, env ...string) {
	t.Helper()
	// Some clients keep the process when their tests have ended.
	cmd := exec.CommandContext(t.Context(), node, "--test", "--test-force-exit", "--test-reporter=spec", "--test-timeout=300000", name)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	t.Logf("%s", out)
	if err != nil {
		t.Errorf("%s: %v", name, err)
	}
}
