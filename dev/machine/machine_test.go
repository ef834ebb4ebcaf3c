package machine_test

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/skein-threads/skein/dev/machine"
)

// The test's own program is the launcher, and the program that is launched: what
// it is depends on its environment.
func TestMain(m *testing.M) {
	machine.Begin()
	if os.Getenv("MACHINE_TEST_PARENT") != "" {
		if err := parent(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	if name := os.Getenv("MACHINE_TEST_FILE"); name != "" {
		if err := tell(name); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// tell answers each line of the input with the time of day, how long an fsync
// took, and how much time went by on the clock of timers since the beginning.
func tell(name string) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	defer f.Close()
	began := time.Now()
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		if _, err := f.WriteString("x"); err != nil {
			return err
		}
		start := time.Now()
		if err := f.Sync(); err != nil {
			return err
		}
		fmt.Println(time.Now().UnixMilli(), time.Since(start).Milliseconds(), time.Since(began).Milliseconds())
	}
	return nil
}

// parent starts a program that lasts, says its id, and lasts itself.
func parent() error {
	self, err := machine.Launcher()
	if err != nil {
		return err
	}
	cmd := exec.Command(self, "sleep", "600")
	cmd.Stdout = os.Stdout
	if err := new(machine.Machine).Start(cmd); err != nil {
		return err
	}
	fmt.Println(cmd.Process.Pid)
	return cmd.Wait()
}

// teller is such a program on a machine.
type teller struct {
	t   *testing.T
	cmd *exec.Cmd
	in  io.Writer
	out *bufio.Scanner
}

func start(t *testing.T, m *machine.Machine) *teller {
	t.Helper()
	self, err := machine.Launcher()
	must(t, err)
	cmd := exec.Command(self, self)
	cmd.Env = append(os.Environ(), "MACHINE_TEST_FILE="+filepath.Join(t.TempDir(), "file"))
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	must(t, err)
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, m.Start(cmd))
	t.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Wait()
	})
	return &teller{t, cmd, in, bufio.NewScanner(out)}
}

// told is what it says.
type told struct {
	ahead         time.Duration // of this process's clock
	sync, sinceUp time.Duration
}

func (p *teller) ask() told {
	p.t.Helper()
	_, err := fmt.Fprintln(p.in)
	must(p.t, err)
	if !p.out.Scan() {
		p.t.Fatalf("it has gone: %v", p.out.Err())
	}
	var n [3]time.Duration
	for i, word := range strings.Fields(p.out.Text()) {
		ms, err := strconv.ParseInt(word, 10, 64)
		must(p.t, err)
		n[i] = time.Duration(ms) * time.Millisecond
	}
	return told{time.UnixMilli(n[0].Milliseconds()).Sub(time.Now().Round(0)), n[1], n[2]}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func check(t *testing.T) {
	t.Helper()
	if err := machine.Check(); err != nil {
		t.Skipf("no machines here: %v", err)
	}
}

func TestSlowDisk(t *testing.T) {
	check(t)
	var m machine.Machine
	p := start(t, &m)
	p.ask()
	const slow = 300 * time.Millisecond
	m.SlowDisk(slow)
	if got := p.ask().sync; got < slow {
		t.Errorf("an fsync took %v on a disk that takes %v", got, slow)
	}
	m.SlowDisk(0)
	// The disk itself may be busy for a while.
	for start := time.Now(); p.ask().sync >= slow; {
		if time.Since(start) > time.Minute {
			t.Fatal("the disk is still slow")
		}
	}
}

// The clock jumps, to and fro, and that of timers does not. The machine keeps its
// clock when the program is started again.
func TestWrongClock(t *testing.T) {
	check(t)
	if runtime.GOARCH != "amd64" {
		t.Skip("a clock can be set on amd64")
	}
	var m machine.Machine
	p := start(t, &m)
	const near = 30 * time.Second // a loaded machine takes its time to answer
	began := time.Now()
	last := p.ask().sinceUp
	for _, ahead := range []time.Duration{0, 3 * time.Hour, -2 * time.Hour, 90 * time.Second, -10 * 365 * 24 * time.Hour, time.Hour} {
		must(t, m.SetClock(ahead))
		got := p.ask()
		if d := got.ahead - ahead; d.Abs() > near {
			t.Errorf("its clock is %v ahead, not %v", got.ahead, ahead)
		}
		if got.sinceUp < last || got.sinceUp > time.Since(began)+time.Second {
			t.Errorf("the clock of timers went from %v to %v, and it has run for %v", last, got.sinceUp, time.Since(began))
		}
		last = got.sinceUp
	}
	must(t, p.cmd.Process.Signal(syscall.SIGKILL)) // it reaches the program, not a launcher
	if err := p.cmd.Wait(); err == nil || p.out.Scan() {
		t.Error("a program that was killed goes on")
	}
	again := start(t, &m)
	if got := again.ask().ahead - time.Hour; got.Abs() > near {
		t.Errorf("after the start its clock is %v from where it was", got)
	}
}

// What cannot be started is said by Start, or by how it ends.
func TestNoProgram(t *testing.T) {
	check(t)
	self, err := machine.Launcher()
	must(t, err)
	if err := new(machine.Machine).Start(exec.Command(self, "/nowhere/to/be/found")); err == nil {
		t.Error("it was started")
	}
}

// A program ends with the one that started it, however that ends.
func TestNothingIsLeft(t *testing.T) {
	check(t)
	self, err := machine.Launcher()
	must(t, err)
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), "MACHINE_TEST_PARENT=1")
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	said := bufio.NewScanner(out)
	said.Scan()
	child, err := strconv.Atoi(said.Text())
	must(t, err)
	must(t, cmd.Process.Kill())
	for said.Scan() { // the child has the pipe, too: it ends when both have gone
	}
	if err := cmd.Wait(); err == nil {
		t.Error("it was not killed")
	}
	for start := time.Now(); ; time.Sleep(time.Millisecond) {
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", child))
		if err != nil || strings.Contains(string(status), ") Z ") {
			return
		}
		if time.Since(start) > time.Minute {
			t.Fatalf("process %d is left: %s", child, status)
		}
	}
}
