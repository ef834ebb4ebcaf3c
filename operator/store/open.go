package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"
)

// Opened is a store that a server may use now. It is safe for concurrent use.
type Opened struct {
	cfg    Config
	report *Report
	took   time.Duration
	guard  bool

	mu        sync.Mutex // guards what follows
	mark      mark
	sealed    sealedList
	turn      int  // of Others
	confirmed bool // the server has everything
	suspect   bool // a derived stream may be damaged
}

// Open makes sure that a server can read all of a store that is not derived, before
// it starts. The caller holds the store's lock. The error is a *DamagedError if
// something cannot be read or is missing, and an *[UnfinishedError] if a restore into the
// store did not end, and a *[format.NewerError] if a newer Skein has used it; then nothing was changed.
func Open(ctx context.Context, cfg Config) (*Opened, error) {
	if err := cfg.usable(); err != nil {
		return nil, err
	}
	begin := time.Now()
	m, err := readMark(cfg.Dir)
	if err != nil {
		return nil, err
	}
	list, err := cfg.truth()
	if err != nil {
		return nil, err
	}
	quick := m.Files != nil && closed(cfg.Dir, m, list)
	if quick {
		cfg.Progress = nil // it reads little
	}
	r, err := cfg.check(ctx, m, quick)
	if err != nil {
		return nil, err
	}
	if err := r.Err(); err != nil {
		return nil, err
	}
	o := &Opened{cfg: cfg, report: r, mark: m}
	if o.sealed, err = readSealed(cfg.Dir); err != nil {
		return nil, err
	}
	if !quick && len(list) > 0 {
		if err := makeGuard(cfg.Dir, list); err != nil {
			return nil, fmt.Errorf("linking the files of the store to %s: %w", guardDir, err)
		}
		o.guard = true
	}
	if !quick {
		if err := cfg.dropIndexes(); err != nil {
			return nil, err
		}
		kept, err := cfg.keepReadable(ctx)
		if err != nil {
			return nil, fmt.Errorf("keeping what can be read of damaged blocks: %w", err)
		}
		r.DerivedGone = append(r.DerivedGone, kept...)
	}
	if err := cfg.unpackEnds(); err != nil {
		return nil, fmt.Errorf("preparing the last blocks of the store for writing: %w", err)
	}
	for _, s := range r.Streams {
		if s.Skipped == "" {
			o.mark.Streams[s.Account+"/"+s.Name] = max(o.mark.Streams[s.Account+"/"+s.Name], s.Last)
		}
	}
	for id, last := range o.mark.Empty {
		if _, err := os.Stat(placeOf(cfg.Dir, id).dir); errors.Is(err, fs.ErrNotExist) && o.mark.Streams[id] == last {
			delete(o.mark.Streams, id) // nothing was lost with it, and another one begins at 1
		}
	}
	o.mark.Files, o.mark.Derived = nil, nil // it is in use from now on
	o.took = time.Since(begin)
	return o, o.mark.write(cfg.Dir, true)
}

// closed reports whether no file of the streams has changed since a clean stop, and
// the server will believe their indexes, so that it reads no block but the last ones.
func closed(dir string, m mark, list []place) bool {
	now, err := stamps(dir, list)
	if err != nil || !maps.Equal(m.Files, now) {
		return false
	}
	for _, p := range list {
		index, ok := now[under(dir, filepath.Join(p.messages(), indexFile))]
		if _, whole := indexLast(p); !ok || !whole {
			return false
		}
		files, err := blockFiles(p)
		if err != nil {
			return false
		}
		for _, f := range files {
			if now[under(dir, f.path)].Modified > index.Modified {
				return false
			}
		}
	}
	return true
}

// truth lists the streams that are not derived.
func (c Config) truth() ([]place, error) { return c.streams(false) }

// streams lists the streams that are derived, or those that are not.
func (c Config) streams(derived bool) ([]place, error) {
	list, err := places(c.Dir)
	return slices.DeleteFunc(list, func(p place) bool { return c.Derived(p.stream) != derived }), err
}

// dropIndexes makes the server read the blocks of derived streams, as it does where it has
// written no index yet. They are stored without waiting for the disk: after a write that
// failed, on a full disk, an index also knows that a message was replaced by one that was never
// stored, and with both gone a document would be missing that no one misses.
func (c Config) dropIndexes() error {
	list, err := c.streams(true)
	if err != nil {
		return err
	}
	for _, p := range list {
		if err := os.Remove(filepath.Join(p.messages(), indexFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// Recovery says what a start after an unclean stop has found.
type Recovery struct {
	Streams, Blocks, Messages int
	Bytes                     int64
	Took                      time.Duration // of reading every block
}

// Recovery returns what was read, and whether the store had not been closed cleanly.
func (o *Opened) Recovery() (Recovery, bool) {
	r := Recovery{Streams: len(o.report.Streams), Took: o.took}
	for _, s := range o.report.Streams {
		r.Blocks += s.Blocks
		r.Messages += s.Messages
		r.Bytes += s.Bytes
	}
	return r, !o.report.Quick && r.Messages > 0
}

// DerivedGone names what is gone of derived streams since the store was closed cleanly, and blocks
// that were damaged and of which the rest was kept.
func (o *Opened) DerivedGone() []Damage { return o.report.DerivedGone }

// RemovedError says that the server has less than was found before it started. The
// files are still in the guard.
type RemovedError struct {
	Dir, Stream string
	Found, Has  uint64 // last sequences
}

func (e *RemovedError) Error() string {
	return fmt.Sprintf("nats-server has stream %s up to sequence %d, and %d was in the store before it started; links to all files are in %s of %s: "+
		"stop, keep them, and mend the store with skein store repair --store %s", e.Stream, e.Has, e.Found, guardDir, e.Dir, e.Dir)
}

// Confirm compares what the server has with what was found, for the streams of an
// account, and gives up the guard. last returns a stream's last sequence, and
// whether the server has the stream. The error is a *RemovedError, or last's.
func (o *Opened) Confirm(account string, last func(stream string) (uint64, bool, error)) error {
	for _, s := range o.report.Streams {
		if s.Account != account || s.Skipped != "" || s.Messages == 0 {
			continue
		}
		has, _, err := last(s.Name)
		if err != nil {
			return err
		}
		if has < s.Last {
			return &RemovedError{Dir: o.cfg.Dir, Stream: s.Name, Found: s.Last, Has: has}
		}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.confirmed = true
	if !o.guard {
		return nil
	}
	o.guard = false
	return removeGuard(o.cfg.Dir)
}

// End is where a stream ends.
type End struct {
	Last  uint64 // sequence
	Empty bool   // it holds no message
}

// Reached notes where streams of an account end, by name. It also lists blocks that were sealed
// meanwhile.
func (o *Opened) Reached(account string, ends map[string]End) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	before, empty := maps.Clone(o.mark.Streams), maps.Clone(o.mark.Empty)
	if o.mark.Empty == nil {
		o.mark.Empty = map[string]uint64{}
	}
	for name, end := range ends {
		id := account + "/" + name
		o.mark.Streams[id] = max(o.mark.Streams[id], end.Last)
		delete(o.mark.Empty, id)
		if end.Empty {
			o.mark.Empty[id] = end.Last
		}
	}
	if maps.Equal(before, o.mark.Streams) && maps.Equal(empty, o.mark.Empty) {
		return o.seal()
	}
	return errors.Join(o.mark.write(o.cfg.Dir, false), o.seal())
}

// Others returns up to n streams of an account that are not derived, for [Opened.Reached]: first those
// that were made since the store was opened, and then one after the other.
func (o *Opened) Others(account string, n int) ([]string, error) {
	list, err := o.cfg.truth()
	if err != nil {
		return nil, err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	var out, rest []string
	for _, p := range list {
		if p.account != account {
			continue
		}
		if _, known := o.mark.Streams[p.id()]; !known {
			out = append(out, p.stream)
		} else {
			rest = append(rest, p.stream)
		}
	}
	for range min(max(n-len(out), 0), len(rest)) {
		o.turn++
		out = append(out, rest[o.turn%len(rest)])
	}
	return out[:min(n, len(out))], nil
}

// Suspect notes that the server could not read or write a derived stream: the next start reads all
// of the store, and keeps what can be read.
func (o *Opened) Suspect() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.suspect = true
}

// Closed notes that the server has ended, and has written everything: the next
// start need not read all of it. The caller still holds the store's lock. Without a
// [Opened.Confirm] before, or after [Opened.Suspect], it does nothing.
func (o *Opened) Closed() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.confirmed || o.suspect {
		return nil
	}
	return o.cfg.markClosed(&o.mark)
}

// markClosed notes in a store's mark which files there are after a clean stop.
func (c Config) markClosed(m *mark) error {
	list, err := c.truth()
	if err != nil {
		return err
	}
	if m.Files, err = stamps(c.Dir, list); err != nil {
		return err
	}
	if m.Derived, err = c.derivedBlocks(); err != nil {
		return err
	}
	return m.write(c.Dir, true)
}
