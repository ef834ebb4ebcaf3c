package store

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/skein-threads/skein/internal/retry"
)

// settle is how long a block that could not be read is left alone before it is read
// again: the server replaces blocks while it works.
const settle = 200 * time.Millisecond

// Scan reads the blocks of what is not derived again, while the server uses them, one
// after the other. The last block of each stream is left out: it is being written.
func (o *Opened) Scan(ctx context.Context) ([]Damage, error) {
	list, err := o.cfg.truth()
	if err != nil {
		return nil, err
	}
	var out []Damage
	for _, p := range list {
		if _, err := os.Stat(filepath.Join(p.dir, metaKeyFile)); err == nil {
			continue // it is encrypted
		}
		s := &stream{place: p}
		if s.files, err = blockFiles(p); err != nil {
			return nil, err
		}
		s.files = s.files[:max(len(s.files)-1, 0)]
		s.read = make([]*blockRead, len(s.files))
		for i, f := range s.files {
			if err := context.Cause(ctx); err != nil {
				return nil, err
			}
			s.read[i] = sealed(ctx, p.stream, f)
		}
		s.judge(o.cfg.Dir, mark{}, true)
		out = append(out, s.damages...)
	}
	return out, nil
}

// sealed reads a block that the server does not write any more, but may replace.
func sealed(ctx context.Context, name string, f blockFile) *blockRead {
	for again := false; ; again = true {
		got := &blockRead{}
		task{stream: name, file: f, into: got}.read()
		if got.err == nil && len(got.Damages) == 0 {
			return got
		}
		if _, err := os.Stat(f.path); errors.Is(err, fs.ErrNotExist) {
			return nil // all of it was removed
		}
		if again {
			return got
		}
		if !retry.Sleep(ctx, settle) {
			return nil
		}
	}
}
