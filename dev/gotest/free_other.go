//go:build !linux

package main

import "errors"

// freeOf knows no folder in memory outside Linux.
func freeOf(string) (uint64, bool) { return 0, false }

// lock takes no file where no folder in memory needs it.
func lock(string) (free func(), err error) { return func() {}, errors.ErrUnsupported }
