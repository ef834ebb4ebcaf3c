package eventlog

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/skein-threads/skein/eventlog/streams"
	"github.com/skein-threads/skein/events"
)

// An object of archived commits is an S2 stream of:
//
//	archiveMagic, tenant, thread
//	for each commit: sequence (uvarint), when the log stored it (varint, nanoseconds
//	since the epoch), the headers Skein-Version, Skein-Chain and Content-Type, body
//
// A text is its length (uvarint) and its bytes, exactly as they were stored. The
// digest of a record is the SHA-256 of the stream's content. It depends on the
// commits alone.
const archiveMagic = "skein archive 1\n"

// frameBytes bounds a text in an object: more than any server takes as a message.
const frameBytes = 64 << 20

func appendText[T string | []byte](b []byte, text T) []byte {
	return append(binary.AppendUvarint(b, uint64(len(text))), text...)
}

// archiveHead returns what an object begins with.
func archiveHead(tenant, thread string) []byte {
	return appendText(appendText([]byte(archiveMagic), tenant), thread)
}

// appendFrame appends a commit as the log returned it.
func appendFrame(b []byte, m streams.Message) ([]byte, error) {
	at, err := time.Parse(time.RFC3339Nano, m.Header.Get(nats.JSTimeStamp))
	if err != nil {
		return b, fmt.Errorf("message %d of the log does not say when it was stored: %w", m.Seq, err)
	}
	b = binary.AppendVarint(binary.AppendUvarint(b, m.Seq), at.UnixNano())
	for _, name := range frameHeaders() {
		b = appendText(b, m.Header.Get(name))
	}
	return appendText(b, m.Data), nil
}

// frameHeaders lists the headers of a commit that are kept.
func frameHeaders() [3]string {
	return [3]string{events.HeaderVersion, events.HeaderChain, events.HeaderType}
}

// readHead reads what an object begins with.
func readHead(r *bufio.Reader, tenant, thread string) error {
	head := archiveHead(tenant, thread)
	got := make([]byte, len(head))
	if _, err := io.ReadFull(r, got); err != nil {
		return unexpected(err)
	}
	if string(got) != string(head) {
		return errors.New("it is no archive of this thread")
	}
	return nil
}

// readFrame reads the next commit. io.EOF if there is none.
func readFrame(r *bufio.Reader, subject string) (streams.Message, error) {
	m := streams.Message{Subject: subject, Archived: true}
	var err error
	if m.Seq, err = binary.ReadUvarint(r); err != nil {
		return m, err // io.EOF only if nothing was read
	}
	at, err := binary.ReadVarint(r)
	if err != nil {
		return m, unexpected(err)
	}
	m.Header = nats.Header{nats.JSTimeStamp: {time.Unix(0, at).UTC().Format(time.RFC3339Nano)}}
	for _, name := range frameHeaders() {
		text, err := readText(r)
		if err != nil {
			return m, err
		}
		m.Header[name] = []string{string(text)}
	}
	m.Data, err = readText(r)
	return m, err
}

func readText(r *bufio.Reader) ([]byte, error) {
	n, err := binary.ReadUvarint(r)
	if err != nil {
		return nil, unexpected(err)
	}
	if n > frameBytes {
		return nil, fmt.Errorf("it has a text of %d bytes", n)
	}
	text := make([]byte, n)
	if _, err := io.ReadFull(r, text); err != nil {
		return nil, unexpected(err)
	}
	return text, nil
}

// unexpected turns the end of the input within a frame into io.ErrUnexpectedEOF.
func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
