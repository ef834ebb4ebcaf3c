package schema

import (
	"bytes"

	"github.com/go-json-experiment/json/jsontext"
)

// scanner walks over JSON that is known to be valid, without validating it again. On bytes
// that are not JSON its results are undefined, but it neither panics nor loops.
type scanner struct {
	raw []byte
	at  int
}

// kind returns the first byte of the next value, 0 at the end.
func (s *scanner) kind() byte {
	for s.at < len(s.raw) {
		switch c := s.raw[s.at]; c {
		case ' ', '\t', '\n', '\r', ':':
			s.at++
		default:
			return c
		}
	}
	return 0
}

// begin steps into an object or a list.
func (s *scanner) begin() { s.at++ }

// next reports whether another member or element precedes end. It steps over the separator or, if
// there is none, over end.
func (s *scanner) next(end byte) bool {
	c := s.kind()
	if c == ',' {
		s.at++
		c = s.kind()
	}
	if c == end {
		s.at++
		return false
	}
	return c != 0
}

// value steps over the next value and returns its bytes, without a copy.
func (s *scanner) value() []byte {
	c := s.kind()
	start := s.at
	switch c {
	case 0:
		return nil
	case '"':
		s.text()
	case '{', '[':
		s.skipNested()
	default:
		s.at++
		for s.at < len(s.raw) && !ends(s.raw[s.at]) {
			s.at++
		}
	}
	return s.raw[start:s.at:s.at]
}

// ends reports whether c ends a number, true, false or null.
func ends(c byte) bool {
	switch c {
	case ',', '}', ']', ':', ' ', '\t', '\n', '\r':
		return true
	}
	return false
}

// shortString is how far the end of a string is searched byte by byte. Names and ids are shorter;
// for longer strings bytes.IndexByte is faster.
const shortString = 24

// text steps over a string, and reports whether it contains an escape.
func (s *scanner) text() (escaped bool) {
	s.at++
	for i := s.at; i < len(s.raw) && i < s.at+shortString; i++ {
		switch s.raw[i] {
		case '"':
			s.at = i + 1
			return false
		case '\\':
			return s.longText()
		}
	}
	return s.longText()
}

func (s *scanner) longText() (escaped bool) {
	for {
		n := bytes.IndexByte(s.raw[s.at:], '"')
		if n < 0 {
			s.at = len(s.raw)
			return escaped
		}
		inside := s.raw[s.at : s.at+n]
		s.at += n + 1
		back := 0
		for back < len(inside) && inside[len(inside)-1-back] == '\\' {
			back++
		}
		escaped = escaped || bytes.IndexByte(inside, '\\') >= 0
		if back%2 == 0 {
			return escaped
		}
		escaped = true
	}
}

// readString steps over a string and returns its value. It uses buf if the string has escapes.
func (s *scanner) readString(buf []byte) []byte {
	if s.kind() != '"' {
		s.value()
		return nil
	}
	start := s.at
	escaped := s.text()
	quoted := s.raw[start:s.at]
	switch {
	case len(quoted) < 2:
		return nil
	case !escaped:
		return quoted[1 : len(quoted)-1]
	}
	out, _ := jsontext.AppendUnquote(buf[:0], quoted) // the document is valid
	return out
}

// skipNested steps over an object or a list.
func (s *scanner) skipNested() {
	for depth := 0; s.at < len(s.raw); {
		switch s.raw[s.at] {
		case '"':
			s.text()
			continue
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		}
		s.at++
		if depth == 0 {
			return
		}
	}
}

// nestsDeeper reports whether objects and lists are nested more than most deep.
func nestsDeeper(raw []byte, most int) bool {
	if bytes.Count(raw, []byte{'{'})+bytes.Count(raw, []byte{'['}) <= most {
		return false // the usual case: there are too few brackets
	}
	s := scanner{raw: raw}
	for depth := 0; s.at < len(raw); {
		switch raw[s.at] {
		case '"':
			s.text()
			continue
		case '{', '[':
			if depth++; depth > most {
				return true
			}
		case '}', ']':
			depth--
		}
		s.at++
	}
	return false
}
