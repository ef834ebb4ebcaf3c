package store

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/skein-threads/skein/operator/blocks"
)

// Config says which store it is, and what in it is derived.
type Config struct {
	Dir      string
	Log      string                   // the stream that everything else is derived from
	Derived  func(stream string) bool // whether a stream can be made again from the log
	Progress func(done, total int64)  // told of the bytes that were read, unless Open reads little; may be nil
	all      bool                     // look at derived streams too
}

// Check reads every block of a store, those of derived streams too, and compares
// what it finds with the mark. No server may use the store meanwhile. The error is an
// *[UnfinishedError] if a restore into the store did not end, and a *[format.NewerError] if a newer
// Skein has used it.
func Check(ctx context.Context, cfg Config) (*Report, error) {
	if err := cfg.usable(); err != nil {
		return nil, err
	}
	m, err := readMark(cfg.Dir)
	if err != nil {
		return nil, err
	}
	cfg.all = true
	return cfg.check(ctx, m, false)
}

// check reads the blocks of the streams; with quick, only the last one of each.
func (c Config) check(ctx context.Context, m mark, quick bool) (*Report, error) {
	list, err := places(c.Dir)
	if err != nil {
		return nil, err
	}
	sealedBefore, err := readSealed(c.Dir)
	if err != nil {
		return nil, err
	}
	r := &Report{Dir: c.Dir, Quick: quick, Clean: quick}
	w := &work{Config: c, ctx: ctx}
	var found []*stream
	for _, p := range list {
		if c.Derived(p.stream) && !c.all {
			continue
		}
		s := &stream{place: p, derived: c.Derived(p.stream), known: m.Streams[p.id()]}
		s.begin(c.Dir, quick, sealedBefore, w)
		found = append(found, s)
	}
	if err := w.run(); err != nil {
		return nil, err
	}
	for _, s := range found {
		if err := s.denied(); err != nil {
			return nil, &DeniedError{Dir: c.Dir, Cause: err}
		}
	}
	proven := uint64(0)
	for _, s := range found {
		proven = max(proven, s.proof())
	}
	for _, s := range found {
		if s.stream == c.Log {
			s.known = max(s.known, proven)
		}
		s.judge(c.Dir, m, quick)
		if s.stream == c.Log && !quick && s.skipped == "" {
			s.gaps(c.Dir, m)
		}
		r.Streams = append(r.Streams, s.report())
		r.Damages = append(r.Damages, s.damages...)
	}
	r.Damages = append(r.Damages, c.gone(list, m, proven)...)
	if gone := c.derivedGone(m); c.all {
		r.Damages = append(r.Damages, gone...)
		r.count(gone)
	} else {
		r.DerivedGone = gone
	}
	return r, nil
}

// gone names the streams that the mark knows, or that derived ones prove, and that
// are not there.
func (c Config) gone(list []place, m mark, proven uint64) []Damage {
	known := maps.Clone(m.Streams)
	maps.DeleteFunc(known, func(id string, last uint64) bool { return m.Empty[id] >= last && !strings.HasSuffix(id, "/"+c.Log) })
	for _, p := range list {
		if log := p.account + "/" + c.Log; proven > 0 && c.Derived(p.stream) {
			known[log] = max(known[log], proven)
		}
	}
	for _, p := range list {
		delete(known, p.id())
	}
	var out []Damage
	for _, id := range slices.Sorted(maps.Keys(known)) {
		p := placeOf(c.Dir, id)
		if c.Derived(p.stream) {
			continue
		}
		out = append(out, Damage{
			Account: p.account, Stream: p.stream, File: under(c.Dir, p.dir), To: known[id], tail: true,
			Cause: fmt.Sprintf("the stream is not there, and it had got to %d", known[id]),
		})
	}
	return out
}

// stream is one stream that is being checked.
type stream struct {
	place
	derived bool
	skipped string
	known   uint64
	files   []blockFile
	read    []*blockRead // of each file; nil: not read
	damages []Damage
	index   uint64 // the last sequence that its index knows
	bytes   int64
	refused error // why its folder or its description cannot be read

	missing  map[uint32]sealedBlock // blocks that were sealed, and are not there
	unsealed []sealedBlock          // the same, in any order
}

// blockRead is the result of reading a block.
type blockRead struct {
	blocks.Summary
	err   error
	proof uint64 // of a derived stream: the last sequence of the log that it speaks of

	removed []uint64 // sequences in blocks that are missing, of which it has tombstones
	erases  bool     // of the log: something was deleted or archived
}

// begin looks at the small files and plans which blocks are read.
func (s *stream) begin(dir string, quick bool, list sealedList, w *work) {
	var err error
	if s.files, err = blockFiles(s.place); err != nil {
		s.refused = err
		s.lost(dir, s.messages(), err.Error())
		return
	}
	if _, err := os.Stat(filepath.Join(s.dir, metaKeyFile)); err == nil {
		s.skipped = "it is encrypted"
	}
	s.missing = s.missingSealed(list)
	s.unsealed = slices.Collect(maps.Values(s.missing))
	content := slices.ContainsFunc(s.files, func(f blockFile) bool { return f.size > 0 })
	if _, err := os.ReadFile(filepath.Join(s.dir, metaFile)); err != nil {
		s.refused = err
	}
	if cause := metaDamage(s.place); cause != "" && content { // without content it was being made
		s.lost(dir, filepath.Join(s.dir, metaFile), cause)
	}
	if s.skipped == "" && !async(s.place) {
		s.index, _ = indexLast(s.place)
	}
	s.read = make([]*blockRead, len(s.files))
	for i, f := range s.files {
		s.bytes += f.size
		switch {
		case s.skipped != "":
		case quick && i < len(s.files)-1:
			if f, err := os.Open(f.path); err != nil {
				s.read[i] = &blockRead{err: err}
			} else {
				_ = f.Close()
			}
		default:
			s.read[i] = &blockRead{}
			w.add(task{s.stream, s.derived, f, s.read[i], s.witness(s.read[i], s.stream == w.Log)})
		}
	}
}

func (s *stream) lost(dir, path, cause string) {
	s.damages = append(s.damages, Damage{
		Account: s.account, Stream: s.stream, File: under(dir, path), Cause: cause, Derived: s.derived,
	})
}

// denied returns the error of a file of the stream that may not be read, or nil.
func (s *stream) denied() error {
	if errors.Is(s.refused, fs.ErrPermission) {
		return s.refused
	}
	for _, b := range s.read {
		if b != nil && errors.Is(b.err, fs.ErrPermission) {
			return b.err
		}
	}
	return nil
}

// judge says what is damaged, once the blocks are read.
func (s *stream) judge(dir string, m mark, quick bool) {
	last := uint64(0) // of messages, so far
	var open []int    // damages that wait for the message after them
	for i, read := range s.read {
		if read == nil {
			continue
		}
		end := i == len(s.read)-1
		if read.First > 0 {
			for _, d := range open {
				s.damages[d].To = read.First - 1
			}
			open = nil
		}
		add := func(d Damage, before uint64) {
			d.Account, d.Stream, d.File, d.Derived = s.account, s.stream, under(dir, s.files[i].path), s.derived
			if before > 0 {
				d.To = before - 1
			} else {
				open = append(open, len(s.damages))
			}
			s.damages = append(s.damages, d)
		}
		switch {
		case read.err != nil:
			add(Damage{From: last + 1, Cause: read.err.Error()}, 0)
		case s.files[i].size == 0 && !end:
			add(Damage{From: last + 1, Cause: "the block is empty, and is not the last one"}, 0)
		}
		for _, d := range read.Damages {
			if d.Torn && end {
				continue
			}
			add(Damage{Offset: int64(d.Offset), From: max(d.After, last) + 1, Cause: d.Cause, stray: d.Stray && end}, d.Before)
		}
		last = max(last, read.Last)
	}
	if s.missingFiles(dir, m); quick || s.skipped != "" {
		return
	}
	s.lostSealed(dir, s.missing)
	if known, have := max(s.known, s.index), s.last(); known > have && len(open) == 0 {
		s.damages = append(s.damages, Damage{
			Account: s.account, Stream: s.stream, File: under(dir, s.messages()), From: have + 1, To: known, Derived: s.derived,
			tail: true, Cause: fmt.Sprintf("the stream ends at %d, and it had got to %d", have, known),
		})
	} else if known > have {
		for _, d := range open {
			s.damages[d].To, s.damages[d].tail = known, true
		}
	}
}

// missingFiles names blocks that were there when the store was closed cleanly.
func (s *stream) missingFiles(dir string, m mark) {
	for name := range m.Files {
		path := filepath.Join(dir, name)
		if filepath.Dir(path) != s.messages() || filepath.Ext(path) != blockSuffix ||
			slices.ContainsFunc(s.files, func(f blockFile) bool { return f.path == path }) {
			continue
		}
		s.lost(dir, path, "the block was there when the store was closed, and is gone")
	}
}

// last returns the last sequence that the blocks show.
func (s *stream) last() uint64 {
	last := uint64(0)
	for _, b := range s.read {
		if b != nil {
			last = max(last, b.Last, b.Tomb)
		}
	}
	return last
}

// proof returns the last sequence of the log that a derived stream speaks of.
func (s *stream) proof() uint64 {
	proof := uint64(0)
	for _, b := range s.read {
		if b != nil {
			proof = max(proof, b.proof)
		}
	}
	return proof
}

func (s *stream) report() Stream {
	out := Stream{
		Account: s.account, Name: s.stream, Derived: s.derived, Skipped: s.skipped, Blocks: len(s.files), Bytes: s.bytes,
		Last: s.last(), Known: max(s.known, s.index), Lost: len(s.damages),
	}
	for _, b := range s.read {
		if b == nil {
			continue
		}
		out.Messages += b.Messages
		if out.First == 0 {
			out.First = b.First
		}
	}
	return out
}

// metaDamage says what is wrong with the file that describes a stream.
func metaDamage(p place) string {
	raw, err := os.ReadFile(filepath.Join(p.dir, metaFile))
	if err != nil {
		return err.Error()
	}
	sum, err := os.ReadFile(filepath.Join(p.dir, metaSumFile))
	if err != nil {
		return err.Error()
	}
	if hex.EncodeToString(blocks.Sum(p.stream, raw)) != string(sum) {
		return "the description of the stream does not have the checksum in " + metaSumFile
	}
	return ""
}

// async reports whether a stream is stored without waiting for the disk: its index
// may then know of what was never stored.
func async(p place) bool {
	raw, err := os.ReadFile(filepath.Join(p.dir, metaFile))
	return err == nil && bytes.Contains(raw, []byte(`"persist_mode":"async"`))
}

// indexLast returns the last sequence that a stream's index knows. ok is false if it
// has no index that can be read.
func indexLast(p place) (last uint64, ok bool) {
	raw, err := os.ReadFile(filepath.Join(p.messages(), indexFile))
	if err != nil {
		return 0, false
	}
	return blocks.IndexLast(p.stream, raw)
}

// work reads blocks, as many at once as there are processors.
type work struct {
	Config
	ctx   context.Context //nolint:containedctx // it lives as long as the check
	todo  []task
	total int64
}

type task struct {
	stream  string
	derived bool
	file    blockFile
	into    *blockRead
	witness func(blocks.Record) // may be nil
}

func (w *work) add(t task) {
	w.todo = append(w.todo, t)
	w.total += t.file.size
}

func (w *work) run() error {
	var next, done atomic.Int64
	var group sync.WaitGroup
	var telling sync.Mutex
	for range min(runtime.GOMAXPROCS(0), len(w.todo)) {
		group.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= len(w.todo) || w.ctx.Err() != nil {
					return
				}
				w.todo[i].read()
				now := done.Add(w.todo[i].file.size)
				if w.Progress != nil {
					telling.Lock()
					w.Progress(now, w.total)
					telling.Unlock()
				}
			}
		})
	}
	group.Wait()
	return context.Cause(w.ctx)
}

func (t task) read() {
	raw, err := os.ReadFile(t.file.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		t.into.err = errors.New("the block disappeared while the store was read")
	case err != nil:
		t.into.err = err
	default:
		visit := t.witness
		if t.derived {
			visit = func(r blocks.Record) { t.into.proof = max(t.into.proof, speaksOf(r)) }
		}
		t.into.Summary = blocks.NewReader(t.stream, t.file.index).Scan(raw, visit)
	}
}
