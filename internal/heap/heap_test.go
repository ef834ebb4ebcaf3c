package heap

import (
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"testing"
	"time"

	"github.com/KimMachineGun/automemlimit/memlimit"
)

// The heap may grow to five times the live data while that is small, and always to
// twice.
func TestRoomPercent_NeverBelowDefault(t *testing.T) {
	for _, c := range []struct {
		live uint64
		want int
	}{
		{0, 400}, {1 << 20, 400}, {256 << 20, 400}, {512 << 20, 300}, {768 << 20, 200}, {1 << 30, 150}, {16 << 30, 100},
	} {
		if got := roomPercent(c.live, heapRoom); got != c.want {
			t.Errorf("%d MiB in use: %d percent, want %d", c.live>>20, got, c.want)
		}
	}
}

// A small container caches fewer threads, and a large machine more, unless the flag sets a size.
func TestCache(t *testing.T) {
	for _, c := range []struct {
		mib   int
		limit int64
		want  int64
	}{{0, math.MaxInt64, 256 << 20}, {0, 4 << 30, 256 << 20}, {0, 3 << 30, 256 << 20}, {0, 512 << 20, 64 << 20}, {0, 64 << 30, 4 << 30}, {100, 512 << 20, 100 << 20}, {1024, math.MaxInt64, 1 << 30}} {
		if got := Cache(c.mib, c.limit, 256<<20); got != c.want {
			t.Errorf("%d MiB asked for, of %d bytes: %d, want %d", c.mib, c.limit, got, c.want)
		}
	}
}

// Without a control group, the machine's memory is the limit.
func TestFitMemory_LimitWithoutControlGroup(t *testing.T) {
	for _, name := range []string{"GOGC", "GOMEMLIMIT", "AUTOMEMLIMIT"} {
		if os.Getenv(name) != "" {
			t.Skip(name + " is set, and takes precedence")
		}
	}
	t.Setenv("GOGC", "100") // GOGC is not tested here
	old := debug.SetMemoryLimit(-1)
	defer debug.SetMemoryLimit(old)
	limit := Fit()
	whole, err := memlimit.FromSystem()
	if err != nil {
		t.Skip(err)
	}
	if limit != debug.SetMemoryLimit(-1) || limit <= 0 || uint64(limit) > whole*9/10 {
		t.Errorf("the limit is %d of %d bytes, and is reported as %d", debug.SetMemoryLimit(-1), whole, limit)
	}
}

// A small control group has room for the program's code and for pages of files.
func TestWithin_LeavesRoomForFiles(t *testing.T) {
	for there, want := range map[uint64]uint64{0: 0, 256: 128, 512: 352, 1000: 840, 4000: 3600} {
		if got := within(there << 20); got != want<<20 {
			t.Errorf("of %d MiB: %d MiB, want %d", there, got>>20, want)
		}
	}
}

// GOGC follows the live data, from collection to collection, up and down.
func TestKeepRoom_FollowsLiveData(t *testing.T) {
	old := debug.SetGCPercent(100)
	stop := keepRoom(20 << 20)
	defer func() { stop(); debug.SetGCPercent(old) }()
	until := func(what string, holds func(percent uint64) bool) {
		t.Helper()
		percent := []metrics.Sample{{Name: "/gc/gogc:percent"}}
		for end := time.Now().Add(5 * time.Minute); ; {
			runtime.GC()
			if metrics.Read(percent); holds(percent[0].Value.Uint64()) {
				return
			}
			if time.Now().After(end) {
				t.Fatalf("%s: GOGC stays at %d", what, percent[0].Value.Uint64())
			}
			runtime.Gosched()
		}
	}
	much := make([]byte, 64<<20)
	until("64 MiB in use", func(p uint64) bool { return p == 100 })
	runtime.KeepAlive(much)
	until("they are free again", func(p uint64) bool { return p > 100 })
}

// Memory is returned to the system once the process is idle after much work, some times more while it
// stays so, and not again before there was more work.
func TestIdleMemory_IsReturned(t *testing.T) {
	released := func() uint64 {
		sample := []metrics.Sample{{Name: "/memory/classes/heap/released:bytes"}}
		metrics.Read(sample)
		return sample[0].Value.Uint64()
	}
	until := func(i *idleMemory, returned bool) {
		t.Helper()
		for end := time.Now().Add(5 * time.Minute); i.look() != returned; {
			if time.Now().After(end) {
				t.Fatalf("memory is returned: %v", !returned)
			}
		}
	}
	i := &idleMemory{}
	work := make([]byte, 2*idleWorth)
	for n := 0; n < len(work); n += 4096 {
		work[n] = 1
	}
	if i.look() {
		t.Error("memory is returned amid work")
	}
	runtime.KeepAlive(work)
	before := released()
	until(i, true)
	if more := released(); more < before+idleWorth {
		t.Errorf("%d MiB were returned", (more-before)>>20)
	}
	again := 0
	for range 2 * idleTimes * idleAgain {
		if i.look() {
			again++
		}
	}
	if again != idleTimes { // for caches that expire meanwhile
		t.Errorf("in idleness memory is returned %d times more, want %d", again, idleTimes)
	}
}
