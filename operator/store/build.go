package store

import (
	"bytes"
	"cmp"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/skein-threads/skein/operator/blocks"
)

// builder builds one stream again.
type builder struct {
	*repair
	at, to place
	known  uint64           // the last sequence that it is known to have had
	lost   []Span           // what is looked for; To 0: up to whatever there is
	tombs  map[uint64]bool  // sequences that were removed
	times  map[uint64]int64 // when a message that is still there was stored, by sequence
	found  []kept           // in the order of their sequences
	meta   []byte
}

// build writes the stream. empty says that there is nothing of it to be had.
func (b *builder) build(damages []Damage) (done RepairedStream, empty bool, err error) {
	done.Name = b.at.stream
	damaged := map[string]bool{}
	for _, d := range damages {
		damaged[filepath.Join(b.Dir, d.File)] = true
		switch {
		case d.stray && !d.tail: // nothing is known of a message there
		case d.tail:
			b.known = max(b.known, d.To)
			b.lost = append(b.lost, Span{max(d.From, 1), 0})
		case d.To == 0 || d.From <= d.To:
			b.lost = append(b.lost, Span{max(d.From, 1), d.To})
		}
	}
	files, err := blockFiles(b.at)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		files = nil // all of it is looked for elsewhere
	}
	if err := b.survey(files); err != nil {
		return done, false, err
	}
	covered, err := b.search()
	if err != nil {
		return done, false, err
	}
	for i := range b.lost {
		if s := &b.lost[i]; s.To == 0 {
			s.To = max(b.known, covered, s.From)
		}
	}
	done.Lost = b.missing(covered)
	b.forget(files)
	if len(b.meta) == 0 {
		if len(done.Lost) == 0 && b.known > 0 {
			done.Lost = []Span{{1, b.known}}
		}
		return done, true, nil
	}
	w := &blockWriter{builder: b, done: &done}
	if err := w.write(files, damaged); err != nil {
		return done, false, err
	}
	return done, false, b.describe()
}

// survey reads what is still there: the tombstones, and the description.
func (b *builder) survey(files []blockFile) error {
	b.tombs, b.times = map[uint64]bool{}, map[uint64]int64{}
	for _, f := range files {
		raw, err := os.ReadFile(f.path)
		if err != nil {
			continue // it is damaged, and known to be
		}
		blocks.NewReader(b.at.stream, f.index).Scan(raw, func(r blocks.Record) {
			switch r.Kind {
			case blocks.Tombstone:
				b.tombs[r.Seq] = true
			case blocks.Message:
				b.times[r.Seq] = r.Time
			}
		})
	}
	raw, err := os.ReadFile(filepath.Join(b.at.dir, metaFile))
	if err == nil && b.fits(raw) {
		b.meta = raw
	}
	return nil
}

// fits reports whether a description is one of this stream.
func (b *builder) fits(raw []byte) bool {
	var described struct {
		Name string `json:"name"`
	}
	return json.Unmarshal(raw, &described, json.MatchCaseInsensitiveNames(true), jsontext.AllowDuplicateNames(true)) == nil && described.Name == b.at.stream
}

// search looks for what is lost in all sources. It returns up to which sequence one
// of them knows all of the stream.
func (b *builder) search() (covered uint64, err error) {
	have := map[uint64]bool{}
	for i, s := range b.sources {
		if b.queue() && s != b.guard {
			continue // what was done since would be done again
		}
		other := uint64(0)
		knows, err := s.stream(b.at.stream, func(r blocks.Record) {
			at, there := b.times[r.Seq]
			switch {
			case r.Kind == blocks.Tombstone:
				b.tombs[r.Seq] = true
			case r.Kind == blocks.Message && there && at != r.Time:
				other = r.Seq
			case b.wanted(r.Seq) && !there && !have[r.Seq]:
				have[r.Seq] = true
				b.found = append(b.found, keep(r, i+1))
			}
		}, func(raw []byte) {
			if len(b.meta) == 0 && b.fits(raw) {
				b.meta = raw
			}
		})
		switch {
		case err != nil:
			return 0, err
		case other > 0:
			return 0, fmt.Errorf("%s belongs to another log: its message %d was not stored when this one was", s.name(), other)
		}
		covered = max(covered, knows)
	}
	b.found = slices.DeleteFunc(b.found, func(r kept) bool { return b.tombs[r.Seq] })
	slices.SortFunc(b.found, func(x, y kept) int { return cmp.Compare(x.Seq, y.Seq) })
	return covered, nil
}

// queue reports whether messages leave the stream when they have been handled.
func (b *builder) queue() bool { return bytes.Contains(b.meta, []byte(`"retention":"workqueue"`)) }

func (b *builder) wanted(seq uint64) bool {
	return slices.ContainsFunc(b.lost, func(s Span) bool { return seq >= s.From && (s.To == 0 || seq <= s.To) })
}

// missing lists what was found nowhere. A sequence up to which a source knows all of
// the stream was deleted if it has no message there.
func (b *builder) missing(covered uint64) []Span {
	var out []Span
	for _, s := range b.lost {
		next := max(s.From, covered+1)
		for _, r := range b.found {
			if r.Seq < next || r.Seq > s.To {
				continue
			}
			if r.Seq > next {
				out = append(out, Span{next, r.Seq - 1})
			}
			next = r.Seq + 1
		}
		if next <= s.To {
			out = append(out, Span{next, s.To})
		}
	}
	return out
}

// describe writes the description of the stream, as one of a single server.
func (b *builder) describe() error {
	fields := jsontext.Value(b.meta)
	var described map[string]jsontext.Value
	if err := json.Unmarshal(fields, &described); err != nil {
		return err
	}
	if n := string(described["num_replicas"]); n != "" && n != "1" {
		described["num_replicas"] = jsontext.Value("1")
		raw, err := json.Marshal(described, json.Deterministic(true))
		if err != nil {
			return err
		}
		b.meta = raw
	}
	if err := os.WriteFile(filepath.Join(b.to.dir, metaFile), b.meta, 0o600); err != nil {
		return err
	}
	sum := hex.EncodeToString(blocks.Sum(b.at.stream, b.meta))
	if err := os.WriteFile(filepath.Join(b.to.dir, metaSumFile), []byte(sum), 0o600); err != nil {
		return err
	}
	// Consumers go on where they were.
	err := os.CopyFS(filepath.Join(b.to.dir, "obs"), os.DirFS(filepath.Join(b.at.dir, "obs")))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
