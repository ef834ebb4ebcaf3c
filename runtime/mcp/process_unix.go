//go:build unix

package mcp

import (
	"os/exec"
	"syscall"
)

// ownGroup puts the program and its children into a process group that can be ended as
// one: a server is often started by a script or a package runner.
func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// signalGroup asks the program's group to end, or kills it.
func signalGroup(cmd *exec.Cmd, force bool) {
	signal := syscall.SIGTERM
	if force {
		signal = syscall.SIGKILL
	}
	_ = syscall.Kill(-cmd.Process.Pid, signal) // it may have ended
}
