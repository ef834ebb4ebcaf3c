package faults_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/skein-threads/skein/dev/cluster"
	"github.com/skein-threads/skein/dev/machine"
	"github.com/skein-threads/skein/events"
)

// TestMain lets the tests' own program launch the processes of the clusters.
func TestMain(m *testing.M) {
	machine.Begin()
	os.Exit(m.Run())
}

// machines reports whether each process has a machine of its own.
func (w *world) machines() bool { return w.Servers[0].Machine() != nil }

// machineFaults returns the faults of machines: slow disks and clocks that jump. Where a
// process cannot have a machine of its own there are none.
func machineFaults(w *world) []fault {
	if !w.machines() {
		return nil
	}
	slow := func(name string, of func(w *world) int) fault {
		return fault{name, func(w *world, ctx context.Context) {
			m, takes := w.Servers[of(w)].Machine(), time.Duration(20+w.rng.IntN(2000))*time.Millisecond
			w.t.Logf("an fsync takes %v", takes)
			m.SlowDisk(takes)
			sleep(ctx, time.Duration(3+w.rng.IntN(8))*time.Second)
			m.SlowDisk(0)
		}}
	}
	jump := func(name string, of func(w *world) *cluster.Process) fault {
		return fault{name, func(w *world, ctx context.Context) {
			p, d, stays := of(w), anyJump(w), w.rng.IntN(2) == 0
			w.t.Logf("the clock of %s jumps by %v; it stays so: %v", p.Name, d, stays)
			must(w.t, p.Machine().SetClock(d))
			w.anyTime(ctx)
			if !stays { // else until all is healed
				must(w.t, p.Machine().SetClock(0))
			}
		}}
	}
	leader := func(w *world) int { return w.leader("SKEIN_LOG") }
	return []fault{
		slow("the disk of a server is slow", (*world).anyServer),
		slow("the disk of the server that leads the log is slow", leader),
		jump("the clock of a server jumps", func(w *world) *cluster.Process { return w.Servers[w.anyServer()] }),
		jump("the clock of the server that leads the log jumps", func(w *world) *cluster.Process { return w.Servers[leader(w)] }),
		jump("the clock of a Skein jumps", (*world).anySkein),
	}
}

// anyJump returns by how much a clock is wrong: seconds or hours, in either direction.
func anyJump(w *world) time.Duration {
	d := time.Duration(1+w.rng.IntN(59)) * time.Second
	if w.rng.IntN(2) == 0 {
		d *= 240 // four minutes to four hours
	}
	if w.rng.IntN(2) == 0 {
		return -d
	}
	return d
}

// mend repairs all disks and clocks.
func (w *world) mend() {
	w.t.Helper()
	if !w.machines() {
		return
	}
	for _, p := range append(w.Servers[:], w.Skeins...) {
		p.Machine().SlowDisk(0)
		must(w.t, p.Machine().SetClock(0))
	}
}

// varz holds the fields that are read of a server's page.
type varz struct {
	Now time.Time `json:"now"`
}

// disturbMachines slows disks and changes clocks, and checks that it worked: an
// acknowledged command waits for the disks of two servers of three, and each program
// shows its clock. A thread's time never goes back.
func (w *world) disturbMachines() {
	w.t.Helper()
	made := w.create()
	const slow = 700 * time.Millisecond
	for _, p := range w.Servers[:2] {
		p.Machine().SlowDisk(slow)
	}
	for range 3 {
		start := time.Now()
		w.add(made.ThreadID)
		if took := time.Since(start); took < slow {
			w.t.Errorf("a command was acknowledged after %v, and the disks of two servers take %v", took, slow)
		}
	}
	w.mend()

	const near = time.Minute // a loaded machine takes its time to answer
	for i, d := range []time.Duration{2 * time.Hour, -time.Hour, 0} {
		must(w.t, w.Servers[i].Machine().SetClock(d))
		var page varz
		must(w.t, w.Ask(w.t.Context(), i, "/varz", &page))
		if off := time.Until(page.Now) - d; off.Abs() > near {
			w.t.Errorf("the clock of %s is %v off what it was set to, %v", w.Servers[i].Name, off, d)
		}
	}
	w.mend()

	const jump = 2 * time.Hour
	set := func(d time.Duration) {
		for _, p := range w.Skeins {
			must(w.t, p.Machine().SetClock(d))
		}
	}
	set(jump)
	first := w.timeOf(w.add(made.ThreadID))
	if off := time.Until(first.Go()) - jump; off.Abs() > near {
		w.t.Errorf("the time of an event is %v off the clock of its Skein", off)
	}
	set(-jump)
	if next := w.timeOf(w.add(made.ThreadID)); next < first {
		w.t.Errorf("the time of a thread goes back from %v to %v", first, next)
	}
	if off := time.Until(w.timeOf(w.add(w.create().ThreadID)).Go()) + jump; off.Abs() > near {
		w.t.Errorf("the time of an event of another thread is %v off the clock of its Skein", off)
	}
	w.mend()
}

// add adds an item to a thread, and returns the id of the command.
func (w *world) add(thread string) (command string) {
	w.t.Helper()
	c := &clerk{history: newHistory(""), nc: w.nc}
	id := fmt.Sprintf("added-%d", rand.Uint64())
	for start := time.Now(); ; {
		a, _ := c.ask(w.t.Context(), "cmd", "item.create", item(id, thread, -1))
		if a.refusal == nil && !a.lost {
			return id
		}
		if time.Since(start) > time.Minute {
			w.t.Fatalf("no item can be added: %+v", a)
		}
		sleep(w.t.Context(), 100*time.Millisecond)
	}
}

// timeOf returns the time of a command's events.
func (w *world) timeOf(command string) events.Time {
	w.t.Helper()
	for _, c := range w.commits() {
		for i := range c.Events {
			if c.Events[i].CommandID == command {
				return c.Events[i].Time
			}
		}
	}
	w.t.Fatalf("the log does not have %s", command)
	return 0
}
