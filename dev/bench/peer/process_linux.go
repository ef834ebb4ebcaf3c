package peer

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// attributes puts a process into a group of its own, so that Ctrl-C on the terminal does not reach
// it before Stop does, and ends it together with this one: SIGQUIT ends a Postgres at once.
func attributes(owner *identity) *syscall.SysProcAttr {
	a := &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGQUIT}
	if owner != nil {
		a.Credential = &syscall.Credential{Uid: owner.uid, Gid: owner.gid}
	}
	return a
}

// family returns the processor time of a process, of its children, and of those that have ended.
func family(pid int) time.Duration {
	for before := []int(nil); ; {
		sum, parent := used(pid)
		var children []int
		stats, _ := filepath.Glob("/proc/[0-9]*/stat")
		for _, name := range stats {
			child, err := strconv.Atoi(filepath.Base(filepath.Dir(name)))
			if err != nil {
				continue
			}
			if time, parent := used(child); parent == pid {
				sum += time
				children = append(children, child)
			}
		}
		if parent == 0 || before != nil && slices.Equal(before, children) { // none has ended amid this
			return sum
		}
		before = append([]int{}, children...)
	}
}

// used returns the processor time of a process and of its ended children, and its parent; zero if
// it is gone.
func used(pid int) (time.Duration, int) {
	const tick = 10 * time.Millisecond // USER_HZ is 100 everywhere
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, 0
	}
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	if len(fields) < 15 {
		return 0, 0
	}
	parent, _ := strconv.Atoi(fields[1])
	var ticks int64
	for _, f := range fields[11:15] { // utime, stime, cutime, cstime
		n, _ := strconv.ParseInt(f, 10, 64)
		ticks += n
	}
	return time.Duration(ticks) * tick, parent
}
