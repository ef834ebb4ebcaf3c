package store

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

const (
	markName   = "skein.mark"
	markFormat = 1
)

// mark records how far each stream of a store had got. It is kept outside those streams.
type mark struct {
	Format  int               `json:"format"`
	Streams map[string]uint64 `json:"streams"`           // by account/name: the last sequence that was stored
	Files   map[string]stamp  `json:"files,omitempty"`   // by path: after a clean stop, the files of streams that are not derived
	Derived []string          `json:"derived,omitempty"` // after a clean stop, the paths of the blocks of derived streams

	Empty    map[string]uint64 `json:"empty,omitempty"`    // by account/name: the last sequence at which it held no message
	Repaired bool              `json:"repaired,omitempty"` // it continues without something that was lost
}

// stamp tells whether a file was changed.
type stamp struct {
	Size     int64 `json:"size"`
	Modified int64 `json:"modified"` // nanoseconds since 1970
}

// readMark reads a store's mark. Without one, or with one that a crash has left
// incomplete, it returns an empty one.
func readMark(dir string) (mark, error) {
	m := mark{Format: markFormat, Streams: map[string]uint64{}}
	got := mark{}
	if ok, err := readDigested(filepath.Join(dir, markName), &got); !ok || err != nil {
		return m, err
	}
	if got.Format != markFormat {
		return m, fmt.Errorf("%s was written by another version of Skein: format %d, not %d", filepath.Join(dir, markName), got.Format, markFormat)
	}
	if got.Streams == nil {
		got.Streams = map[string]uint64{}
	}
	return got.followRename(dir)
}

// followRename returns the mark for a store whose streams an operator gave to another
// account, by renaming the folder of the one that had them: it is gone, and the one
// folder there is has no stream in the mark.
func (m mark) followRename(dir string) (mark, error) {
	list, err := places(dir)
	if err != nil {
		return m, err
	}
	from, to := "", ""
	for id := range m.Streams {
		account, _, _ := strings.Cut(id, "/")
		if from != "" && account != from {
			return m, nil
		}
		from = account
	}
	for _, p := range list {
		if to != "" && p.account != to {
			return m, nil
		}
		to = p.account
	}
	if from == "" || to == "" || from == to {
		return m, nil
	}
	streams := map[string]uint64{}
	for id, seq := range m.Streams {
		streams[to+strings.TrimPrefix(id, from)] = seq
	}
	var files map[string]stamp
	before, after := filepath.Join(jetStreamDir, from)+"/", filepath.Join(jetStreamDir, to)+"/"
	renamed := func(name string) string {
		if rest, ok := strings.CutPrefix(name, before); ok {
			return after + rest
		}
		return name
	}
	for name, s := range m.Files {
		if files == nil {
			files = map[string]stamp{}
		}
		files[renamed(name)] = s
	}
	var derived []string
	for _, name := range m.Derived {
		derived = append(derived, renamed(name))
	}
	empty := map[string]uint64{}
	for id, seq := range m.Empty {
		empty[to+strings.TrimPrefix(id, from)] = seq
	}
	return mark{m.Format, streams, files, derived, empty, m.Repaired}, nil
}

// write replaces the mark. It waits for the disk only if it is told to.
func (m mark) write(dir string, sync bool) error {
	return writeDigested(filepath.Join(dir, markName), m, sync)
}

// readDigested reads what writeDigested has written. ok is false if there is no such file, or one
// that a crash has left incomplete.
func readDigested(name string, into any) (ok bool, err error) {
	raw, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	body, sum, _ := bytes.Cut(raw, []byte("\n"))
	if strings.TrimSpace(string(sum)) != digest(body) {
		return false, nil
	}
	if err := json.Unmarshal(body, into); err != nil {
		return false, fmt.Errorf("%s was written by another version of Skein: %w", name, err)
	}
	return true, nil
}

// writeDigested replaces a file with a value and its digest. It waits for the disk only if it is
// told to.
func writeDigested(name string, value any, sync bool) error {
	body, err := json.Marshal(value, json.Deterministic(true), jsontext.Multiline(false))
	if err != nil {
		return err
	}
	body = append(append(body, '\n'), digest(body)+"\n"...)
	f, err := os.OpenFile(name+".tmp", os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o640)
	if err != nil {
		return err
	}
	_, err = f.Write(body)
	if err == nil && sync {
		err = f.Sync()
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	return os.Rename(name+".tmp", name)
}

func digest(body []byte) string {
	sum := sha256.Sum256(body)
	return hex.EncodeToString(sum[:])
}

// stamps lists the files of the streams that are not derived.
func stamps(dir string, list []place) (map[string]stamp, error) {
	out := map[string]stamp{}
	for _, p := range list {
		for _, sub := range []string{p.dir, p.messages()} {
			entries, err := os.ReadDir(sub)
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return nil, err
			}
			for _, e := range entries {
				if e.IsDir() && sub == p.dir {
					continue
				}
				info, err := e.Info()
				if err != nil {
					return nil, err
				}
				out[under(dir, filepath.Join(sub, e.Name()))] = stamp{info.Size(), info.ModTime().UnixNano()}
			}
		}
	}
	return out, nil
}
