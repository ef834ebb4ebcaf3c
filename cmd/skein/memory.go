package main

import (
	"os"
	"runtime/debug"
)

// roomyHeap lets the heap grow to five times what is in use before it is
// collected: the server and Skein keep little and make much, and collecting at
// twice took a tenth of the processor. GOGC, if it is set, says otherwise;
// GOMEMLIMIT still bounds the whole.
func roomyHeap() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400)
	}
}
