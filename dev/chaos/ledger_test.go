package chaos

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// ledger is a file in which tools note their work, call by call, so that it survives
// their process: a line before the work, and the line that is the work. Each line is
// appended in one write.
type ledger struct{ path string }

func ledgerIn(folder string) ledger { return ledger{filepath.Join(folder, "ledger")} }

func (l ledger) note(what, key string) error {
	f, err := os.OpenFile(l.path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(f, "%s %s %d\n", what, key, os.Getpid())
	return errors.Join(err, f.Close())
}

// begun notes that a call's work begins.
func (l ledger) begun(key string) error { return l.note("begun", key) }

// record does the work of a call: it writes the line.
func (l ledger) record(key string) error { return l.note("done", key) }

// work is what was done for one call.
type work struct {
	begun []int // the processes that began it
	done  []int // the processes that did it
}

// read returns what was done so far, by the keys of calls.
func (l ledger) read() (map[string]work, error) {
	raw, err := os.ReadFile(l.path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	out := map[string]work{}
	for line := range strings.Lines(string(raw)) {
		fields := strings.Fields(line)
		if len(fields) != 3 {
			return nil, fmt.Errorf("a line of the ledger is %q", line)
		}
		pid, err := strconv.Atoi(fields[2])
		if err != nil {
			return nil, err
		}
		w := out[fields[1]]
		if fields[0] == "done" {
			w.done = append(w.done, pid)
		} else {
			w.begun = append(w.begun, pid)
		}
		out[fields[1]] = w
	}
	return out, nil
}
