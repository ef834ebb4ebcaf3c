package projections

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

// A document that is too large for one message lies in its bucket in pieces: its
// large values each under their digest, in {tenant}.{thread}./.{digest}, and under its
// own key a stub that names them in order. A value that stays as it is stays where it
// is when the document changes. The pieces are before the stub in the stream, so
// whoever reads a stub finds them, and they go with the thread as its documents do.

// Bounds of documents.
const (
	largeDocument = 1 << 20   // from this size on a document is in pieces
	largeValue    = 16 << 10  // a value of a document that is a piece of its own
	largeInline   = 256 << 10 // what a stub holds itself at most
	largePiece    = 512 << 10
	// largestDocument is what a read model shows of one document. What is larger is
	// not shown at all, and its stub says so.
	largestDocument = 64 << 20
)

// headerLarge marks a stub.
const headerLarge = "Skein-Large"

// stub stands for a document.
type stub struct {
	Seq      uint64      `json:"seq"` // as the document has it
	Bytes    int         `json:"bytes"`
	Unstored bool        `json:"unstored,omitzero"` // it is too large: there are no pieces
	Parts    []stubPart  `json:"parts,omitempty"`   // joined they are the document
	pieces   []largeData // what the parts name
}

// stubPart is text of the document, or a piece of it.
type stubPart struct {
	Text   string `json:"text,omitzero"`
	Digest string `json:"digest,omitzero"` // SHA-256, in hex
}

type largeData struct {
	digest string
	data   []byte
}

// inPieces reports whether documents of a read model may lie in pieces: those that
// hold what reactors, tools and callers wrote.
func inPieces(k documents.Kind) bool {
	switch k {
	case documents.Contexts, documents.Items, documents.Executions, documents.Steps, documents.Parts, documents.TraceRuns, documents.TraceSpans, documents.Index:
		return true
	}
	return false
}

// stubOf gives the stub for a document as it is encoded, nil if it fits in a
// message of at most so many bytes.
func stubOf(k documents.Kind, seq uint64, raw []byte, most int64) *stub {
	most -= 1024 // for headers
	switch size := int64(len(raw)); {
	case size <= most && (size <= largeDocument || !inPieces(k)):
		return nil
	case !inPieces(k), size > largestDocument:
		return &stub{Seq: seq, Bytes: len(raw), Unstored: true}
	}
	s := &stub{Seq: seq, Bytes: len(raw)}
	piece := int(min(largePiece, most/2))
	if s.cutValues(raw, piece); s.inline() > int(min(largeInline, most/4)) { // many small values
		s.Parts, s.pieces = nil, nil
		s.cut(raw, piece)
	}
	return s
}

func (s *stub) inline() (n int) {
	for _, p := range s.Parts {
		n += len(p.Text) + len(p.Digest) + 32
	}
	return n
}

// cutValues makes each large value of a JSON value a piece, or several.
func (s *stub) cutValues(raw []byte, piece int) {
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

// text adds text to the last part, or as one of its own.
func (s *stub) text(raw []byte) {
	if len(raw) == 0 {
		return
	}
	if n := len(s.Parts); n > 0 && s.Parts[n-1].Digest == "" {
		s.Parts[n-1].Text += string(raw)
		return
	}
	s.Parts = append(s.Parts, stubPart{Text: string(raw)})
}

// cut makes bytes pieces.
func (s *stub) cut(raw []byte, piece int) {
	for len(raw) > 0 {
		data := raw[:min(piece, len(raw))]
		raw = raw[len(data):]
		sum := sha256.Sum256(data)
		digest := hex.EncodeToString(sum[:])
		s.Parts = append(s.Parts, stubPart{Digest: digest})
		s.pieces = append(s.pieces, largeData{digest, data})
	}
}

type span struct{ from, to int }

// children gives where the values of an object or a list stand in it.
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

func (s *stub) encode() ([]byte, error) { return json.Marshal(s, json.Deterministic(true)) }

// header marks the message of a stub.
func (*stub) header() nats.Header { return nats.Header{headerLarge: {"1"}} }

// keys gives the keys of the pieces, each once.
func (s *stub) keys(thread string) []string {
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

// join makes the document of its parts.
func (s *stub) join(thread string, pieces map[string][]byte) ([]byte, error) {
	if s.Unstored || s.Bytes < 0 || s.Bytes > largestDocument {
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
			return nil, &missingPieceError{digest: p.Digest}
		}
		out = append(out, data...)
	}
	if len(out) != s.Bytes {
		return nil, fmt.Errorf("the pieces of a document have %d bytes, not %d", len(out), s.Bytes)
	}
	return out, nil
}

// UnstoredError says that a document is too large to be shown.
type UnstoredError struct {
	Seq   uint64 // of the commit that made it so
	Bytes int
}

func (e *UnstoredError) Error() string {
	return fmt.Sprintf("the document has %d bytes since commit %d; at most %d are kept in a read model: look at the thread's events instead (event.list)",
		e.Bytes, e.Seq, largestDocument)
}

type missingPieceError struct{ digest string }

func (e *missingPieceError) Error() string {
	return fmt.Sprintf("piece %.16s of a document is not there; run skein replay", e.digest)
}

// isStub reports whether a message of a bucket stands for a document in pieces.
func isStub(m streams.Message) bool { return m.Header.Get(headerLarge) != "" }

// whole gives a document's own bytes, for the place that a message has: those of
// the message, or what its stub names, which read reads.
func whole(ctx context.Context, p documents.Place, m streams.Message, read func(ctx context.Context, keys ...string) ([]streams.Message, error)) ([]byte, error) {
	if !isStub(m) {
		return m.Data, nil
	}
	var s stub
	if err := json.Unmarshal(m.Data, &s); err != nil {
		return nil, fmt.Errorf("a stub of a document cannot be read: %w", err)
	}
	pieces := map[string][]byte{}
	for keys := s.keys(p.Thread); len(keys) > 0 && !s.Unstored; {
		part := keys[:min(len(keys), keysAtOnce-1)]
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
