//go:build !unix

package mcp

import "os/exec"

func ownGroup(*exec.Cmd) {}

// signalGroup ends the program; this system has no graceful way.
func signalGroup(cmd *exec.Cmd, force bool) {
	if force {
		_ = cmd.Process.Kill() // it may have ended
	}
}
