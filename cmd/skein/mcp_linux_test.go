package main_test

import (
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/skein-threads/skein/internal/natstest"
)

// A client that never reads does not keep the process from ending on SIGTERM, with exit code 0.
func TestMCP_StdioNeverRead(t *testing.T) {
	t.Parallel()
	s := start(t, t.TempDir())
	var made reply
	decode(t, s.ok("thread", "create", "--json"), &made)
	s.ok("item", "add", made.ThreadID, strings.Repeat("x", 60<<10))
	cmd := skeinMCP(s)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	lines := `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"raw","version":"1"}}}` + "\n"
	for i := range 50 {
		lines += fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"read_thread","arguments":{"thread":%q}}}`+"\n", i+1, made.ThreadID)
	}
	if _, err := io.WriteString(in, lines); err != nil {
		t.Fatal(err)
	}
	pipe := int(out.(*os.File).Fd())
	size, err := unix.FcntlInt(uintptr(pipe), unix.F_GETPIPE_SZ, 0)
	if err != nil {
		t.Fatal(err)
	}
	natstest.Eventually(t, "the pipe is not full", func() bool { // so that a write waits
		n, err := unix.IoctlGetInt(pipe, unix.TIOCINQ)
		return err == nil && n > size-2*os.Getpagesize()
	})
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if state, err := cmd.Process.Wait(); err != nil || state.ExitCode() != 0 {
		t.Errorf("it ended with %v, %v", state, err)
	}
	s.stop()
}
