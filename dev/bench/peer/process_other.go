//go:build !linux

package peer

import (
	"syscall"
	"time"
)

// attributes runs a process as this one: root has to run it as another user itself.
func attributes(*identity) *syscall.SysProcAttr { return &syscall.SysProcAttr{} }

// family returns 0: this system does not tell.
func family(int) time.Duration { return 0 }
