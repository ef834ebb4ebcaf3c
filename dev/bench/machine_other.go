//go:build !unix

package bench

import "time"

// flush does nothing where a program cannot ask for it.
func flush() {}

// processor returns 0: this system does not support it.
func processor() time.Duration { return 0 }

// peak returns the peak memory of this process, 0 if unknown.
func peak() int64 { return 0 }
