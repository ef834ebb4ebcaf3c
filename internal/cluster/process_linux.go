package cluster

import "syscall"

// attributes puts a process into a group of its own, so that a Ctrl-C on the
// terminal does not reach it before Close does, and ends it with this one.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
