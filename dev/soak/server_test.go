package soak

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/skein-threads/skein/internal/embedded"
)

// storeVariable names the folder on which this test binary runs as a server.
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

// beServer serves until its standard input ends with the test. It answers each line with
// the MiB that it has in use.
func beServer(dir string) error {
	o := embedded.NewOptions(dir)
	o.Listen, o.SyncAlways = "127.0.0.1:0", false
	s, err := embedded.Start(o)
	if err != nil {
		return err
	}
	defer s.Shutdown()
	fmt.Println(s.URL())
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		fmt.Println(inUse())
	}
	return lines.Err()
}

// inUse returns the MiB of the heap that are in use.
func inUse() float64 {
	runtime.GC()
	runtime.GC() // what pools held is free after the second one
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc) / (1 << 20)
}

// natsServer is a server in a process of its own.
type natsServer struct {
	url string
	pid int
	in  io.Writer
	out *bufio.Reader
}

// inUse asks the server how much of its heap is in use.
func (s *natsServer) inUse(t *testing.T) float64 {
	t.Helper()
	if _, err := fmt.Fprintln(s.in); err != nil {
		t.Fatal(err)
	}
	line, err := s.out.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	mib, err := strconv.ParseFloat(strings.TrimSpace(line), 64)
	if err != nil {
		t.Fatal(err)
	}
	return mib
}

// startServer runs a NATS server in a process of its own, so that its memory, in
// which it keeps the newest block of each stream, does not count as Skein's.
func startServer(t *testing.T) *natsServer {
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
		over := time.AfterFunc(time.Minute, func() { _ = cmd.Process.Kill() })
		defer over.Stop()
		if err := cmd.Wait(); err != nil {
			t.Errorf("the server: %v", err)
		}
	})
	answers := bufio.NewReader(out)
	line, err := answers.ReadString('\n')
	if err != nil {
		t.Fatalf("the server did not say its address: %v", err)
	}
	return &natsServer{strings.TrimSpace(line), cmd.Process.Pid, in, answers}
}

// handles returns the number of open file handles of a process, and whether the system
// tells it.
func handles(pid int) (float64, bool) {
	open, err := os.ReadDir(filepath.Join("/proc", strconv.Itoa(pid), "fd"))
	return float64(len(open)), err == nil
}

// gauge reads one of Skein's metrics.
func gauge(t *testing.T, skein, name string) float64 {
	t.Helper()
	answer, err := http.Get(skein + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	lines := bufio.NewScanner(answer.Body)
	for lines.Scan() {
		if text, ok := strings.CutPrefix(lines.Text(), name+" "); ok {
			value, err := strconv.ParseFloat(text, 64)
			if err != nil {
				t.Fatal(err)
			}
			return value
		}
	}
	t.Fatalf("%s/metrics tells no %s", skein, name)
	return 0
}
