package blocks

import (
	"encoding/binary"
)

// Damage is a place of a block that cannot be read.
type Damage struct {
	Offset int    // in the file; of a compressed block, in what it holds
	Cause  string // what is wrong there
	After  uint64 // the sequence of the last record before it; 0: there is none
	Before uint64 // the sequence of the first message after it; 0: there is none

	// Torn says that it may be what a process leaves that was killed, or a machine
	// that lost its power, while it wrote the block's last record: nothing was
	// acknowledged of it. Only the last block of a stream may end so.
	Torn bool

	// Stray says that the bytes at the end are none of a record, not even of a damaged one.
	Stray bool
}

// Summary describes the content of a block.
type Summary struct {
	Compressed  bool
	First, Last uint64 // sequences of messages, also of erased ones; 0: none
	Tomb        uint64 // the greatest sequence of a tombstone
	Messages    int
	Records     int
	Damages     []Damage
}

// Scan reads a block as it is stored, to its end, and visits every record that can
// be read. visit may be nil.
func (r *Reader) Scan(raw []byte, visit func(Record)) Summary {
	pieces, compressed, cause := unpack(raw)
	s := scan{Reader: r, visit: visit, damaged: cause != "", Summary: Summary{Compressed: compressed}}
	for i, p := range pieces {
		s.piece(p, i == len(pieces)-1)
	}
	if cause != "" && len(s.Damages) == 0 {
		// All records are whole, and yet the server would not read the block.
		s.Damages = append(s.Damages, Damage{Cause: cause, After: s.last})
	}
	for i := range s.Damages {
		if compressed {
			s.Damages[i].Torn, s.Damages[i].Stray = false, false
			if cause != "" {
				s.Damages[i].Cause = cause + ": " + s.Damages[i].Cause
			}
		}
	}
	return s.Summary
}

type scan struct {
	*Reader
	visit func(Record)
	Summary
	damaged bool   // the block cannot be unpacked as it is
	last    uint64 // of the last record
	open    bool   // the last damage waits for the record after it
}

// read reads the record at the beginning of b.
func (s *scan) read(b []byte) (Record, fault) {
	r, wrong := s.record(b)
	if wrong == "" && s.damaged && !r.divided() {
		return Record{}, division
	}
	return r, wrong
}

// piece reads what is whole, up to a gap of a compressed block or to the end.
func (s *scan) piece(p piece, end bool) {
	if p.lost {
		s.damage(Damage{Offset: p.offset, Cause: "a piece of the compressed block is lost", After: s.last})
	}
	at, resyncing := 0, p.lost
	for at < len(p.data) {
		rest := p.data[at:]
		record, wrong := s.read(rest)
		switch {
		case wrong == "" && (!resyncing || s.plausible(record)):
			s.take(record)
			at += len(record.Raw)
			resyncing = false
			continue
		case !resyncing:
			s.damage(Damage{Offset: p.offset + at, Cause: string(wrong), After: s.last, Torn: end && torn(rest, wrong, p.offset+at), Stray: end && wrong == badHead && !s.headOfNext(rest)})
			resyncing = true
			if n := s.stride(rest, wrong); n > 0 {
				at += n
				continue
			}
		}
		at += s.next(p.data[at:])
	}
}

// headOfNext reports whether bytes may begin the record after the last one.
func (s *scan) headOfNext(b []byte) bool {
	return binary.LittleEndian.Uint64(b[4:])&^(erasedBit|tombBit) == s.last+1
}

// stride returns the length that a damaged record claims, if another record follows it: then
// only its contents are damaged, and nothing within is treated as a record. It returns 0
// otherwise.
func (s *scan) stride(b []byte, wrong fault) int {
	if wrong != checksum && wrong != division {
		return 0
	}
	n := int(binary.LittleEndian.Uint32(b) &^ headersBit)
	if n < len(b) && s.looks(b[n:]) {
		return n
	}
	return 0
}

// next returns how far the next place is at which a record may begin.
func (s *scan) next(b []byte) int {
	for i := 1; i+headSize+hashSize <= len(b); i++ {
		// Of a sequence the upper bytes are 0, but for the marks; of a time the
		// uppermost is 0x15 to 0x1f from 2018 to 2041, and 0 of what was erased.
		hi := b[i+19]
		if b[i+9] == 0 && b[i+10] == 0 && b[i+11]&0x3f == 0 && (hi >= 0x15 && hi <= 0x1f || hi == 0) && s.looks(b[i:]) {
			return i
		}
	}
	return len(b)
}

// looks reports whether the head of a record may stand here, without its checksum.
func (s *scan) looks(b []byte) bool {
	r, wrong := s.read(b)
	return wrong == "" && s.plausible(r)
}

// plausible reports whether a record fits behind the last one.
func (s *scan) plausible(r Record) bool {
	return len(r.Raw) > 0 && (r.Kind == Tombstone || r.Seq > s.last)
}

func (s *scan) take(r Record) {
	s.Records++
	if r.Kind == Tombstone {
		s.Tomb = max(s.Tomb, r.Seq)
	} else if r.Seq > 0 {
		if s.First == 0 {
			s.First = r.Seq
		}
		s.Last, s.last = max(s.Last, r.Seq), max(s.last, r.Seq)
		if s.open {
			s.Damages[len(s.Damages)-1].Before, s.open = r.Seq, false
		}
	}
	if len(s.Damages) > 0 {
		s.Damages[len(s.Damages)-1].Torn, s.Damages[len(s.Damages)-1].Stray = false, false // something follows
	}
	if r.Kind == Message {
		s.Messages++
	}
	if s.visit != nil {
		s.visit(r)
	}
}

func (s *scan) damage(d Damage) {
	if s.open && len(s.Damages) > 0 {
		return // the same, as long as no message follows
	}
	s.Damages, s.open = append(s.Damages, d), true
}

// sector is the number of bytes that a disk writes atomically.
const sector = 512

// torn reports whether a write may have ended here before it was done: the record
// goes past the end, or a sector of it was never written.
func torn(rest []byte, wrong fault, offset int) bool {
	if wrong == overrun {
		return true
	}
	first := (sector - offset%sector) % sector
	if first >= len(rest) { // all of it is within one sector
		return allZero(rest)
	}
	for at := first; at < len(rest); at += sector {
		if allZero(rest[at:min(at+sector, len(rest))]) {
			return true
		}
	}
	return allZero(rest[:first]) && first > 0
}

func allZero(b []byte) bool {
	for _, c := range b {
		if c != 0 {
			return false
		}
	}
	return true
}
