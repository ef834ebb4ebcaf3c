package examples_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// The page of examples/chat goes on in the middle of a sentence after a reload, and stops.
func TestChatPage_ResumesAfterReload(t *testing.T) {
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("node is not installed")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	program := filepath.Join(t.TempDir(), "chat")
	if out, err := exec.CommandContext(ctx, "go", "build", "-o", program, "./chat").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	server := exec.CommandContext(ctx, program)
	server.Env = append(os.Environ(), "PAGE=chat", "STORE="+t.TempDir(), "LISTEN=127.0.0.1:0")
	address := listening(t, server)
	page := exec.CommandContext(ctx, node, "../dev/examples/testdata/chat_page.mjs")
	page.Env = append(os.Environ(), "PAGE=chat", "URL="+address)
	if out, err := page.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}
