package chaos

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/rs/zerolog"

	"github.com/skein-threads/skein/server"
)

// TestMain runs the test's program as one of the processes of a test: PROGRAM -chaos MODE
// NAME FOLDER URL.
func TestMain(m *testing.M) {
	if len(os.Args) == 6 && os.Args[1] == "-chaos" {
		if err := program(os.Args[2], os.Args[3], os.Args[4], os.Args[5]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// The modes of the program.
const (
	workerMode = "worker" // works on the server at URL
	wholeMode  = "whole"  // a whole Skein, with its store in FOLDER/store
	toolMode   = "tool"   // is the tool NAME on the server at URL
)

// program runs until it is killed, or until its standard input ends with the test.
func program(mode, name, folder, url string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	ctx, orphaned := context.WithCancel(ctx)
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		orphaned()
	}()
	if mode == toolMode {
		return serveTool(ctx, name, url)
	}
	talks, err := readTalks()
	if err != nil {
		return err
	}
	cfg := server.Config{NATS: url, HTTPListen: "127.0.0.1:0", Worker: name, Workers: 64}
	if mode == wholeMode {
		cfg.NATS, cfg.Store, cfg.NATSListen = "", filepath.Join(folder, "store"), url
		cfg.Register = talks.register(folder, nil)
	} else {
		nc, err := nats.Connect(url, nats.Timeout(time.Minute))
		if err != nil {
			return err
		}
		defer nc.Close()
		cfg.Register = talks.register(folder, asking(nc, name))
	}
	s, err := server.Start(ctx, cfg, zerolog.New(os.Stderr).Level(zerolog.InfoLevel).With().Timestamp().Logger())
	if err != nil {
		return err
	}
	fmt.Println("ready " + s.Addresses().NATS)
	<-ctx.Done()
	last, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	return s.Stop(last)
}

// process is a process of the test's own program.
type process struct {
	t    testing.TB
	cmd  *exec.Cmd
	in   io.Closer
	url  string // as it said that it is ready
	done sync.WaitGroup

	mu    sync.Mutex
	lines []string      // of its log
	more  chan struct{} // closed when there is another one
}

// launch starts a process and waits until it is ready.
func launch(t testing.TB, mode, name, folder, url string) *process {
	t.Helper()
	p, err := tryLaunch(t, mode, name, folder, url)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// tryLaunch is launch for goroutines other than the test's own.
func tryLaunch(t testing.TB, mode, name, folder, url string) (*process, error) {
	binary, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p := &process{t: t, cmd: exec.Command(binary, "-chaos", mode, name, folder, url), more: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), "OPENAI_API_KEY=", "OPENAI_BASE_URL=")
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	log, err := p.cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	p.done.Go(func() { p.read(log) })
	t.Cleanup(p.kill)
	ready := make(chan string, 1)
	p.done.Go(func() {
		defer close(ready)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			if url, ok := strings.CutPrefix(lines.Text(), "ready "); ok {
				ready <- url
			}
		}
	})
	select {
	case url, ok := <-ready:
		if !ok {
			p.done.Wait()
			return nil, fmt.Errorf("the process %s did not start: %s", name, strings.Join(p.lines, "\n"))
		}
		p.url = url
		return p, nil
	case <-time.After(time.Minute):
		p.kill()
		return nil, fmt.Errorf("the process %s was not ready in a minute", name)
	}
}

func (p *process) read(log io.Reader) {
	lines := bufio.NewScanner(log)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if os.Getenv("SKEIN_CHAOS_LOG") != "" {
			fmt.Fprintln(os.Stderr, lines.Text())
		}
		p.mu.Lock()
		p.lines = append(p.lines, lines.Text())
		close(p.more)
		p.more = make(chan struct{})
		p.mu.Unlock()
	}
}

// says waits until the process has logged a line with that text.
func (p *process) says(text string) {
	p.t.Helper()
	deadline := time.After(patience)
	for from := 0; ; {
		p.mu.Lock()
		lines, more := p.lines[from:], p.more
		p.mu.Unlock()
		for _, line := range lines {
			if strings.Contains(line, text) {
				return
			}
		}
		from += len(lines)
		select {
		case <-more:
		case <-deadline:
			p.t.Fatalf("the process never said %q, but:\n%s", text, strings.Join(p.lines, "\n"))
		}
	}
}

// signal sends a signal.
func (p *process) signal(s syscall.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Fatal(err)
	}
}

// alive reports whether the process is running.
func (p *process) alive() bool { return p.cmd.Process.Signal(syscall.Signal(0)) == nil }

// kill ends the process with SIGKILL. It may be called twice, by one goroutine at a time.
func (p *process) kill() {
	if p.cmd.ProcessState != nil {
		return
	}
	_ = p.cmd.Process.Kill()
	p.done.Wait()
	_ = p.cmd.Wait() // says that it was killed
	_ = p.in.Close()
}

// stop ends the process gracefully, with SIGTERM.
func (p *process) stop() {
	p.t.Helper()
	p.signal(syscall.SIGTERM)
	p.done.Wait()
	if err := p.cmd.Wait(); err != nil {
		p.t.Errorf("the process did not end well: %v\n%s", err, strings.Join(p.lines, "\n"))
	}
}

// patience is how long a test waits for what must come.
const patience = 3 * time.Minute
