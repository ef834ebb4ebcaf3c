//go:build unix

package cluster

import (
	"os"
	"syscall"
)

func hold(p *os.Process, pause bool) {
	signal := syscall.SIGCONT
	if pause {
		signal = syscall.SIGSTOP
	}
	_ = p.Signal(signal) // it may have ended
}
