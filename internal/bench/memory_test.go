package bench

import (
	"math"
	"testing"
)

// What a thread costs is told from the first point to the last.
func TestMemoryOfAThread(t *testing.T) {
	var m Memory
	m.add(MemoryPoint{Threads: 1000, HeapMB: 50})
	if m.BytesPerThread != 0 {
		t.Errorf("one point tells %v", m.BytesPerThread)
	}
	m.add(MemoryPoint{Threads: 10_000, HeapMB: 70})
	m.add(MemoryPoint{Threads: 101_000, HeapMB: 150})
	if want := 100.0 * (1 << 20) / 100_000; math.Abs(m.BytesPerThread-want) > 0.01 {
		t.Errorf("%v bytes a thread, want %v", m.BytesPerThread, want)
	}
}
