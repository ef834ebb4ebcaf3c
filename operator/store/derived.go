package store

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Nothing of a derived stream is lost with a block: it can be made again from the log. But the
// server says nothing of a block that is gone, and what it held is shown no longer. In such a
// stream a gap proves nothing, since most messages are replaced or expire, so the blocks are
// listed when the store is closed.

// derivedBlocks lists the blocks of the derived streams of a store, relative to it.
func (c Config) derivedBlocks() ([]string, error) {
	list, err := c.streams(true)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, p := range list {
		files, err := blockFiles(p)
		if err != nil {
			return nil, err
		}
		for _, f := range files {
			out = append(out, under(c.Dir, f.path))
		}
	}
	return out, nil
}

// derivedGone names what is gone of derived streams since the store was closed cleanly: blocks, or
// a stream with all of them.
func (c Config) derivedGone(m mark) []Damage {
	var out []Damage
	for _, name := range m.Derived {
		p, ok := placeOfBlock(c.Dir, name)
		if _, err := os.Stat(filepath.Join(c.Dir, name)); !ok || !errors.Is(err, fs.ErrNotExist) {
			continue
		}
		d := Damage{Account: p.account, Stream: p.stream, File: name, Derived: true, Cause: "the block was there when the store was closed, and is gone"}
		if _, err := os.Stat(p.dir); errors.Is(err, fs.ErrNotExist) {
			d.File, d.Cause = under(c.Dir, p.dir), "the stream was there when the store was closed, and is gone"
		}
		if n := len(out); n == 0 || out[n-1] != d { // one of a stream, whose blocks come together
			out = append(out, d)
		}
	}
	return out
}

// placeOfBlock returns the stream of a block that the mark lists.
func placeOfBlock(dir, name string) (p place, ok bool) {
	parts := strings.Split(filepath.ToSlash(name), "/")
	if len(parts) != 6 || parts[0] != jetStreamDir || parts[2] != streamsDir || parts[4] != messagesDir {
		return place{}, false
	}
	return placeOf(dir, parts[1]+"/"+parts[3]), true
}
