package natstest

import (
	"testing"
	"time"
)

// Patience is how long a test waits for what must happen.
const Patience = 3 * time.Minute

// Eventually waits until ok returns true, and fails the test if it does not within
// Patience.
func Eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(Patience); !ok(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain: %s", what)
		}
	}
}

// Within returns what a channel delivers, and fails the test if it delivers nothing within
// Patience.
func Within[T any](t testing.TB, what string, c <-chan T) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(Patience):
		t.Fatalf("waited in vain: %s", what)
		panic("unreachable")
	}
}
