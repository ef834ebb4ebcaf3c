package mcp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	// writeTime is how long a program may leave its stdin full.
	writeTime = 10 * time.Second
	// grace is the time to end by itself, and again after SIGTERM.
	grace = time.Second
	// lastWords is how long stdout is read after the program's end: a child process may
	// keep it open.
	lastWords = time.Second
)

// process is a program that speaks MCP on stdin and stdout.
type process struct {
	cmd    *exec.Cmd
	stdin  *os.File // a pipe of our own, for its deadlines
	stdout *os.File
	lines  *lines
	writes atomic.Uint64 // number of messages that it may have read
	exited chan struct{} // closed when it has ended
}

// startProcess starts a program with only these variables. Its stderr goes to stderr,
// or is discarded.
func startProcess(def Server, env []string, stderr io.Writer, most int) (*process, error) {
	theirIn, ourIn, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer theirIn.Close()
	ourOut, theirOut, err := os.Pipe()
	if err != nil {
		ourIn.Close()
		return nil, err
	}
	defer theirOut.Close()
	cmd := exec.Command(def.Command, def.Args...)
	cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = env, theirIn, theirOut, stderr
	cmd.WaitDelay = lastWords
	ownGroup(cmd)
	if err := cmd.Start(); err != nil {
		ourIn.Close()
		ourOut.Close()
		return nil, err
	}
	p := &process{cmd: cmd, stdin: ourIn, stdout: ourOut, lines: &lines{r: ourOut, most: most}, exited: make(chan struct{})}
	go func() {
		_ = cmd.Wait() // the state shows how it ended
		_ = ourOut.SetReadDeadline(time.Now().Add(lastWords))
		close(p.exited)
	}()
	return p, nil
}

// transport returns the library's transport over its pipes. Reads are limited here,
// where the reason of a refusal is known.
func (p *process) transport() mcp.Transport {
	return &mcp.IOTransport{Reader: readCloser{p.lines, p.stdout}, Writer: p, MaxLineLength: -1}
}

type readCloser struct {
	io.Reader
	io.Closer
}

// Write writes a message to the program, which must read it in time: a call must not
// block on a program that does not read.
func (p *process) Write(message []byte) (int, error) {
	p.writes.Add(1)
	_ = p.stdin.SetWriteDeadline(time.Now().Add(writeTime))
	n, err := p.stdin.Write(message)
	if errors.Is(err, os.ErrDeadlineExceeded) { // half a message may be in the pipe, so nothing can follow it
		_ = p.lines.refuse(fmt.Errorf("it did not read its stdin for %s", writeTime))
		_ = p.stdout.SetReadDeadline(time.Now())
	}
	return n, err
}

// Close closes its stdin, which asks it to end.
func (p *process) Close() error { return p.stdin.Close() }

// stop ends the program and its child processes, by force if necessary, and returns
// when it has ended.
func (p *process) stop() {
	_ = p.stdin.Close()
	for _, force := range []bool{false, true} {
		if p.ended(grace) {
			break
		}
		signalGroup(p.cmd, force)
	}
	<-p.exited
	signalGroup(p.cmd, true) // remaining child processes
	_ = p.stdout.Close()
}

// kill ends the program immediately.
func (p *process) kill() { signalGroup(p.cmd, true) }

func (p *process) ended(within time.Duration) bool {
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	select {
	case <-p.exited:
		return true
	case <-ctx.Done():
		return false
	}
}

// cause returns why the program sends nothing more; it waits a moment for the program's
// end.
func (p *process) cause() error {
	switch refused := p.lines.refused.Load(); {
	case refused != nil:
		return *refused
	case !p.lines.over.Load():
		return errors.New("it wrote what is not MCP on stdout")
	case p.ended(grace):
		return fmt.Errorf("its program ended (%s)", p.cmd.ProcessState)
	}
	return errors.New("it closed its stdout")
}

// lines reads the program's stdout, where each message is one line of JSON, and refuses
// a line that is too long or is not JSON.
type lines struct {
	r       io.Reader
	most    int
	length  int                   // of the current line
	refused atomic.Pointer[error] // why reading has stopped
	over    atomic.Bool           // the program has closed its stdout
}

func (l *lines) Read(into []byte) (int, error) {
	if refused := l.refused.Load(); refused != nil {
		return 0, *refused
	}
	n, err := l.r.Read(into)
	start := 0 // of the line, in the bytes read
	for at, c := range into[:n] {
		switch {
		case c == '\n':
			l.length, start = 0, at+1
			continue
		case l.length == 0 && !slices.Contains([]byte("{[ \t\r"), c):
			return start, l.refuse(errors.New("it wrote something other than MCP on stdout; a server logs to stderr"))
		case l.length == l.most:
			return start, l.refuse(tooLong{l.most})
		}
		l.length++
	}
	if errors.Is(err, io.EOF) || errors.Is(err, os.ErrDeadlineExceeded) {
		l.over.Store(true)
	}
	return n, err
}

func (l *lines) refuse(err error) error {
	l.refused.Store(&err)
	return err
}
