package faults_test

import (
	"testing"

	"github.com/anishathalye/porcupine"
)

// The checker refuses each of these histories of a broken log.
func TestChecker_FindsBrokenHistories(t *testing.T) {
	const thread = "T-1"
	// at returns a command that was sent at a time and answered at the next one.
	at := func(call int, expected, done, conflict int64) porcupine.Operation {
		w := write{thread: thread, expected: expected, done: done, conflict: conflict}
		return porcupine.Operation{ClientId: call, Input: w, Output: w, Call: int64(10 * call), Return: int64(10*call + 5)}
	}
	long := func(op porcupine.Operation, until int) porcupine.Operation {
		op.Return = int64(10 * until)
		return op
	}
	cases := []struct {
		name string
		ops  []porcupine.Operation
		want porcupine.CheckResult
	}{
		{"one after the other", []porcupine.Operation{at(1, -1, 3, -1), at(2, 3, 4, -1), at(3, 3, 0, 4)}, porcupine.Ok},
		{"at once, in either order", []porcupine.Operation{long(at(1, -1, 4, -1), 3), at(1, -1, 3, -1)}, porcupine.Ok},
		{"two have the same version", []porcupine.Operation{at(1, -1, 3, -1), at(2, -1, 3, -1)}, porcupine.Illegal},
		{"one is lost", []porcupine.Operation{at(1, -1, 3, -1), at(2, -1, 5, -1)}, porcupine.Illegal},
		{"done in spite of its version", []porcupine.Operation{at(1, -1, 3, -1), at(2, 2, 4, -1)}, porcupine.Illegal},
		{"refused though the version was right", []porcupine.Operation{at(1, -1, 3, -1), at(2, 3, 0, 3)}, porcupine.Illegal},
		{"refused on what was long past", []porcupine.Operation{at(1, -1, 3, -1), at(2, -1, 4, -1), at(3, 4, 0, 3)}, porcupine.Illegal},
		{"before it was asked for", []porcupine.Operation{at(1, -1, 4, -1), at(2, -1, 3, -1)}, porcupine.Illegal},
	}
	for _, c := range cases {
		if got := porcupine.CheckOperationsTimeout(threadModel(map[string]int64{thread: 2}), c.ops, 0); got != c.want {
			t.Errorf("%s: %s, not %s", c.name, got, c.want)
		}
	}
}
