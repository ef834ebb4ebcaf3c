package blocks

import (
	"bytes"
	"encoding/binary"
	"io"

	"github.com/klauspost/compress/s2"
)

// piece is a part of a block's content without a gap.
type piece struct {
	data   []byte
	offset int  // of its beginning, in the content as far as it could be read
	lost   bool // something before it could not be read
}

// Chunks of an S2 stream, see github.com/google/snappy/framing_format.txt.
const (
	chunkCompressed = 0x00
	chunkPlain      = 0x01
	chunkHead       = 4 // type and length
	chunkSum        = 4
	maxChunk        = 4 << 20 // of content; the server writes 1 MiB
)

// unpack returns a block's content. cause says why the server could not read it as
// it is.
func unpack(raw []byte) (pieces []piece, compressed bool, cause string) {
	head, size := packed(raw)
	switch {
	case head == 0:
		// A stream of S2 begins here, and only the letters before it are damaged?
		at := bytes.Index(raw[:min(len(raw), HeadSize)], []byte(streamHead))
		if at < 0 || len(raw)-at < hashSize {
			return []piece{{data: raw}}, false, ""
		}
		return salvage(raw[at:len(raw)-hashSize], raw[len(raw)-hashSize:]), true, "the head of the compressed block is damaged"
	case head < 0 || len(raw)-head < hashSize:
		return nil, true, "the compressed block is cut off"
	}
	body, sum := raw[head:len(raw)-hashSize], raw[len(raw)-hashSize:]
	out := bytes.NewBuffer(make([]byte, 0, min(size, maxContent)+bytes.MinRead))
	_, err := io.Copy(out, s2.NewReader(bytes.NewReader(body)))
	if err == nil {
		return []piece{{data: append(out.Bytes(), sum...)}}, true, ""
	}
	return salvage(body, sum), true, "the compressed block cannot be unpacked (" + err.Error() + ")"
}

// Unpack returns what a block held before the server compressed it. It reports false of a block
// that is not compressed, or cannot be read as it is.
func Unpack(raw []byte) ([]byte, bool) {
	pieces, compressed, cause := unpack(raw)
	if !compressed || cause != "" {
		return nil, false
	}
	return pieces[0].data, true
}

// HeadSize is how much of a block [Compressed] looks at.
const HeadSize = 32

// streamHead begins a stream of S2.
const streamHead = "\xff\x06\x00\x00S2sTwO"

// Compressed reports whether a block is compressed, by how it begins.
func Compressed(raw []byte) bool {
	head, _ := packed(raw)
	return head != 0 || bytes.Contains(raw[:min(len(raw), HeadSize)], []byte(streamHead))
}

// maxContent bounds what is believed of the size that a block claims.
const maxContent = 64 << 20

// packed returns the length of the head of a compressed block, and how much it
// says that it holds: 0 if it is not compressed, -1 if the head is cut off.
func packed(raw []byte) (head int, size uint64) {
	if len(raw) < 5 || string(raw[:3]) != "cmp" || raw[3] != 1 {
		return 0, 0
	}
	size, n := binary.Uvarint(raw[4:])
	if n <= 0 {
		return -1, 0
	}
	return 4 + n, size
}

// salvage unpacks every chunk by itself, and of a damaged one what can be: its
// records have checksums of their own.
func salvage(body, sum []byte) []piece {
	var pieces []piece
	at := piece{}
	total := 0
	gap := func() {
		pieces = append(pieces, at)
		at = piece{offset: total, lost: true}
	}
	add := func(b []byte) {
		at.data = append(at.data, b...)
		total += len(b)
	}
	for len(body) >= chunkHead {
		kind, n := body[0], int(body[1])|int(body[2])<<8|int(body[3])<<16
		rest := body[chunkHead:]
		if n > len(rest) || !known(kind) {
			gap()
			body = body[resync(body):]
			continue
		}
		content := rest[:n]
		body = rest[n:]
		switch {
		case kind == chunkCompressed && n > chunkSum:
			b, whole := block(content[chunkSum:])
			add(b)
			if !whole {
				gap()
			}
		case kind == chunkPlain && n > chunkSum:
			add(content[chunkSum:])
		}
	}
	add(sum)
	return append(pieces, at)
}

// known reports whether chunks of a kind are written or may be skipped.
func known(kind byte) bool { return kind == chunkCompressed || kind == chunkPlain || kind >= 0x80 }

// block unpacks a chunk without looking at its checksum. Of one that is damaged it
// returns what comes before.
func block(content []byte) ([]byte, bool) {
	size, err := s2.DecodedLen(content)
	if err != nil || size > maxChunk {
		return nil, false
	}
	out := make([]byte, size)
	got, err := s2.Decode(out, content)
	if err != nil {
		return out, false // what was not unpacked is zero, and holds no records
	}
	return got, true
}

// resync returns how far the next chunk may be whose content can be unpacked.
func resync(b []byte) int {
	for i := 1; i+chunkHead+chunkSum < len(b); i++ {
		if b[i] != chunkCompressed {
			continue
		}
		n := int(b[i+1]) | int(b[i+2])<<8 | int(b[i+3])<<16
		if n <= chunkSum || i+chunkHead+n > len(b) {
			continue
		}
		if size, err := s2.DecodedLen(b[i+chunkHead+chunkSum:]); err != nil || size == 0 || size > maxChunk {
			continue
		}
		if _, whole := block(b[i+chunkHead+chunkSum : i+chunkHead+n]); whole {
			return i
		}
	}
	return len(b)
}
