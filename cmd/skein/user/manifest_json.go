package user

import (
	"bytes"
	"errors"
	"io"
	"sort"

	"github.com/go-json-experiment/json/jsontext"
)

// readJSON reads JSON values one after another, and lists of them.
func readJSON(name string, raw []byte) ([]document, error) {
	r := &jsonReader{raw: raw, dec: jsontext.NewDecoder(bytes.NewBuffer(raw))}
	for i, c := range raw {
		if c == '\n' {
			r.ends = append(r.ends, i)
		}
	}
	for {
		if r.dec.PeekKind() == '[' {
			if _, err := r.dec.ReadToken(); err != nil {
				return nil, r.wrong(name, err)
			}
			for r.dec.PeekKind() != ']' {
				if err := r.document(); err != nil {
					return nil, r.wrong(name, err)
				}
			}
			if _, err := r.dec.ReadToken(); err != nil {
				return nil, r.wrong(name, err)
			}
			continue
		}
		switch err := r.document(); {
		case errors.Is(err, io.EOF):
			return r.list, nil
		case err != nil:
			return nil, r.wrong(name, err)
		}
	}
}

type jsonReader struct {
	raw  []byte
	ends []int // of lines
	dec  *jsontext.Decoder
	list []document
}

func (r *jsonReader) wrong(name string, err error) error {
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	offset := r.dec.InputOffset()
	var syntax *jsontext.SyntacticError
	if errors.As(err, &syntax) {
		offset = syntax.ByteOffset
		err = syntax.Err
	}
	return wrong(name, r.lineOf(offset), "not JSON: %v", err)
}

func (r *jsonReader) lineOf(offset int64) int {
	return 1 + sort.SearchInts(r.ends, int(offset))
}

// document reads one value, and the lines of its members.
func (r *jsonReader) document() error {
	kind := r.dec.PeekKind() // steps over the space before it
	if kind == 0 {
		_, err := r.dec.ReadToken()
		return err
	}
	d := document{lines: map[string]int{}}
	depth := r.dec.StackDepth()
	base := len(r.dec.StackPointer())
	if depth > 0 { // in a list, of which the pointer is not known yet
		base = -1
	}
	start := int64(-1)
	for {
		before := r.dec.InputOffset()
		if _, err := r.dec.ReadToken(); err != nil {
			return err
		}
		at := before + int64(len(space(r.raw[before:])))
		if start < 0 {
			start = at
			if base < 0 {
				base = len(r.dec.StackPointer())
			}
		}
		pointer := string(r.dec.StackPointer())
		if _, known := d.lines[pointer[min(base, len(pointer)):]]; !known && len(pointer) >= base {
			d.lines[pointer[base:]] = r.lineOf(at)
		}
		if r.dec.StackDepth() == depth {
			d.json = r.raw[start:r.dec.InputOffset()]
			r.list = append(r.list, d)
			return nil
		}
	}
}

// space returns the whitespace and separators before a token.
func space(raw []byte) []byte {
	n := 0
	for n < len(raw) {
		switch raw[n] {
		case ' ', '\t', '\r', '\n', ',', ':':
			n++
			continue
		}
		break
	}
	return raw[:n]
}
