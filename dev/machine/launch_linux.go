package machine

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// mark is the variable that tells a process to become what its arguments name. Its
// value is the descriptor by which it hands over the listener of its filter.
const mark = "SKEIN_MACHINE"

// Begin becomes the program that the arguments name, if this process was started
// by Start. It is the first thing that main does, or TestMain.
func Begin() {
	text, ok := os.LookupEnv(mark)
	if !ok {
		return
	}
	err := os.Unsetenv(mark)
	socket, bad := strconv.Atoi(text)
	if err = errors.Join(err, bad); err == nil {
		err = become(socket, os.Args[1:])
	}
	fmt.Fprintln(os.Stderr, "machine:", err)
	os.Exit(127)
}

// Check says why no program can be run on a machine here; nil means that it can.
func Check() error {
	self, err := Launcher()
	if err != nil {
		return err
	}
	cmd := exec.Command(self, "true")
	if err := new(Machine).Start(cmd); err != nil {
		return err
	}
	return cmd.Wait()
}

// become puts the filter upon this thread, hands over its listener and turns the
// process into another program, which keeps the filter.
func become(socket int, args []string) error {
	runtime.LockOSThread()
	if len(args) == 0 {
		return errors.New("there is no program to become")
	}
	program, err := exec.LookPath(args[0])
	if err != nil {
		return err
	}
	// What the parent asked for holds for the first thread; this one may be another.
	if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0); err != nil {
		return fmt.Errorf("PR_SET_PDEATHSIG: %w", err)
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("PR_SET_NO_NEW_PRIVS: %w", err)
	}
	filter, err := filtered()
	if err != nil {
		return err
	}
	if err := unix.Sendmsg(socket, []byte{1}, unix.UnixRights(filter), nil, 0); err != nil {
		return fmt.Errorf("handing over the listener: %w", err)
	}
	unix.CloseOnExec(socket)
	return fmt.Errorf("exec %s: %w", program, syscall.Exec(program, args, os.Environ()))
}

// filtered installs a filter on this thread that passes some of its system calls to the
// listener.
func filtered() (listener int, err error) {
	const number, arch = 0, 4 // offsets within struct seccomp_data
	shown := []uint32{unix.SYS_FSYNC, unix.SYS_FDATASYNC, unix.SYS_SCHED_GETAFFINITY}
	load := func(offset uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: offset}
	}
	jump := func(k uint32, yes, no int) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: k, Jt: uint8(yes), Jf: uint8(no)}
	}
	answer := func(k uint32) unix.SockFilter { return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: k} }
	program := []unix.SockFilter{load(arch), jump(native(), 0, 1+len(shown)), load(number)}
	for i, call := range shown {
		program = append(program, jump(call, len(shown)-i, 0))
	}
	program = append(program, answer(unix.SECCOMP_RET_ALLOW), answer(unix.SECCOMP_RET_USER_NOTIF))
	prog := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	// A call that was shown waits for its answer in spite of Go's own signals.
	const flags = unix.SECCOMP_FILTER_FLAG_NEW_LISTENER | unix.SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
	fd, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags, uintptr(unsafe.Pointer(&prog)))
	if errno != 0 {
		return 0, fmt.Errorf("a filter of system calls: %w", errno)
	}
	return int(fd), nil
}

// native returns the architecture as a filter sees it; no call has that of 0.
func native() uint32 {
	return map[string]uint32{"amd64": unix.AUDIT_ARCH_X86_64, "arm64": unix.AUDIT_ARCH_AARCH64}[runtime.GOARCH]
}

// start starts the command and takes over the listener of its filter.
func (m *Machine) start(cmd *exec.Cmd) error {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	ours, theirs := pair[0], os.NewFile(uintptr(pair[1]), "listener")
	defer unix.Close(ours)
	cmd.Env = append(cmd.Environ(), fmt.Sprintf("%s=%d", mark, 3+len(cmd.ExtraFiles)))
	cmd.ExtraFiles = append(cmd.ExtraFiles, theirs)
	err = errors.Join(cmd.Start(), theirs.Close())
	if err != nil {
		return err
	}
	listener, err := receive(ours)
	if err != nil {
		return errors.Join(fmt.Errorf("what was to run %s has failed: %w", cmd.Args, err), cmd.Process.Kill(), cmd.Wait())
	}
	go m.supervise(listener, cmd.Process.Pid)
	return nil
}

// receive takes a descriptor from a socket.
func receive(socket int) (int, error) {
	data, rights := make([]byte, 1), make([]byte, unix.CmsgSpace(4))
	for {
		n, size, _, _, err := unix.Recvmsg(socket, data, rights, unix.MSG_CMSG_CLOEXEC)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil || n == 0 {
			return 0, errors.Join(errors.New("it handed over no listener"), err)
		}
		messages, err := unix.ParseSocketControlMessage(rights[:size])
		if err != nil || len(messages) != 1 {
			return 0, errors.Join(errors.New("it handed over something else"), err)
		}
		fds, err := unix.ParseUnixRights(&messages[0])
		if err != nil {
			return 0, err
		}
		return fds[0], nil
	}
}
