package soak

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/skein-threads/skein/internal/embedded"
)

// storeVariable makes this test binary a server on that folder.
const storeVariable = "SKEIN_SOAK_STORE"

func TestMain(m *testing.M) {
	if dir := os.Getenv(storeVariable); dir != "" {
		if err := beServer(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// beServer serves until its standard input ends, which it does when the test dies.
func beServer(dir string) error {
	o := embedded.NewOptions(dir)
	o.Listen, o.SyncAlways = "127.0.0.1:0", false
	s, err := embedded.Start(o)
	if err != nil {
		return err
	}
	defer s.Shutdown()
	fmt.Println(s.URL())
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

// startServer runs a NATS server in a process of its own, so that its memory, in
// which it keeps the newest block of each stream, does not count as Skein's.
func startServer(t *testing.T) (url string, pid int) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), storeVariable+"="+t.TempDir())
	cmd.Stderr = os.Stderr
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
	t.Cleanup(func() {
		_ = in.Close()
		over := time.AfterFunc(30*time.Second, func() { _ = cmd.Process.Kill() })
		defer over.Stop()
		if err := cmd.Wait(); err != nil {
			t.Errorf("the server: %v", err)
		}
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("the server did not say its address: %v", err)
	}
	return strings.TrimSpace(line), cmd.Process.Pid
}

// handles counts the file handles of a process; false where the system does not
// tell.
func handles(pid int) (float64, bool) {
	open, err := os.ReadDir(filepath.Join("/proc", strconv.Itoa(pid), "fd"))
	return float64(len(open)), err == nil
}

// resident gives the memory of a process in MiB; false where the system does not
// tell.
func resident(pid int) (float64, bool) {
	raw, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "status"))
	if err != nil {
		return 0, false
	}
	for line := range strings.Lines(string(raw)) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kib, err := strconv.ParseFloat(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")), 64)
			return kib / 1024, err == nil
		}
	}
	return 0, false
}
