// Package heap fits what a process of Skein keeps in memory to the machine or the control group that
// it runs in: [Fit] sets the garbage collector's limits, [ReturnIdle] returns memory when there
// is nothing to do, and [Cache] sizes the cache of thread states. It is for programs: it changes
// settings of the whole process.
package heap

import (
	"context"
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync/atomic"
	"time"

	"github.com/KimMachineGun/automemlimit/memlimit"
)

// heapRoom limits how far the heap may grow beyond its live data: about what server and
// Skein allocate in two seconds under load. More would save little collecting, and cost
// as much for memory that is touched for the first time (ADR 7).
const heapRoom = 3 << 29

// roomiest limits how far the heap may grow beyond its live data, in percent: live data
// is small and allocation high, and collecting at twice took a tenth of the processor.
const roomiest = 400

// Fit sets the garbage collector's limits to the memory of the process: the heap
// may grow well beyond its live data, within bounds, and the total stays below nine
// tenths of the control group's limit or, without one, of the machine's memory, and so far below it
// that the program itself and pages of files have room. GOGC and GOMEMLIMIT take precedence if they
// are set. It returns the limit, math.MaxInt64 if there is none.
func Fit() (limit int64) {
	if os.Getenv("GOGC") == "" {
		keepRoom(heapRoom)
	}
	there := memlimit.ApplyFallback(memlimit.FromCgroup, memlimit.FromSystem)
	limit, err := memlimit.Set(memlimit.WithRatio(1), memlimit.WithProvider(func() (uint64, error) {
		n, err := there()
		return within(n), err
	}))
	if err != nil { // neither is known
		return debug.SetMemoryLimit(-1)
	}
	return limit
}

// besides is what a control group holds besides what Go's limit counts: the program's code, and the
// pages of files that it reads and writes, without which both are read from the disk again and again.
const besides = 160 << 20

// within returns the limit for a process that has so much memory: at least half of it.
func within(there uint64) uint64 {
	return min(there/10*9, max(there/2, there-min(there, besides)))
}

// Cache returns the size of the cache of thread states in bytes: mib MiB or, if that is 0, a
// sixteenth of the memory limit, but at least the smaller of usual and an eighth of the limit.
// Without a limit it is usual.
func Cache(mib int, limit, usual int64) int64 {
	switch {
	case mib != 0:
		return int64(mib) << 20
	case limit == math.MaxInt64:
		return usual
	}
	return max(limit/16, min(usual, limit/8))
}

// keepRoom sets, after each collection, how far the heap may grow until the next one,
// until stop is called.
func keepRoom(room uint64) (stop func()) {
	var stopped atomic.Bool
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	set := roomiest
	debug.SetGCPercent(set)
	var collected func(*[16]byte)
	collected = func(*[16]byte) { // runs on the goroutine of finalizers
		if stopped.Load() {
			return
		}
		metrics.Read(live)
		if now := roomPercent(live[0].Value.Uint64(), room); now != set {
			set = now
			debug.SetGCPercent(set)
		}
		runtime.SetFinalizer(new([16]byte), collected)
	}
	runtime.SetFinalizer(new([16]byte), collected)
	return func() { stopped.Store(true) }
}

// roomPercent returns the value of GOGC for an amount of live data, never less than
// Go's default.
func roomPercent(live, room uint64) int {
	return int(min(roomiest, max(100, room*100/max(live, 1))))
}

const (
	idleEvery = 10 * time.Second // between two looks
	// idleAllocs is what an idle process allocates at most between two looks.
	idleAllocs = 16 << 20
	// idleWorth is how much must have been allocated since memory was returned, to return it again.
	idleWorth = 32 << 20
	// idleAgain is after how many looks in idleness it is returned again, idleTimes times: caches are
	// given up only when nothing was read from them for a while.
	idleAgain = 3
	idleTimes = 3
)

// ReturnIdle returns memory that the process does not use to the system whenever the process becomes
// idle, until ctx ends. Garbage that much work has left is otherwise collected minutes later, and the
// room that the heap has (see Fit) is kept for more work.
func ReturnIdle(ctx context.Context) {
	tick := time.NewTicker(idleEvery)
	defer tick.Stop()
	for i := (idleMemory{}); ; {
		select {
		case <-tick.C:
			i.look()
		case <-ctx.Done():
			return
		}
	}
}

// idleMemory decides when to return memory.
type idleMemory struct {
	seen, returned uint64 // bytes allocated since the process began: at the last look, and when memory was returned
	looks, again   int    // in idleness since it was returned, and how often it is yet to be returned again
}

// look returns memory if the process was idle since the last look, and reports whether it did.
func (i *idleMemory) look() bool {
	allocs := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(allocs)
	now := allocs[0].Value.Uint64()
	idle := now-i.seen <= idleAllocs
	i.seen = now
	switch {
	case !idle:
		return false
	case now-i.returned >= idleWorth:
		i.again = idleTimes
	case i.again == 0:
		return false
	default:
		if i.looks++; i.looks < idleAgain {
			return false
		}
		i.again--
	}
	i.returned, i.looks = now, 0
	runtime.GC() // so that the next collection also frees what pools keep for one more
	debug.FreeOSMemory()
	return true
}
