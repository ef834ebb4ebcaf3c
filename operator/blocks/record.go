package blocks

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash"

	"github.com/minio/highwayhash"
)

// Sizes and marks of a record, as nats-server's filestore.go has them.
const (
	headSize   = 22 // length (4), sequence (8), time (8), length of the subject (2)
	hashSize   = 8
	maxRecord  = 32 << 20
	headersBit = 1 << 31 // of the length: the record has headers
	erasedBit  = 1 << 63 // of the sequence: the message was overwritten
	tombBit    = 1 << 62 // of the sequence: a message of another block was removed
)

// Kind says what a record is.
type Kind int

// The kinds of records.
const (
	Message   Kind = iota
	Erased         // a message that was overwritten
	Tombstone      // says that the message with this sequence was removed
)

// Record is one record of a block. Raw is valid only while it is visited.
type Record struct {
	Kind    Kind
	Seq     uint64
	Time    int64 // nanoseconds since 1970
	Subject string
	Raw     []byte // as it is stored, checksum included

	headers bool
}

// Body returns the headers and the data of a message.
func (r Record) Body() (headers, data []byte) {
	rest := r.Raw[headSize+len(r.Subject) : len(r.Raw)-hashSize]
	if !r.headers {
		return nil, rest
	}
	n := int(binary.LittleEndian.Uint32(rest))
	rest = rest[4:]
	n = min(n, len(rest))
	return rest[:n], rest[n:]
}

// divided reports whether a message is divided where its headers end. The server's checksum does not
// cover their length, and a client may publish headers of any form, so the answer means
// something only where there is damage.
func (r Record) divided() bool {
	headers, _ := r.Body()
	return !r.headers || r.Kind != Message || bytes.HasPrefix(headers, []byte("NATS/1.0")) && bytes.HasSuffix(headers, []byte("\r\n\r\n"))
}

// NewMessage returns a message that is stored nowhere yet; see [Reader.Move].
func NewMessage(seq uint64, at int64, subject string, headers, data []byte) Record {
	le := binary.LittleEndian
	length := uint32(headSize + len(subject) + len(data) + hashSize)
	if len(headers) > 0 {
		length = (length + 4 + uint32(len(headers))) | headersBit
	}
	b := le.AppendUint32(nil, length)
	b = le.AppendUint64(b, seq)
	b = le.AppendUint64(b, uint64(at))
	b = le.AppendUint16(b, uint16(len(subject)))
	b = append(b, subject...)
	if len(headers) > 0 {
		b = append(le.AppendUint32(b, uint32(len(headers))), headers...)
	}
	b = append(append(b, data...), make([]byte, hashSize)...)
	return Record{Kind: Message, Seq: seq, Time: at, Subject: subject, Raw: b, headers: len(headers) > 0}
}

// Reader reads one block: N.blk of a stream. It is used by one goroutine at a time.
type Reader struct{ hash hash.Hash64 }

// NewReader returns a reader of the stream's block with that number: it is part of
// the key of its checksums.
func NewReader(stream string, index uint32) *Reader {
	return &Reader{hash: keyed(fmt.Sprintf("%s-%d", stream, index))}
}

func keyed(name string) hash.Hash64 {
	key := sha256.Sum256([]byte(name))
	h, err := highwayhash.New64(key[:])
	if err != nil {
		panic(err) // the key has the right length
	}
	return h
}

// fault is why there is no record at a place.
type fault string

const (
	overrun  fault = "the record goes past the end of the block"
	badHead  fault = "the head of a record is not one"
	checksum fault = "the checksum of a record is wrong"
	division fault = "the length of a record's headers is wrong"
)

// record reads the record at the beginning of b.
func (r *Reader) record(b []byte) (Record, fault) {
	if len(b) < headSize {
		return Record{}, overrun
	}
	le := binary.LittleEndian
	length, subject := le.Uint32(b), int(le.Uint16(b[20:]))
	headers := length&headersBit != 0
	length &^= headersBit
	shares := headSize + subject + hashSize
	if headers {
		shares += 4
	}
	switch {
	case int64(length) < int64(shares) || length > maxRecord:
		return Record{}, badHead
	case int64(length) > int64(len(b)):
		return Record{}, overrun
	}
	b = b[:length]
	if headers && int64(le.Uint32(b[headSize+subject:])) > int64(length)-int64(shares) {
		return Record{}, division
	}
	r.hash.Reset()
	r.hash.Write(b[4:20])
	r.hash.Write(b[headSize : headSize+subject])
	from := headSize + subject
	if headers {
		from += 4
	}
	r.hash.Write(b[from : length-hashSize])
	var sum [hashSize]byte
	if !bytes.Equal(r.hash.Sum(sum[:0]), b[length-hashSize:]) {
		return Record{}, checksum
	}
	out := Record{Seq: le.Uint64(b[4:]), Time: int64(le.Uint64(b[12:])), Raw: b, headers: headers}
	switch {
	case out.Seq&tombBit != 0:
		out.Kind = Tombstone
	case out.Seq&erasedBit != 0 || out.Seq == 0:
		out.Kind = Erased
	default:
		out.Subject = string(b[headSize : headSize+subject])
	}
	out.Seq &^= erasedBit | tombBit
	return out, ""
}

// Move appends a record of another block as it must be stored in this one.
func (r *Reader) Move(to []byte, record Record) []byte {
	from := headSize + len(record.Subject)
	if record.headers {
		from += 4
	}
	raw := record.Raw[:len(record.Raw)-hashSize]
	r.hash.Reset()
	r.hash.Write(raw[4:20])
	r.hash.Write(raw[headSize : headSize+len(record.Subject)])
	r.hash.Write(raw[from:])
	return r.hash.Sum(append(to, raw...))
}

// Tombstone appends a record that says that the message with a sequence was removed. If
// nothing follows it, the server treats it as the end of the stream.
func (r *Reader) Tombstone(to []byte, seq uint64, at int64) []byte {
	b := binary.LittleEndian.AppendUint32(nil, headSize+hashSize)
	b = binary.LittleEndian.AppendUint64(b, seq|tombBit)
	b = binary.LittleEndian.AppendUint64(b, uint64(at))
	b = append(b, 0, 0)
	r.hash.Reset()
	r.hash.Write(b[4:20])
	return r.hash.Sum(append(to, b...))
}

// Sum returns the checksum of a stream's other files: behind index.db, and, written
// in hexadecimal digits, in meta.sum for meta.inf.
func Sum(stream string, b []byte) []byte {
	h := keyed(stream)
	h.Write(b) // never fails
	return h.Sum(nil)
}
