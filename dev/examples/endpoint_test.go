package examples_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/runtime"
	"github.com/skein-threads/skein/runtime/egress"
	"github.com/skein-threads/skein/runtime/remote"
)

const shopSecret = "the-secret-of-the-example-shop"

// serveEndpoint starts a program that prints its address, and returns the endpoint whose
// requests are signed with a secret.
func serveEndpoint(t *testing.T, secret string, command ...string) func(keys ...remote.Key) remote.Endpoint {
	t.Helper()
	c := exec.CommandContext(t.Context(), command[0], command[1:]...)
	c.Env = append(os.Environ(), "PORT=0", "SHOP_SECRET="+secret)
	address := listening(t, c)
	policy, err := egress.Parse([]string{"127.0.0.1"})
	if err != nil {
		t.Fatal(err)
	}
	client := remote.NewClient(policy.Transport())
	t.Cleanup(client.CloseIdleConnections)
	return func(keys ...remote.Key) remote.Endpoint {
		return remote.Endpoint{URL: address, Keys: keys, Client: client}
	}
}

func key(id, secret string) remote.Key { return remote.Key{ID: id, Secret: []byte(secret)} }

// adds calls a tool that adds.
func adds(t *testing.T, at func(keys ...remote.Key) remote.Endpoint) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	call := func(arguments string, keys ...remote.Key) (runtime.ToolResult, error) {
		tool, err := remote.HTTPTool(at(keys...), runtime.ToolSpec{Name: "add"})
		if err != nil {
			t.Fatal(err)
		}
		return tool.Call(ctx, &runtime.ToolInput{Name: "add", Arguments: events.JSON(arguments)})
	}
	for arguments, want := range map[string]runtime.ToolResult{
		`{"a":40,"b":2}`: runtime.Done(events.JSON("42")), `{"a":40}`: runtime.Failed("a and b are numbers"),
	} {
		got, err := call(arguments, key("SHOP_SECRET", shopSecret))
		if err != nil || got.Status != want.Status || string(got.Result) != string(want.Result) || got.Error != want.Error {
			t.Errorf("%s: %+v, %v", arguments, got, err)
		}
	}
	if _, err := call(`{"a":40,"b":2}`, key("SHOP_SECRET_2", "a-new-secret-of-the-shop"), key("SHOP_SECRET", shopSecret)); err != nil {
		t.Errorf("while the secret is replaced: %v", err)
	}
	if _, err := call(`{"a":40,"b":2}`, key("SHOP_SECRET", "another-secret-altogether")); err == nil || !strings.Contains(err.Error(), "has status 401: the signature is not valid") {
		t.Errorf("a wrong signature: %v", err)
	}
}

func TestEndpoint_ToolInNode(t *testing.T) {
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("node is not installed")
	}
	adds(t, serveEndpoint(t, shopSecret, node, "endpoint/tool.mjs"))
}

func TestEndpoint_ToolInGo(t *testing.T) {
	program := filepath.Join(t.TempDir(), "tool")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, "./endpoint/tool").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	adds(t, serveEndpoint(t, shopSecret, program))
}

func TestEndpoint_StreamingReactorInPython(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("python3 is not installed")
	}
	at := serveEndpoint(t, shopSecret, python, "endpoint/reactor.py")
	in := &runtime.StepInput{ItemID: "itm_2", Items: []events.Item{
		{ID: "itm_1", Type: events.Message, Role: events.User, Content: events.JSON(`[{"type":"input_text","text":"hey you"}]`)},
	}}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	react := func(secret string) (*runtime.Reaction, chunks, error) {
		reactor, err := remote.HTTPReactor(at(key("SHOP_SECRET", secret)))
		if err != nil {
			t.Fatal(err)
		}
		var out chunks
		got, err := reactor.React(ctx, in, &out)
		return got, out, err
	}
	got, out, err := react(shopSecret)
	if err != nil || len(out) != 2 || string(out[0].Data) != `{"id": "itm_2", "delta": "HEY "}` || !strings.Contains(string(got.AssistantEvent.Content[0]), "HEY YOU!") {
		t.Errorf("%+v %+v %v", got, out, err)
	}
	if _, _, err := react("another-secret-altogether"); err == nil || !strings.Contains(err.Error(), "has status 401") {
		t.Errorf("a wrong signature: %v", err)
	}
}
