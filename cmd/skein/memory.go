package main

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync/atomic"

	"github.com/KimMachineGun/automemlimit/memlimit"

	"github.com/skein-threads/skein/commands"
)

// heapRoom is how far the heap may grow over what is in use, at most: what
// server and Skein make in two seconds under load is about that. More room would
// save little collecting, and cost as much in memory that is touched for the
// first time (ADR 7).
const heapRoom = 3 << 29

// roomiest is how much the heap may grow over what is in use, in percent: little
// is kept and much is made, and collecting at twice took a tenth of the processor.
const roomiest = 400

// fitMemory makes the process fit its memory: the heap has room, but not without
// end, and all of it stays below nine tenths of what the control group allows, or,
// if that says nothing, of what the machine has. GOGC and GOMEMLIMIT, if they are
// set, say otherwise. It gives the limit, which is math.MaxInt64 where there is none.
func fitMemory() (limit int64) {
	if os.Getenv("GOGC") == "" {
		keepRoom(heapRoom)
	}
	limit, err := memlimit.Set(memlimit.WithProvider(memlimit.ApplyFallback(memlimit.FromCgroup, memlimit.FromSystem)))
	if err != nil { // neither is known
		return debug.SetMemoryLimit(-1)
	}
	return limit
}

// threadCache gives how many bytes the states of threads may take: so many MiB, or
// else an eighth of what the process may have, up to the default.
func threadCache(mib int, limit int64) int64 {
	if mib != 0 {
		return int64(mib) << 20
	}
	return min(commands.DefaultCacheBytes, limit/8)
}

// keepRoom sets, after each collection, how far the heap may grow until the next
// one, until stop is called.
func keepRoom(room uint64) (stop func()) {
	var stopped atomic.Bool
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	set := roomiest
	debug.SetGCPercent(set)
	var collected func(*[16]byte)
	collected = func(*[16]byte) { // by the one goroutine of all finalizers
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

// roomPercent gives what GOGC is to be when so much is in use: never less than
// Go's own.
func roomPercent(live, room uint64) int {
	return int(min(roomiest, max(100, room*100/max(live, 1))))
}
