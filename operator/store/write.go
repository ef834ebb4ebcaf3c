package store

import (
	"cmp"
	"errors"
	"os"
	"path/filepath"
	"slices"

	"github.com/skein-threads/skein/operator/blocks"
)

// blockRoom is how much goes into a block that is written here.
const blockRoom = 8 << 20

// blockWriter writes the blocks of a stream that is built again.
type blockWriter struct {
	*builder
	done *RepairedStream
	last uint64 // sequence
	time int64  // of the newest record
}

func (w *blockWriter) write(files []blockFile, damaged map[string]bool) error {
	if err := os.MkdirAll(w.to.messages(), 0o750); err != nil {
		return err
	}
	next := uint32(1)
	for i, f := range files {
		free := next
		next = f.index + 1
		raw, err := os.ReadFile(f.path)
		r := blocks.NewReader(w.at.stream, f.index)
		var here []kept
		whole := err == nil
		if err == nil {
			// Also one that a crash has cut off, which only the last block may be.
			whole = len(r.Scan(raw, func(rec blocks.Record) { here = append(here, keep(rec, 0)) }).Damages) == 0
		}
		// What was lost before and within this block goes where its sequence is.
		end := uint64(0)
		for _, rec := range here {
			if rec.Kind != blocks.Tombstone {
				end = max(end, rec.Seq)
			}
		}
		if i+1 < len(files) && files[i+1].index == next { // else there are numbers for it
			end = max(end, w.firstAfter(files[i+1:])-1)
		}
		found, err := w.fillIn(w.upTo(end), here, free, f.index)
		if err != nil {
			return err
		}
		if len(found) == 0 && !damaged[f.path] && whole {
			w.note(here)
			if err := w.reuse(f, i == len(files)-1); err != nil {
				return err
			}
			continue
		}
		if err := w.block(r, f.index, merge(here, found)); err != nil {
			return err
		}
	}
	for len(w.found) > 0 { // what comes after all of it
		n, size := 0, 0
		for n < len(w.found) && size < blockRoom {
			size += len(w.found[n].Raw)
			n++
		}
		if err := w.block(blocks.NewReader(w.at.stream, next), next, w.found[:n]); err != nil {
			return err
		}
		w.found = w.found[n:]
		next++
	}
	return w.end(next)
}

// fillIn writes what was found before the first message that is here as blocks of the numbers from free
// to before, if there are any: those of blocks that are gone. It returns the rest.
func (w *blockWriter) fillIn(found, here []kept, free, before uint32) ([]kept, error) {
	n := len(found)
	for _, rec := range here {
		if rec.Kind != blocks.Tombstone {
			n, _ = slices.BinarySearchFunc(found, rec.Seq, func(r kept, seq uint64) int { return cmp.Compare(r.Seq, seq) })
			break
		}
	}
	lead := found[:n]
	for ; free < before && len(lead) > 0; free++ {
		end, size := 0, 0
		for end < len(lead) && (size < blockRoom || free == before-1) {
			size += len(lead[end].Raw)
			end++
		}
		if err := w.block(blocks.NewReader(w.at.stream, free), free, lead[:end]); err != nil {
			return nil, err
		}
		lead = lead[end:]
	}
	return append(lead, found[n:]...), nil
}

// firstAfter returns the first sequence of the blocks that follow.
func (w *blockWriter) firstAfter(files []blockFile) uint64 {
	for _, f := range files {
		raw, err := os.ReadFile(f.path)
		if err != nil {
			continue
		}
		if s := blocks.NewReader(w.at.stream, f.index).Scan(raw, nil); s.First > 0 {
			return s.First
		}
	}
	return 1
}

// upTo takes what was found up to a sequence.
func (w *blockWriter) upTo(end uint64) []kept {
	n := 0
	for n < len(w.found) && w.found[n].Seq <= end {
		n++
	}
	out := w.found[:n]
	w.found = w.found[n:]
	return out
}

// merge puts what was found between what is there, in the order of sequences.
func merge(here, found []kept) []kept {
	var out []kept
	for _, r := range here {
		for len(found) > 0 && r.Kind != blocks.Tombstone && found[0].Seq < r.Seq {
			out, found = append(out, found[0]), found[1:]
		}
		out = append(out, r)
	}
	return append(out, found...)
}

// reuse takes a block as it is. The last one is copied: the server writes it in
// place, and what is aside stays as it was.
func (w *blockWriter) reuse(f blockFile, last bool) error {
	to := filepath.Join(w.to.messages(), filepath.Base(f.path))
	if last {
		return copyFile(f.path, to)
	}
	return linkFile(f.path, to)
}

func (w *blockWriter) note(records []kept) {
	for _, r := range records {
		w.last = max(w.last, r.Seq)
		w.time = max(w.time, r.Time)
	}
}

// block writes a block again, not compressed: the server does that when it likes to.
func (w *blockWriter) block(r *blocks.Reader, index uint32, records []kept) error {
	var raw []byte
	for _, rec := range records {
		raw = r.Move(raw, rec.Record)
		if rec.Kind == blocks.Message {
			w.done.Messages++
			if rec.from > 0 {
				w.done.Found++
			}
		}
	}
	w.note(records)
	if len(raw) == 0 {
		return nil
	}
	return writeSynced(filepath.Join(w.to.messages(), blockName(index)), raw)
}

// end makes sure that sequences that are lost are not used again.
func (w *blockWriter) end(next uint32) error {
	w.done.Last = w.last
	for _, s := range w.lost {
		w.done.Last = max(w.done.Last, s.To)
	}
	w.done.Last = max(w.done.Last, w.known)
	if w.done.Last <= w.last {
		return nil
	}
	r := blocks.NewReader(w.at.stream, next)
	return writeSynced(filepath.Join(w.to.messages(), blockName(next)), r.Tombstone(nil, w.done.Last, w.time))
}

func writeSynced(name string, raw []byte) error {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(raw)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}
