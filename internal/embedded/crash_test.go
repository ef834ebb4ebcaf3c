package embedded_test

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/skein-threads/skein/internal/embedded"
	"github.com/skein-threads/skein/internal/natstest"
)

// crashStore names the store of the process that TestKilledProcess starts.
const crashStore = "SKEIN_TEST_CRASH_STORE"

// TestServeUntilKilled is the other process of TestKilledProcess.
func TestServeUntilKilled(t *testing.T) {
	dir := os.Getenv(crashStore)
	if dir == "" {
		t.Skip("runs only within TestKilledProcess")
	}
	s := natstest.Start(t, natstest.StoreDir(dir), natstest.SyncAlways())
	fmt.Println("url " + s.URL())
	time.Sleep(time.Minute) // Killed before; ends by itself if the parent is gone.
}

// TestKilledProcess: the store of a living process is refused to another one,
// and a killed process leaves neither a lock nor a loss.
func TestKilledProcess(t *testing.T) {
	dir := t.TempDir()
	child := exec.Command(os.Args[0], "-test.run=^TestServeUntilKilled$", "-test.v")
	child.Env = append(os.Environ(), crashStore+"="+dir)
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	killed := false
	kill := func() {
		if !killed {
			killed = true
			_ = child.Process.Kill()
			_ = child.Wait() // Says that it was killed.
		}
	}
	defer kill()

	var url string
	for lines := bufio.NewScanner(out); url == "" && lines.Scan(); {
		url, _ = strings.CutPrefix(lines.Text(), "url ")
		if !strings.HasPrefix(url, "nats://") {
			url = ""
		}
	}
	if url == "" {
		t.Fatal("the other process did not start a server")
	}
	nc := natstest.Dial(t, url)
	publishOne(t, nc, "acknowledged")

	_, err = embedded.Start(onFreePort(dir))
	var inUse *embedded.StoreInUseError
	if !errors.As(err, &inUse) || inUse.PID != child.Process.Pid {
		t.Errorf("got %v, want a StoreInUseError that names process %d", err, child.Process.Pid)
	}
	kill()

	after := natstest.Start(t, natstest.StoreDir(dir))
	if got := readOne(t, natstest.Connect(t, after)); got != "acknowledged" {
		t.Errorf("after the kill the stream holds %q, want acknowledged", got)
	}
}
