package cluster

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/skein-threads/skein/dev/machine"
)

// Process is a program that can be started, ended and restarted. It is safe for
// concurrent use.
type Process struct {
	Name string // of its log file, too

	within  []string         // prefix of its command line
	args    []string         // the program and its arguments
	dir     string           // where its log is
	cwd     string           // where it runs
	machine *machine.Machine // nil: the one that everything runs on

	mu     sync.Mutex // guards the fields below
	cmd    *exec.Cmd  // nil: not running
	ended  chan struct{}
	paused bool
}

// Log returns the name of its output file.
func (p *Process) Log() string { return filepath.Join(p.dir, p.Name+".log") }

// Start starts it. line, if not nil, is called with each line of its standard output.
func (p *Process) Start(line func([]byte)) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd != nil {
		return fmt.Errorf("%s runs already", p.Name)
	}
	log, err := os.OpenFile(p.Log(), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	cmd, start, err := p.command()
	if err != nil {
		return errors.Join(err, log.Close())
	}
	cmd.Dir, cmd.Stderr, cmd.SysProcAttr = p.cwd, log, attributes()
	cmd.Stdout = &lines{take: func(b []byte) {
		_, _ = log.Write(append(b, '\n')) // a log of tests and trials
		if line != nil {
			line(b)
		}
	}}
	if err := start(); err != nil {
		return errors.Join(fmt.Errorf("%s: %w", p.Name, err), log.Close())
	}
	ended := make(chan struct{})
	p.cmd, p.ended, p.paused = cmd, ended, false
	go func() {
		_ = cmd.Wait() // its log shows how it ended
		_ = log.Close()
		p.mu.Lock()
		p.cmd = nil
		p.mu.Unlock()
		close(ended)
	}()
	return nil
}

// command returns its command, and a function that starts it.
func (p *Process) command() (cmd *exec.Cmd, start func() error, err error) {
	line := slices.Clone(p.within)
	if p.machine != nil {
		launcher, err := machine.Launcher()
		if err != nil {
			return nil, nil, err
		}
		line = append(line, launcher)
	}
	line = append(line, p.args...)
	cmd = exec.Command(line[0], line[1:]...)
	if p.machine != nil {
		return cmd, func() error { return p.machine.Start(cmd) }, nil
	}
	return cmd, cmd.Start, nil
}

// Machine returns the machine that it runs on: nil without Config.Machines.
func (p *Process) Machine() *machine.Machine { return p.machine }

// Running reports whether it runs; one that is paused does.
func (p *Process) Running() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.cmd != nil
}

// PID returns the id by which the system knows it; if it does not run, -1, which is no process's.
func (p *Process) PID() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd == nil {
		return -1
	}
	return p.cmd.Process.Pid
}

// Kill ends it immediately, as a crash does, and waits until it has ended.
func (p *Process) Kill() { p.end(syscall.SIGKILL, 0) }

// Stop asks it to end and waits; after patience it is killed.
func (p *Process) Stop(patience time.Duration) {
	p.Resume()
	p.end(syscall.SIGTERM, patience)
}

func (p *Process) end(signal os.Signal, patience time.Duration) {
	p.mu.Lock()
	cmd, ended := p.cmd, p.ended
	p.mu.Unlock()
	if cmd == nil {
		return
	}
	_ = cmd.Process.Signal(signal) // it may have ended
	if signal != os.Kill {
		select {
		case <-ended:
			return
		case <-time.After(patience):
			_ = cmd.Process.Kill()
		}
	}
	<-ended
}

// Pause suspends it, like a machine that hangs.
func (p *Process) Pause() { p.hold(true) }

// Resume continues it.
func (p *Process) Resume() { p.hold(false) }

func (p *Process) hold(pause bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd != nil && p.paused != pause {
		p.paused = pause
		hold(p.cmd.Process, pause)
	}
}

// Wait waits until it has ended.
func (p *Process) Wait(ctx context.Context) error {
	p.mu.Lock()
	cmd, ended := p.cmd, p.ended
	p.mu.Unlock()
	if cmd == nil {
		return nil
	}
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// lines calls a function for each written line.
type lines struct {
	take func([]byte)
	rest []byte
}

// Write implements io.Writer.
func (l *lines) Write(b []byte) (int, error) {
	l.rest = append(l.rest, b...)
	for {
		advance, line, err := bufio.ScanLines(l.rest, false)
		if err != nil || advance == 0 {
			return len(b), err
		}
		l.take(bytes.Clone(line))
		l.rest = l.rest[advance:]
	}
}
