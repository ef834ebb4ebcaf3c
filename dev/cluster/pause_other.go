//go:build !unix

package cluster

import "os"

// hold does nothing: this system does not support it.
func hold(*os.Process, bool) {}
