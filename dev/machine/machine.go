package machine

import (
	"os"
	"os/exec"
	"sync"
	"time"
)

// Machine is what one program runs on: its disk and its clock. The zero value is a
// healthy one. It is safe for concurrent use.
type Machine struct {
	mu    sync.Mutex    // guards what follows
	sync  time.Duration // how long an fsync takes at least
	ahead time.Duration // of the true time
	clock *clock        // of the program that runs now; nil: none is known
	fault error         // why its clock cannot be set
}

// SlowDisk lets each fsync that begins from now on take at least d; 0 mends it.
func (m *Machine) SlowDisk(d time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.sync = d
}

// SetClock puts the time of day ahead of the true one, or behind it if d is
// negative; 0 mends it. It counts in whole seconds.
func (m *Machine) SetClock(d time.Duration) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ahead = d
	if m.clock == nil {
		return m.fault
	}
	return m.clock.set(d)
}

func (m *Machine) syncTakes() time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.sync
}

// begun records that a program has started, and sets its clock to the machine's.
func (m *Machine) begun(c *clock, fault error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if fault == nil {
		fault = c.set(m.ahead)
	}
	m.clock, m.fault = c, fault
}

// ended notes that the program with that clock has gone. The next one may be up
// already.
func (m *Machine) ended(c *clock) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.clock == c {
		m.clock, m.fault = nil, nil
	}
	c.close()
}

// Start starts a command, as cmd.Start does. The command's own program is Launcher,
// or runs Launcher; what follows this in the line is the program for the machine.
func (m *Machine) Start(cmd *exec.Cmd) error { return m.start(cmd) }

// Launcher names what becomes the program that its arguments name: this program,
// which therefore must call Begin.
func Launcher() (string, error) { return os.Executable() }
