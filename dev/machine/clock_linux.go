package machine

import (
	"bufio"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"time"
)

// ahead is what clock_gettime becomes: it asks the kernel, and adds to the time of
// day what one of two cells says. A third says which, so that the other can be
// written while threads read. Made by as(1) from
//
//	        mov    $228, %eax              # clock_gettime
//	        syscall
//	        test   %edi, %edi              # CLOCK_REALTIME is 0
//	        jne    out
//	        movzbl which(%rip), %ecx
//	        lea    cells(%rip), %rdx
//	        mov    (%rdx,%rcx,8), %rcx
//	        add    %rcx, (%rsi)            # tv_sec
//	out:    ret
//	        .balign 8
//	cells:  .quad 0, 0
//	which:  .byte 0
func ahead() []byte {
	code := []byte{
		0xb8, 0xe4, 0x00, 0x00, 0x00, 0x0f, 0x05, 0x85, 0xff, 0x75, 0x15, 0x0f, 0xb6, 0x0d, 0x26, 0x00, 0x00, 0x00,
		0x48, 0x8d, 0x15, 0x0f, 0x00, 0x00, 0x00, 0x48, 0x8b, 0x0c, 0xca, 0x48, 0x01, 0x0e, 0xc3,
	}
	return append(code, make([]byte, which+1-len(code))...)
}

// Where the cells are in ahead.
const (
	cells = 0x28
	which = 0x38
)

// clock is the time of day of a process.
type clock struct {
	memory *os.File
	at     int64 // where its clock_gettime is
	now    int64 // the cell that is read
}

// newClock overwrites clock_gettime of a process, which must not be reading the
// time at this moment.
func newClock(pid int) (*clock, error) {
	if runtime.GOARCH != "amd64" {
		return nil, fmt.Errorf("the clock of a process can be set on amd64, not on %s", runtime.GOARCH)
	}
	memory, err := os.OpenFile(fmt.Sprintf("/proc/%d/mem", pid), os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	c := &clock{memory: memory}
	if c.at, err = find(pid, memory, int64(len(ahead()))); err == nil {
		_, err = memory.WriteAt(ahead(), c.at)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("the clock of process %d: %w", pid, err), memory.Close())
	}
	return c, nil
}

// find tells where clock_gettime of a process is, which has room bytes at least.
func find(pid int, memory io.ReaderAt, room int64) (int64, error) {
	maps, err := os.Open(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		return 0, err
	}
	defer maps.Close()
	for lines := bufio.NewScanner(maps); lines.Scan(); {
		var from, to int64
		if !strings.HasSuffix(lines.Text(), "[vdso]") {
			continue
		}
		if _, err := fmt.Sscanf(lines.Text(), "%x-%x", &from, &to); err != nil {
			return 0, err
		}
		vdso, err := elf.NewFile(io.NewSectionReader(memory, from, to-from))
		if err != nil {
			return 0, err
		}
		symbols, err := vdso.DynamicSymbols()
		if err != nil {
			return 0, err
		}
		for _, s := range symbols {
			if s.Name == "__vdso_clock_gettime" && int64(s.Size) >= room && s.Value%8 == 0 {
				return from + int64(s.Value), nil
			}
		}
		return 0, errors.New("its vDSO has no clock_gettime with room for another")
	}
	return 0, errors.New("it has no vDSO")
}

// set puts the clock ahead of the true time. A process that has gone has none.
func (c *clock) set(d time.Duration) error {
	other := 1 - c.now
	seconds := binary.LittleEndian.AppendUint64(nil, uint64(d/time.Second))
	if _, err := c.memory.WriteAt(seconds, c.at+cells+8*other); err != nil {
		if errors.Is(err, io.ErrUnexpectedEOF) {
			return nil
		}
		return err
	}
	_, err := c.memory.WriteAt([]byte{byte(other)}, c.at+which)
	c.now = other
	return err
}

func (c *clock) close() {
	if c != nil {
		_ = c.memory.Close() // nothing is kept in it
	}
}
