//go:build unix

package bench

import "syscall"

// settle puts to disk what earlier cases left to be written, so that no case
// pays for the one before it.
func settle() { syscall.Sync() }
