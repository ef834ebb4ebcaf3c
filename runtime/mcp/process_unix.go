//go:build unix

package mcp

import (
	"os/exec"
	"syscall"
)

// ownGroup puts the program and what it starts into a group that can be ended
// as one: a server is often started by a script or a package runner.
func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// signalGroup asks the program's group to end, or ends it.
func signalGroup(cmd *exec.Cmd, force bool) {
	signal := syscall.SIGTERM
	if force {
		signal = syscall.SIGKILL
	}
	_ = syscall.Kill(-cmd.Process.Pid, signal) // it may have gone
}
