package clients_test

import (
	"context"
	"errors"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	acpgo "github.com/coder/acp-go-sdk"

	"github.com/skein-threads/skein/api/acp"
)

// The official TypeScript client talks to skein acp, as an editor does.
func TestACP_Node(t *testing.T) {
	dir, node := installFrom(t, "acp/package.json", "acp/acp.mjs")
	binary := filepath.Join(t.TempDir(), "skein")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-ldflags=-w", "-o", binary, "github.com/skein-threads/skein/cmd/skein").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	s := agui(t)
	runScript(t, node, dir, "acp.mjs", "SKEIN_BINARY="+binary, "SKEIN_SERVER="+s.Addresses().NATS)
}

// goEditor is a client of coder/acp-go-sdk. Nothing but its permissions and updates is used.
type goEditor struct {
	acpgo.Client
	option acpgo.PermissionOptionId // that answers permissions

	mu    sync.Mutex // guards text
	text  map[string]string
	first chan struct{} // receives when a text begins
}

func (e *goEditor) RequestPermission(context.Context, acpgo.RequestPermissionRequest) (acpgo.RequestPermissionResponse, error) {
	return acpgo.RequestPermissionResponse{Outcome: acpgo.NewRequestPermissionOutcomeSelected(e.option)}, nil
}

func (e *goEditor) SessionUpdate(_ context.Context, n acpgo.SessionNotification) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch u := n.Update; {
	case u.AgentMessageChunk != nil:
		e.text["agent"] += u.AgentMessageChunk.Content.Text.Text
		select {
		case e.first <- struct{}{}:
		default:
		}
	case u.UserMessageChunk != nil:
		e.text["user"] += u.UserMessageChunk.Content.Text.Text
	case u.ToolCallUpdate != nil && u.ToolCallUpdate.Status != nil:
		e.text["call"] = string(*u.ToolCallUpdate.Status)
	}
	return nil
}

// said returns what came of a kind since it was asked last.
func (e *goEditor) said(kind string) string {
	e.mu.Lock()
	defer e.mu.Unlock()
	text := e.text[kind]
	delete(e.text, kind)
	return text
}

// The Go SDK of the protocol prompts, grants and denies, cancels, loads, and is told of failures.
func TestACP_Go(t *testing.T) {
	s := agui(t)
	toServer, in := io.Pipe()
	out, fromServer := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		ended <- acp.New(s.Client("acme"), acp.Options{Agent: "triage"}).Serve(t.Context(), toServer, fromServer)
	}()
	e := &goEditor{text: map[string]string{}, first: make(chan struct{}, 1)}
	c := acpgo.NewClientSideConnection(e, in, out)
	ctx := t.Context()
	init, err := c.Initialize(ctx, acpgo.InitializeRequest{ProtocolVersion: acpgo.ProtocolVersionNumber})
	s.Must(err)
	if init.ProtocolVersion != acpgo.ProtocolVersionNumber || !init.AgentCapabilities.LoadSession || !init.AgentCapabilities.PromptCapabilities.Image {
		t.Errorf("%+v", init)
	}
	made, err := c.NewSession(ctx, acpgo.NewSessionRequest{Cwd: "/work", McpServers: []acpgo.McpServer{}})
	s.Must(err)
	prompt := func(text string) (acpgo.StopReason, error) {
		r, err := c.Prompt(ctx, acpgo.PromptRequest{SessionId: made.SessionId, Prompt: []acpgo.ContentBlock{acpgo.TextBlock(text)}})
		return r.StopReason, err
	}
	if reason, err := prompt("hello"); err != nil || reason != acpgo.StopReasonEndTurn || e.said("agent") != "you said hello" {
		t.Errorf("%v, %v", reason, err)
	}
	for option, status := range map[acpgo.PermissionOptionId]string{"allow_once": "completed", "reject_once": "failed"} {
		e.option = option
		reason, err := prompt("refund")
		if said, call := e.said("agent"), e.said("call"); err != nil || reason != acpgo.StopReasonEndTurn || !strings.HasSuffix(said, "done") || call != status {
			t.Errorf("%s: %v, %v after %q with %s", option, reason, err, said, call)
		}
	}
	select { // of the turns before
	case <-e.first:
	default:
	}
	go func() {
		<-e.first
		_ = c.Cancel(ctx, acpgo.CancelNotification{SessionId: made.SessionId})
	}()
	if reason, err := prompt("slow"); err != nil || reason != acpgo.StopReasonCancelled {
		t.Errorf("%v, %v", reason, err)
	}
	e.said("agent")
	_, err = c.LoadSession(ctx, acpgo.LoadSessionRequest{SessionId: made.SessionId, Cwd: "/work", McpServers: []acpgo.McpServer{}})
	s.Must(err)
	if user, agent := e.said("user"), e.said("agent"); user != "hellorefundrefundslow" || !strings.HasPrefix(agent, "you said hellolet me seedone") {
		t.Errorf("loaded %q and %q", user, agent)
	}
	var refused *acpgo.RequestError
	if _, err := c.LoadSession(ctx, acpgo.LoadSessionRequest{SessionId: "nope", Cwd: "/work", McpServers: []acpgo.McpServer{}}); !errors.As(err, &refused) || refused.Code != -32002 {
		t.Errorf("an unknown session: %v", err)
	}
	s.Must(in.Close())
	s.Must(<-ended)
}
