//go:build !unix

package bench

import "time"

// settle does nothing where a program cannot ask for it.
func settle() {}

// processor gives 0 where a program cannot ask for it.
func processor() time.Duration { return 0 }
