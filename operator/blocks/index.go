package blocks

import (
	"bytes"
	"encoding/binary"
)

const (
	indexMagic   = 11
	indexHead    = 2
	indexVersion = 4 // the newest that is known; what is read here is the same in all
)

// IndexLast returns the last sequence that index.db knows, which the server writes
// every now and then and when it stops. ok is false if it cannot be read.
func IndexLast(stream string, raw []byte) (last uint64, ok bool) {
	if len(raw) < indexHead+hashSize {
		return 0, false
	}
	body, sum := raw[:len(raw)-hashSize], raw[len(raw)-hashSize:]
	if !bytes.Equal(Sum(stream, body), sum) || body[0] != indexMagic || body[1] > indexVersion {
		return 0, false
	}
	at := body[indexHead:]
	for i := range 5 { // messages, bytes, first sequence, its time, last sequence
		if i == 3 {
			_, n := binary.Varint(at)
			at = at[max(n, 0):]
			continue
		}
		v, n := binary.Uvarint(at)
		if n <= 0 {
			return 0, false
		}
		last, at = v, at[n:]
	}
	return last, true
}
