//go:build !unix

package bench

import "time"

// flush does nothing where a program cannot ask for it.
func flush() {}

// processor gives 0 where a program cannot ask for it.
func processor() time.Duration { return 0 }

// peak returns the most memory that this process has taken, 0 if it is not known.
func peak() int64 { return 0 }
