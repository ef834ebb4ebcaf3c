package buckets

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/nats-io/nats.go"

	"github.com/skein-threads/skein/eventlog/streams"
	"github.com/skein-threads/skein/projections/documents"
)

// A document that is too large for one message is stored in pieces. Each of its large
// values has a key of its own, {tenant}.{thread}./.{digest}, and the document's key holds
// a stub that names them in order. A value that did not change is not written again when
// the document changes. Pieces are written before the stub, so a reader of the stub finds
// them; they are removed with the thread, like its documents.

// KeysAtOnce is how many keys one read of a bucket may name.
const KeysAtOnce = 1024

// Bounds of documents.
const (
	LargeDocument = 1 << 20   // a document of this size or more is stored in pieces
	largeValue    = 16 << 10  // a value of this size or more is a piece of its own
	largeInline   = 256 << 10 // the most text that a stub holds itself
	largePiece    = 512 << 10
	// LargestDocument is the size of the largest document that a read model stores. Instead of a
	// larger one, only a stub that says so is stored.
	LargestDocument = 64 << 20
)

// headerLarge marks a stub.
const headerLarge = "Skein-Large"

// Stub is the value under the key of a document that is stored in pieces.
type Stub struct {
	Seq      uint64     `json:"seq"` // of the document
	Bytes    int        `json:"bytes"`
	Unstored bool       `json:"unstored,omitzero"` // the document is too large: there are no pieces
	Parts    []StubPart `json:"parts,omitempty"`   // the parts of the document, in order
	pieces   []Piece    // the pieces that the parts name
}

// Pieces returns the pieces that the stub names. They must be written before it.
func (s *Stub) Pieces() []Piece { return s.pieces }

// StubPart is a text of the document, or names a piece of it.
type StubPart struct {
	Text   string `json:"text,omitzero"`
	Digest string `json:"digest,omitzero"` // SHA-256, in hex
}

// Piece is a large value of a document, or a part of one.
type Piece struct {
	Digest string // SHA-256, in hex
	Data   []byte
}

// inPieces reports whether documents of a read model may be stored in pieces: documents with
// content from reactors, tools and callers.
func inPieces(k documents.Kind) bool {
	switch k {
	case documents.Contexts, documents.Items, documents.Executions, documents.Steps, documents.Parts, documents.TraceRuns, documents.TraceSpans, documents.Index:
		return true
	}
	return false
}

// StubOf returns the stub of an encoded document, or nil if the document fits in a message
// of most bytes.
func StubOf(k documents.Kind, seq uint64, raw []byte, most int64) *Stub {
	most -= 1024 // for headers
	switch size := int64(len(raw)); {
	case size <= most && (size <= LargeDocument || !inPieces(k)):
		return nil
	case !inPieces(k), size > LargestDocument:
		return &Stub{Seq: seq, Bytes: len(raw), Unstored: true}
	}
	s := &Stub{Seq: seq, Bytes: len(raw)}
	piece := int(min(largePiece, most/2))
	if s.cutValues(raw, piece); s.inline() > int(min(largeInline, most/4)) { // many small values
		s.Parts, s.pieces = nil, nil
		s.cut(raw, piece)
	}
	return s
}

func (s *Stub) inline() (n int) {
	for _, p := range s.Parts {
		n += len(p.Text) + len(p.Digest) + 32
	}
	return n
}

// cutValues turns each large value of a JSON value into a piece, or several.
func (s *Stub) cutValues(raw []byte, piece int) {
	done := 0
	for _, child := range children(raw) {
		if child.to-child.from < largeValue {
			continue
		}
		s.text(raw[done:child.from])
		value := raw[child.from:child.to]
		switch kind := jsontext.Value(value).Kind(); {
		case len(value) > piece && (kind == '{' || kind == '['):
			s.cutValues(value, piece)
		default:
			s.cut(value, piece)
		}
		done = child.to
	}
	s.text(raw[done:])
}

// text adds text to the last part, or as a new part.
func (s *Stub) text(raw []byte) {
	if len(raw) == 0 {
		return
	}
	if n := len(s.Parts); n > 0 && s.Parts[n-1].Digest == "" {
		s.Parts[n-1].Text += string(raw)
		return
	}
	s.Parts = append(s.Parts, StubPart{Text: string(raw)})
}

// cut adds bytes as pieces.
func (s *Stub) cut(raw []byte, piece int) {
	for len(raw) > 0 {
		data := raw[:min(piece, len(raw))]
		raw = raw[len(data):]
		sum := sha256.Sum256(data)
		digest := hex.EncodeToString(sum[:])
		s.Parts = append(s.Parts, StubPart{Digest: digest})
		s.pieces = append(s.pieces, Piece{digest, data})
	}
}

type span struct{ from, to int }

// children returns the positions of the values in an object or a list.
func children(raw []byte) []span {
	dec := jsontext.NewDecoder(bytes.NewReader(raw))
	open, err := dec.ReadToken()
	if err != nil || open.Kind() != '{' && open.Kind() != '[' {
		return nil
	}
	object := open.Kind() == '{'
	var out []span
	for {
		if kind := dec.PeekKind(); kind == '}' || kind == ']' || kind == 0 {
			return out
		}
		if object {
			if _, err := dec.ReadToken(); err != nil {
				return out
			}
		}
		value, err := dec.ReadValue()
		if err != nil {
			return out
		}
		to := int(dec.InputOffset())
		out = append(out, span{to - len(value), to})
	}
}

// Encode returns the stub as it is stored.
func (s *Stub) Encode() ([]byte, error) { return json.Marshal(s, json.Deterministic(true)) }

// Header returns the headers that mark a message as a stub.
func (*Stub) Header() nats.Header { return nats.Header{headerLarge: {"1"}} }

// keys returns the keys of the pieces, without duplicates.
func (s *Stub) keys(thread string) []string {
	seen := map[string]bool{}
	var out []string
	for _, p := range s.Parts {
		if p.Digest != "" && !seen[p.Digest] {
			seen[p.Digest] = true
			out = append(out, documents.PieceKey(thread, p.Digest))
		}
	}
	return out
}

// join assembles the document from its parts.
func (s *Stub) join(thread string, pieces map[string][]byte) ([]byte, error) {
	if s.Unstored || s.Bytes < 0 || s.Bytes > LargestDocument {
		return nil, &UnstoredError{Seq: s.Seq, Bytes: s.Bytes}
	}
	out := make([]byte, 0, s.Bytes)
	for _, p := range s.Parts {
		if p.Digest == "" {
			out = append(out, p.Text...)
			continue
		}
		data, ok := pieces[documents.PieceKey(thread, p.Digest)]
		if sum := sha256.Sum256(data); !ok || hex.EncodeToString(sum[:]) != p.Digest {
			return nil, &MissingPieceError{Digest: p.Digest}
		}
		out = append(out, data...)
	}
	if len(out) != s.Bytes {
		return nil, fmt.Errorf("joining the pieces of a document: they have %d bytes, not %d; run skein replay", len(out), s.Bytes)
	}
	return out, nil
}

// UnstoredError says that a document is too large to be stored.
type UnstoredError struct {
	Seq   uint64 // of the commit with which it became too large
	Bytes int
}

func (e *UnstoredError) Error() string {
	return fmt.Sprintf("the document has %d bytes since commit %d; at most %d are kept in a read model: look at the thread's events instead (event.list)",
		e.Bytes, e.Seq, LargestDocument)
}

// MissingPieceError says that a bucket does not have a piece that a stub names.
type MissingPieceError struct{ Digest string }

func (e *MissingPieceError) Error() string {
	return fmt.Sprintf("piece %.16s of a document is not there; run skein replay", e.Digest)
}

// isStub reports whether a message of a bucket is the stub of a document in pieces.
func isStub(m streams.Message) bool { return m.Header.Get(headerLarge) != "" }

// Whole returns the bytes of the document at a place. If the message under its key is a stub,
// Whole assembles the document from the pieces, which it gets from read.
func Whole(ctx context.Context, p documents.Place, m streams.Message, read func(ctx context.Context, keys ...string) ([]streams.Message, error)) ([]byte, error) {
	if !isStub(m) {
		return m.Data, nil
	}
	var s Stub
	if err := json.Unmarshal(m.Data, &s); err != nil {
		return nil, fmt.Errorf("reading the stub of a document: %w", err)
	}
	pieces := map[string][]byte{}
	for keys := s.keys(p.Thread); len(keys) > 0 && !s.Unstored; {
		part := keys[:min(len(keys), KeysAtOnce-1)]
		keys = keys[len(part):]
		got, err := read(ctx, part...)
		if err != nil {
			return nil, fmt.Errorf("reading the pieces of a document: %w", err)
		}
		for _, piece := range got {
			pieces[piece.Subject] = piece.Data
		}
	}
	return s.join(p.Thread, pieces)
}
