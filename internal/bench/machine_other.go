//go:build !unix

package bench

import "time"

// flush does nothing where a program cannot ask for it.
func flush() {}

// processor gives 0 where a program cannot ask for it.
func processor() time.Duration { return 0 }
