package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Names within a store directory.
const (
	jetStreamDir = "jetstream"
	streamsDir   = "streams"
	messagesDir  = "msgs"
	metaFile     = "meta.inf"
	metaSumFile  = "meta.sum"
	metaKeyFile  = "meta.key" // only of an encrypted stream
	indexFile    = "index.db"
	blockSuffix  = ".blk"

	guardDir = "skein-guard"
	asideDir = "skein-aside"
)

// place is where a stream is kept.
type place struct {
	account, stream string
	dir             string
}

// id names a stream in the mark.
func (p place) id() string { return p.account + "/" + p.stream }

// messages is the folder of its blocks.
func (p place) messages() string { return filepath.Join(p.dir, messagesDir) }

// places lists the streams of a store, in order.
func places(dir string) ([]place, error) {
	accounts, err := os.ReadDir(filepath.Join(dir, jetStreamDir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var out []place
	for _, account := range accounts {
		root := filepath.Join(dir, jetStreamDir, account.Name(), streamsDir)
		streams, err := os.ReadDir(root)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		for _, s := range streams {
			if !s.IsDir() || strings.HasPrefix(s.Name(), ".") { // the server deletes what begins with a dot
				continue
			}
			out = append(out, place{account.Name(), s.Name(), filepath.Join(root, s.Name())})
		}
	}
	return out, nil
}

// placeOf is the place of a stream of the mark, which may not be there.
func placeOf(dir, id string) place {
	account, stream, _ := strings.Cut(id, "/")
	return place{account, stream, filepath.Join(dir, jetStreamDir, account, streamsDir, stream)}
}

// blockFile is one block of a stream.
type blockFile struct {
	index uint32
	path  string
	size  int64
	stamp stamp
}

// blockFiles lists the blocks of a stream, in order.
func blockFiles(p place) ([]blockFile, error) {
	entries, err := os.ReadDir(p.messages())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var out []blockFile
	for _, e := range entries {
		b := blockFile{path: filepath.Join(p.messages(), e.Name())}
		if n, err := fmt.Sscanf(e.Name(), "%d.blk", &b.index); err != nil || n != 1 || e.Name() != blockName(b.index) {
			continue
		}
		if info, err := e.Info(); err == nil {
			b.size, b.stamp = info.Size(), stamp{info.Size(), info.ModTime().UnixNano()}
		}
		out = append(out, b)
	}
	slices.SortFunc(out, func(a, b blockFile) int { return int(int64(a.index) - int64(b.index)) })
	return out, nil
}

func blockName(index uint32) string { return fmt.Sprint(index) + blockSuffix }

// under names a file as people find it: relative to the store.
func under(dir, path string) string {
	if rel, err := filepath.Rel(dir, path); err == nil {
		return rel
	}
	return path
}
