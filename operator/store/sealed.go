package store

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/operator/blocks"
)

// A block that is gone leaves a gap in the sequences of its stream, as messages that were deleted
// do. So the sealed blocks of each stream are listed while the store is in use, with what they
// hold. The server removes a block when it deletes the last message in it. Of each message that it
// deleted before, it has written a tombstone into a later block: if so many are there, the block
// was removed, and else it is lost.

// sealedName is the file with the list, which is written again when it changes.
const sealedName = "skein.sealed"

// sealedAtOnce is how many blocks are read for the list each time, at most.
const sealedAtOnce = 4

// sealedBlock is the list's entry of a block.
type sealedBlock struct {
	First    uint64 `json:"first"` // sequences
	Last     uint64 `json:"last"`
	Messages int    `json:"messages"`
	stamp
}

// sealedList is, by account/name of a stream, its sealed blocks by number.
type sealedList map[string]map[uint32]sealedBlock

// readSealed reads the list. Without one, or with one that a crash has left incomplete, it is empty.
func readSealed(dir string) (sealedList, error) {
	out := sealedList{}
	_, err := readDigested(filepath.Join(dir, sealedName), &out)
	return out, err
}

func (l sealedList) write(dir string, sync bool) error {
	return writeDigested(filepath.Join(dir, sealedName), l, sync)
}

// lists reports whether the blocks of a stream are listed: not if messages leave it by a limit,
// of which the server writes no tombstone, or when they are handled.
func lists(p place) bool {
	raw, err := os.ReadFile(filepath.Join(p.dir, metaFile))
	if err != nil {
		return false
	}
	if _, err := os.Stat(filepath.Join(p.dir, metaKeyFile)); err == nil {
		return false // it is encrypted
	}
	for _, unlimited := range []string{`"retention":"limits"`, `"max_msgs":-1`, `"max_bytes":-1`, `"max_age":0`, `"max_msgs_per_subject":-1`} {
		if !bytes.Contains(raw, []byte(unlimited)) {
			return false
		}
	}
	return true
}

// seal brings the list up to date with the sealed blocks of the store in use, of which it reads a few.
// A block that was changed since it was read is left out until it is read again.
func (o *Opened) seal() error {
	list, err := o.cfg.truth()
	if err != nil {
		return err
	}
	now, budget := sealedList{}, sealedAtOnce
	for _, p := range list {
		if !lists(p) {
			continue
		}
		files, err := blockFiles(p)
		if err != nil {
			return err
		}
		before, after := o.sealed[p.id()], map[uint32]sealedBlock{}
		for _, f := range files[:max(len(files)-1, 0)] {
			known, ok := before[f.index]
			if !ok || known.stamp != f.stamp {
				if budget == 0 {
					continue
				}
				budget--
				got := sealed(context.Background(), p.stream, f)
				if got == nil || got.err != nil || len(got.Damages) > 0 || got.First == 0 {
					continue
				}
				known = sealedBlock{got.First, got.Last, got.Messages, f.stamp}
			}
			after[f.index] = known
		}
		now[p.id()] = after
	}
	if maps.EqualFunc(o.sealed, now, maps.Equal[map[uint32]sealedBlock, map[uint32]sealedBlock]) {
		return nil
	}
	o.sealed = now
	return now.write(o.cfg.Dir, false)
}

// missingSealed returns the blocks of the list that are not there, by number.
func (s *stream) missingSealed(list sealedList) map[uint32]sealedBlock {
	out := maps.Clone(list[s.id()])
	for _, f := range s.files {
		delete(out, f.index)
	}
	return out
}

// witness notes what a record says of messages that are gone. It is for one block.
func (s *stream) witness(into *blockRead, isLog bool) func(blocks.Record) {
	if len(s.unsealed) == 0 && !isLog {
		return nil
	}
	return func(r blocks.Record) {
		switch {
		case r.Kind == blocks.Tombstone && slices.ContainsFunc(s.unsealed, func(b sealedBlock) bool { return b.First <= r.Seq && r.Seq <= b.Last }):
			into.removed = append(into.removed, r.Seq)
		case r.Kind != blocks.Message:
		case isLog && !into.erases:
			_, data := r.Body()
			into.erases = bytes.Contains(data, []byte(events.LifecycleDeletedType)) || bytes.Contains(data, []byte(events.LifecycleArchivedType))
		}
		into.erases = into.erases || r.Kind != blocks.Message
	}
}

// lostSealed names the listed blocks that are gone though messages were in them.
func (s *stream) lostSealed(dir string, missing map[uint32]sealedBlock) {
	removed := map[uint64]bool{}
	for _, b := range s.read {
		if b != nil {
			for _, seq := range b.removed {
				removed[seq] = true
			}
		}
	}
	for _, index := range slices.Sorted(maps.Keys(missing)) {
		b := missing[index]
		n := 0
		for seq := range removed {
			if b.First <= seq && seq <= b.Last {
				n++
			}
		}
		if n >= b.Messages-1 { // of the last one there is no tombstone
			continue
		}
		s.damages = append(s.damages, Damage{
			Account: s.account, Stream: s.stream, File: under(dir, filepath.Join(s.messages(), blockName(index))), From: b.First, To: b.Last, Derived: s.derived,
			Cause: fmt.Sprintf("the block is gone, and had %d messages when it was last seen", b.Messages),
		})
	}
}

// gaps names what a log lacks from which nothing was ever erased: then each sequence is in it. A
// store that was repaired may have gone on without some.
func (s *stream) gaps(dir string, m mark) {
	if _, err := os.Stat(filepath.Join(dir, asideDir)); err == nil || m.Repaired || len(s.damages) > 0 {
		return
	}
	next := uint64(1)
	var found []Damage
	for i, b := range s.read {
		if b == nil || b.err != nil || b.erases {
			return
		}
		if b.First > next {
			found = append(found, Damage{
				Account: s.account, Stream: s.stream, File: under(dir, s.files[i].path), From: next, To: b.First - 1,
				Cause: "the block begins after messages that are in no block, and nothing was ever erased",
			})
		}
		if b.Last > 0 {
			if b.Last-b.First+1 != uint64(b.Messages) {
				return
			}
			next = b.Last + 1
		}
	}
	s.damages = append(s.damages, found...)
}
