package store

import (
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
