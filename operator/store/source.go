package store

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/klauspost/compress/s2"
	"github.com/nats-io/nats-server/v2/server/archive"

	"github.com/skein-threads/skein/eventlog/backup"
	"github.com/skein-threads/skein/operator/blocks"
)

// source is where a lost part of a stream may be found: a backup, or another store.
type source interface {
	name() string
	// stream visits what the source has of a stream, and its description. It returns
	// up to which sequence the source knows all of the stream; 0: it does not have it,
	// or not all of it.
	stream(name string, record func(blocks.Record), meta func([]byte)) (covered uint64, err error)
}

// openSource finds out what a folder is.
func openSource(dir string) (source, error) {
	if _, err := os.Stat(filepath.Join(dir, "manifest.json")); err == nil {
		b, err := backup.Read(dir)
		if err != nil {
			return nil, err
		}
		return &backupFolder{dir, b}, nil
	}
	if err := Restored(dir); err != nil {
		return nil, err
	}
	list, err := places(dir)
	if err != nil {
		return nil, err
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("%s is neither a backup nor a store: there is no manifest.json, and nothing in %s", dir, filepath.Join(dir, jetStreamDir))
	}
	return &otherStore{dir, list}, nil
}

// backupFolder is what `skein backup` has written.
type backupFolder struct {
	dir string
	*backup.Manifest
}

func (b *backupFolder) name() string { return b.dir }

func (b *backupFolder) stream(name string, record func(blocks.Record), meta func([]byte)) (uint64, error) {
	for _, s := range b.Streams {
		if s.Name != name {
			continue
		}
		var fields map[string]jsontext.Value
		if err := json.Unmarshal(s.Config, &fields); err != nil {
			return 0, err
		}
		made, err := json.Marshal(b.Made)
		if err != nil {
			return 0, err
		}
		fields["Created"] = made
		described, err := json.Marshal(fields, json.Deterministic(true))
		if err != nil {
			return 0, err
		}
		meta(described)
		last, err := readSnapshot(filepath.Join(b.dir, s.File), record)
		if err != nil {
			return 0, fmt.Errorf("%s: %w", s.File, err)
		}
		return last, nil
	}
	return 0, nil
}

// maxMessage bounds a message of a snapshot.
const maxMessage = 64 << 20

// readSnapshot reads JetStream's snapshot of a stream, and returns the last sequence
// that it says the stream had.
func readSnapshot(file string, record func(blocks.Record)) (last uint64, err error) {
	f, err := os.Open(file)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	for r := archive.NewReader(s2.NewReader(f)); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return last, nil
		}
		if err != nil {
			return 0, err
		}
		if h.HeaderSize+h.PayloadSize > maxMessage {
			return 0, fmt.Errorf("%s has %d bytes, more than %d", h.Name, h.HeaderSize+h.PayloadSize, maxMessage)
		}
		raw, err := io.ReadAll(r)
		switch {
		case err != nil:
			return 0, err
		case h.Sequence > 0:
			record(blocks.NewMessage(h.Sequence, h.Timestamp, h.Name, raw[:h.HeaderSize], raw[h.HeaderSize:]))
		case h.Name == "state.json":
			var state struct {
				Last uint64 `json:"last_seq"`
			}
			if err := json.Unmarshal(raw, &state); err != nil {
				return 0, err
			}
			last = state.Last
		}
	}
}

// otherStore is the store of another server: a copy, a replica, or the guard.
type otherStore struct {
	dir  string
	list []place
}

func (o *otherStore) name() string { return o.dir }

func (o *otherStore) stream(name string, record func(blocks.Record), meta func([]byte)) (uint64, error) {
	last, whole := uint64(0), true
	for _, p := range o.list {
		if p.stream != name {
			continue
		}
		raw, err := os.ReadFile(filepath.Join(p.dir, metaFile))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return 0, err
		}
		if err == nil {
			meta(raw)
		}
		files, err := blockFiles(p)
		if err != nil {
			return 0, err
		}
		for i, f := range files {
			raw, err := os.ReadFile(f.path)
			if err != nil {
				whole = false // what it cannot give, another may
				continue
			}
			got := blocks.NewReader(name, f.index).Scan(raw, func(r blocks.Record) {
				last = max(last, r.Seq)
				record(r)
			})
			for _, d := range got.Damages {
				whole = whole && d.Torn && i == len(files)-1
			}
		}
	}
	if !whole {
		return 0, nil
	}
	return last, nil
}

// guardSource returns the guard of a store, if it has one.
func guardSource(dir string) (source, error) {
	root := filepath.Join(dir, guardDir)
	accounts, err := os.ReadDir(root)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	g := &otherStore{dir: root}
	for _, a := range accounts {
		streams, err := os.ReadDir(filepath.Join(root, a.Name()))
		if err != nil {
			return nil, err
		}
		for _, s := range streams {
			g.list = append(g.list, place{a.Name(), s.Name(), filepath.Join(root, a.Name(), s.Name())})
		}
	}
	return g, nil
}

// kept is a record that was copied from a block, and where it comes from: 0 is the
// store itself, and n the nth source.
type kept struct {
	blocks.Record
	from int
}

func keep(r blocks.Record, from int) kept {
	r.Raw = bytes.Clone(r.Raw)
	return kept{r, from}
}
