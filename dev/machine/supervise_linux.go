package machine

import (
	"errors"
	"sync"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// call is a system call that waits: the kernel's struct seccomp_notif.
type call struct {
	id     uint64
	thread uint32
	_      uint32
	number int32
	_      uint32
	_      uint64
	_      [6]uint64
}

// reply is the kernel's struct seccomp_notif_resp.
type reply struct {
	id    uint64
	_     int64
	_     int32
	flags uint32
}

// supervise lets the calls that a filter shows go on, each when it may, until the
// program has gone.
func (m *Machine) supervise(listener, pid int) {
	var waiting sync.WaitGroup
	var own *clock
	for up := false; ; {
		c, err := next(listener)
		if err != nil {
			break
		}
		switch c.number {
		case unix.SYS_SCHED_GETAFFINITY:
			if !up && int(c.thread) == pid {
				up = true
				var fault error
				own, fault = newClock(pid)
				m.begun(own, fault)
			}
			goOn(listener, c.id)
		default:
			waiting.Go(func() {
				time.Sleep(m.syncTakes())
				goOn(listener, c.id)
			})
		}
	}
	m.ended(own)
	waiting.Wait()
	_ = unix.Close(listener)
}

// next waits for a call; an error means that there will be none.
func next(listener int) (call, error) {
	for {
		events := []unix.PollFd{{Fd: int32(listener), Events: unix.POLLIN}}
		if _, err := unix.Poll(events, -1); err != nil && !errors.Is(err, unix.EINTR) {
			return call{}, err
		}
		if events[0].Revents&unix.POLLIN == 0 {
			if events[0].Revents != 0 {
				return call{}, unix.ESRCH
			}
			continue
		}
		var c call
		// ENOENT: the thread was killed meanwhile.
		if err := ioctl(listener, unix.SECCOMP_IOCTL_NOTIF_RECV, unsafe.Pointer(&c)); err == nil {
			return c, nil
		} else if err != unix.ENOENT && err != unix.EINTR {
			return call{}, err
		}
	}
}

// goOn lets a call proceed as if there were no filter. Its thread may be gone.
func goOn(listener int, id uint64) {
	r := reply{id: id, flags: unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE}
	_ = ioctl(listener, unix.SECCOMP_IOCTL_NOTIF_SEND, unsafe.Pointer(&r))
}

func ioctl(fd int, request uint, arg unsafe.Pointer) error {
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), uintptr(request), uintptr(arg)); errno != 0 {
		return errno
	}
	return nil
}
