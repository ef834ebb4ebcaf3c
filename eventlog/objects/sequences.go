package objects

import (
	"fmt"
	"strconv"
	"strings"
)

// MetaPieces names the metadata of an entry that lists the sequences of the object's pieces, as
// [Sequences] are encoded. Entries of objects of which single pieces are read have it.
const MetaPieces = "pieces"

// Sequences are the sequences of an object's pieces in the stream, in order, as ranges of
// consecutive ones: a single range, unless others were writing at the same time.
type Sequences []sequenceRange

type sequenceRange struct {
	first uint64
	n     int64
}

// Append returns the sequences with that of the next piece.
func (s Sequences) Append(seq uint64) Sequences {
	if last := len(s) - 1; last >= 0 && s[last].first+uint64(s[last].n) == seq {
		s[last].n++
		return s
	}
	return append(s, sequenceRange{seq, 1})
}

// Count returns the number of pieces.
func (s Sequences) Count() int64 {
	var n int64
	for _, r := range s {
		n += r.n
	}
	return n
}

// at returns the sequence of a piece, 0 if there is no such piece.
func (s Sequences) at(piece int64) uint64 {
	for _, r := range s {
		if piece < r.n {
			return r.first + uint64(max(piece, 0))
		}
		piece -= r.n
	}
	return 0
}

// String encodes the sequences: 17+4,30 are 17 to 20 and 30.
func (s Sequences) String() string {
	var b strings.Builder
	for i, r := range s {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.FormatUint(r.first, 10))
		if r.n > 1 {
			b.WriteByte('+')
			b.WriteString(strconv.FormatInt(r.n, 10))
		}
	}
	return b.String()
}

func parseSequences(text string) (Sequences, error) {
	var out Sequences
	if text == "" {
		return nil, nil
	}
	for part := range strings.SplitSeq(text, ",") {
		first, count, many := strings.Cut(part, "+")
		r := sequenceRange{n: 1}
		var err error
		if r.first, err = strconv.ParseUint(first, 10, 64); err == nil && many {
			r.n, err = strconv.ParseInt(count, 10, 64)
		}
		if err != nil || r.n < 1 || r.first == 0 {
			return nil, fmt.Errorf("invalid sequences of pieces: %.40q", part)
		}
		out = append(out, r)
	}
	return out, nil
}
