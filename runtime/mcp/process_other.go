//go:build !unix

package mcp

import "os/exec"

func ownGroup(*exec.Cmd) {}

// signalGroup ends the program; here there is no way to ask.
func signalGroup(cmd *exec.Cmd, force bool) {
	if force {
		_ = cmd.Process.Kill() // it may have gone
	}
}
