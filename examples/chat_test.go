package examples_test

import (
	"bufio"
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
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
	var errs bytes.Buffer
	server.Stderr = &errs
	out, err := server.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = server.Process.Kill()
		_ = server.Wait()
		if t.Failed() {
			t.Log(errs.String())
		}
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	page := exec.CommandContext(ctx, node, "testdata/chat_page.mjs")
	page.Env = append(os.Environ(), "PAGE=chat", "URL="+strings.TrimSpace(strings.TrimPrefix(line, "listening on ")))
	if out, err := page.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}
