package store

import (
	"errors"
	"io"
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

// keepReadable rewrites each compressed block of a derived stream that the server could not unpack,
// uncompressed and with the records that can be read: at a start after a crash the server removes a
// stream with such a block, and the consumers on it. It returns what was damaged.
func (c Config) keepReadable() ([]Damage, error) {
	list, err := c.streams(true)
	if err != nil {
		return nil, err
	}
	var out []Damage
	for _, p := range list {
		files, err := blockFiles(p)
		if err != nil {
			return nil, err
		}
		for _, f := range files {
			cause, err := keepRecords(p, f)
			if err != nil {
				return nil, err
			}
			if cause != "" {
				out = append(out, Damage{
					Account: p.account, Stream: p.stream, File: under(c.Dir, f.path), Derived: true,
					Cause: cause + "; what can be read of it was kept",
				})
			}
		}
	}
	return out, nil
}

// keepRecords does so with one block, and returns what was wrong with it.
func keepRecords(p place, f blockFile) (cause string, err error) {
	if compressed, err := isCompressed(f.path); err != nil || !compressed {
		return "", err
	}
	raw, err := os.ReadFile(f.path)
	if err != nil {
		return "", err
	}
	if _, whole := blocks.Unpack(raw); whole {
		return "", nil
	}
	var kept []byte
	got := blocks.NewReader(p.stream, f.index).Scan(raw, func(r blocks.Record) { kept = append(kept, r.Raw...) })
	switch {
	case len(got.Damages) == 0:
		return "", nil
	case len(kept) == 0:
		return got.Damages[0].Cause, os.Remove(f.path)
	}
	return got.Damages[0].Cause, replaceFile(f.path, kept)
}

// isCompressed reads how a block begins.
func isCompressed(name string) (bool, error) {
	f, err := os.Open(name)
	if err != nil {
		return false, err
	}
	defer f.Close()
	head := make([]byte, blocks.HeadSize)
	n, err := io.ReadFull(f, head)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return false, err
	}
	return blocks.Compressed(head[:n]), nil
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
