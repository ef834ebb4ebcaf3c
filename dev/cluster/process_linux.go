package cluster

import "syscall"

// attributes puts a process into its own process group, so that Ctrl-C on the terminal
// does not reach it before Close does, and ends it together with this one.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
