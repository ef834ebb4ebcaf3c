package store

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/skein-threads/skein/operator/blocks"
)

// unpackEnds rewrites the block that the server would append to, of each stream, if it is
// compressed. The server compresses a block when it begins the next one. A power cut may take all
// of that next one, which is not synced where a stream does not wait for the disk. Then nats-server
// 2.15 appends to the compressed block as it is, and can read neither that nor what was there before
// (filestore.go, recoverMsgs and checkLastBlock).
func (c Config) unpackEnds() error {
	list, err := places(c.Dir)
	if err != nil {
		return err
	}
	for _, p := range list {
		if err := unpackEnd(p); err != nil {
			return err
		}
	}
	return nil
}

// unpackEnd does so with one stream.
func unpackEnd(p place) error {
	if _, err := os.Stat(filepath.Join(p.dir, metaKeyFile)); err == nil {
		return nil // it is encrypted
	}
	files, err := blockFiles(p)
	if err != nil {
		return err
	}
	for _, f := range slices.Backward(files) {
		raw, err := os.ReadFile(f.path)
		if err != nil {
			return err
		}
		if whole, compressed := blocks.Unpack(raw); compressed {
			return replaceFile(f.path, whole)
		}
		if blocks.NewReader(p.stream, f.index).Scan(raw, nil).Records > 0 {
			return nil
		}
		// The server removes it.
	}
	return nil
}

// keepReadable rewrites each block of a derived stream that is damaged, uncompressed and with the
// records that can be read. At a start after a crash the server would remove all of a stream that
// has a compressed block it cannot unpack, with the consumers on it, and of another block what
// follows the damage. It returns what was damaged.
func (c Config) keepReadable(ctx context.Context) ([]Damage, error) {
	list, err := c.streams(true)
	if err != nil {
		return nil, err
	}
	w := &work{Config: c, ctx: ctx}
	var found []*stream
	for _, p := range list {
		s := &stream{place: p, derived: true}
		s.begin(c.Dir, false, nil, w)
		found = append(found, s)
	}
	if err := w.run(); err != nil {
		return nil, err
	}
	var out []Damage
	for _, s := range found {
		if err := s.denied(); err != nil {
			return nil, &DeniedError{Dir: c.Dir, Cause: err}
		}
		for i, read := range s.read {
			if read != nil && read.err != nil {
				return nil, read.err
			}
			if read == nil || len(read.Damages) == 0 || read.Damages[0].Torn && i == len(s.read)-1 {
				continue // what a crash has left of a last record, the server removes itself
			}
			if err := keepRecords(s.place, s.files[i]); err != nil {
				return nil, err
			}
			out = append(out, Damage{
				Account: s.account, Stream: s.stream, File: under(c.Dir, s.files[i].path), Derived: true,
				Cause: read.Damages[0].Cause + "; what can be read of it was kept",
			})
		}
	}
	return out, nil
}

// keepRecords rewrites a block with the records of it that can be read.
func keepRecords(p place, f blockFile) error {
	raw, err := os.ReadFile(f.path)
	if err != nil {
		return err
	}
	var kept []byte
	blocks.NewReader(p.stream, f.index).Scan(raw, func(r blocks.Record) { kept = append(kept, r.Raw...) })
	if len(kept) == 0 {
		return os.Remove(f.path)
	}
	return replaceFile(f.path, kept)
}

// replaceFile replaces a file in one step. The server ignores what a crash leaves of the attempt.
func replaceFile(name string, raw []byte) error {
	next := name + ".tmp"
	if err := os.Remove(next); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := writeSynced(next, raw); err != nil {
		return err
	}
	if err := os.Rename(next, name); err != nil {
		return err
	}
	return syncFile(filepath.Dir(name))
}
