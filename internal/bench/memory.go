package bench

import (
	"context"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"time"
)

// Memory is how the process grew with the number of threads.
type Memory struct {
	Points         []MemoryPoint `json:"points"`
	BytesPerThread float64       `json:"bytesPerThread"` // of Go's heap, from the first point to the last
}

// MemoryPoint is the memory of the process (server and Skein) at a number of
// threads, each with one turn, after everything had caught up.
type MemoryPoint struct {
	Threads    int     `json:"threads"`
	ResidentMB float64 `json:"residentMB"`
	HeapMB     float64 `json:"heapMB"`
}

func memoryPoint(ctx context.Context, threads int) MemoryPoint {
	var m runtime.MemStats
	least, calm := ^uint64(0), 0
	for start := time.Now(); calm < 3 && time.Since(start) < idleMost && ctx.Err() == nil; {
		debug.FreeOSMemory()
		runtime.ReadMemStats(&m)
		if calm++; m.HeapAlloc < least-least/100 {
			least, calm = m.HeapAlloc, 0
		}
		select {
		case <-time.After(idleStep):
		case <-ctx.Done():
		}
	}
	return MemoryPoint{Threads: threads, ResidentMB: residentMB(), HeapMB: float64(m.HeapAlloc) / (1 << 20)}
}

// The server keeps what was just written in memory, and lets go of it when it
// is idle: memory is measured when it falls no more.
const (
	idleStep = 4 * time.Second
	idleMost = time.Minute
)

// residentMB reads the process's resident memory, 0 where the system does not
// tell.
func residentMB() float64 {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kb, _ := strconv.ParseFloat(strings.Fields(rest)[0], 64)
			return kb / 1024
		}
	}
	return 0
}

func (m *Memory) add(p MemoryPoint) {
	m.Points = append(m.Points, p)
	first := m.Points[0]
	if p.Threads > first.Threads {
		m.BytesPerThread = (p.HeapMB - first.HeapMB) * (1 << 20) / float64(p.Threads-first.Threads)
	}
}
