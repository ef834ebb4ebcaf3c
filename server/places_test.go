package server

import (
	"math"
	"testing"
)

// Queries that read much have no more places than there is memory for.
func TestPlaces_ReadsFitIntoMemory(t *testing.T) {
	for _, c := range []struct {
		places int
		limit  int64
		want   int
	}{{8, math.MaxInt64, 8}, {128, 1 << 30, 16}, {8, 1 << 30, 8}, {8, 64 << 20, fewestReads}, {1, 64 << 20, 1}} {
		if got := readsWithin(c.places, c.limit); got != c.want {
			t.Errorf("%d places within %d bytes: %d, want %d", c.places, c.limit, got, c.want)
		}
	}
}
