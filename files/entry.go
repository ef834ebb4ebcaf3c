package files

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/skein-threads/skein/eventlog/objects"
	"github.com/skein-threads/skein/events"
)

// Names of an entry's metadata.
const (
	metaType   = "mimeType"
	metaWidth  = "width"
	metaHeight = "height"
	metaPieces = "pieces" // the sequences of the pieces in the stream
	metaOf     = "of"     // of a page of a history: the thread from whose items it was made
)

// object is a decoded entry.
type object struct {
	entry   objects.Object
	pieces  runs
	written time.Time
}

func decodeEntry(data []byte) (*object, error) {
	var e objects.Object
	if err := json.Unmarshal(data, &e); err != nil {
		return nil, fmt.Errorf("decode entry: %w", err)
	}
	pieces, err := parseRuns(e.Metadata[metaPieces])
	if err == nil && !e.Deleted && pieces.count() != e.Chunks {
		err = errors.New("decode entry: fields contradict each other")
	}
	return &object{entry: e, pieces: pieces}, err
}

// content returns the description of the content for events.
func (o *object) content(digest string) events.FileContent {
	if o == nil {
		return events.FileContent{}
	}
	number := func(name string) int64 {
		n, _ := strconv.ParseInt(o.entry.Metadata[name], 10, 64) // absent is 0
		return n
	}
	return events.FileContent{
		Digest: digest, Size: o.entry.Size, MimeType: o.entry.Metadata[metaType], Width: number(metaWidth), Height: number(metaHeight),
	}
}

// runs are the sequences of an object's pieces in the stream, in order, as runs of consecutive
// ones: a single run, unless others were writing at the same time.
type runs []run

type run struct {
	first uint64
	n     int64
}

func (r runs) add(seq uint64) runs {
	if last := len(r) - 1; last >= 0 && r[last].first+uint64(r[last].n) == seq {
		r[last].n++
		return r
	}
	return append(r, run{seq, 1})
}

func (r runs) count() int64 {
	var n int64
	for _, one := range r {
		n += one.n
	}
	return n
}

// at returns the sequence of a piece, 0 if there is no such piece.
func (r runs) at(piece int64) uint64 {
	for _, one := range r {
		if piece < one.n {
			return one.first + uint64(piece)
		}
		piece -= one.n
	}
	return 0
}

// String encodes the runs: 17+4,30 are 17 to 20 and 30.
func (r runs) String() string {
	var b strings.Builder
	for i, one := range r {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.FormatUint(one.first, 10))
		if one.n > 1 {
			b.WriteByte('+')
			b.WriteString(strconv.FormatInt(one.n, 10))
		}
	}
	return b.String()
}

func parseRuns(text string) (runs, error) {
	var out runs
	if text == "" {
		return nil, nil
	}
	for part := range strings.SplitSeq(text, ",") {
		first, count, many := strings.Cut(part, "+")
		one := run{n: 1}
		var err error
		if one.first, err = strconv.ParseUint(first, 10, 64); err == nil && many {
			one.n, err = strconv.ParseInt(count, 10, 64)
		}
		if err != nil || one.n < 1 || one.first == 0 {
			return nil, fmt.Errorf("decode entry: invalid sequences of pieces: %.40q", part)
		}
		out = append(out, one)
	}
	return out, nil
}
