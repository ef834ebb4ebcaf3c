package events

import (
	"math"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// scanner decodes events in the one layout that Event.Append writes: the attributes in that
// order, without spaces between them or escapes in them. It does not judge. Whatever it does
// not accept, valid or not, is left to decodeEvent; what it accepts, decodeEvent decodes to
// the same result.
type scanner struct {
	b  []byte
	at int

	// Within a commit most strings are as in the last event: one comparison finds them, and
	// they share its memory. None of these may need an escape, or other bytes would match it.
	last   *Event
	source string
	clock  string // last.Time as it was written
}

// maxScanDepth is the nesting from which the general decoder, which has its own limit, takes
// over.
const maxScanDepth = 1000

// event decodes an event into e, which must be zero. If it returns false, e is undefined.
func (s *scanner) event(e *Event) bool {
	from := s.at
	var id, source, name, at, schema []byte
	ok := s.word(`{"specversion":"1.0","id":"`) && s.quoted(&id) && len(id) > 0 &&
		s.word(`,"source":"`) && (s.same(s.source, &source) || s.quoted(&source)) &&
		s.word(`,"type":"`) && s.quoted(&name) && len(name) > 0 &&
		s.word(`,"time":"`) && (s.same(s.clock, &at) || s.quoted(&at)) &&
		s.option(`,"subject":"`, &e.Subject, s.last.Subject) &&
		s.word(`,"datacontenttype":"application/json"`)
	if !ok {
		return false
	}
	row := rows[Type(name)]
	if s.word(`,"dataschema":"`) && (row == nil || !s.same(row.schema, &schema)) && !s.quoted(&schema) {
		return false
	}
	var index int64
	ok = s.text(`,"tenant":"`, &e.Tenant, s.last.Tenant) && s.text(`,"threadid":"`, &e.ThreadID, s.last.ThreadID) &&
		s.number(`,"threadversion":`, &e.Version) && e.Version >= 1 &&
		s.option(`,"commandid":"`, &e.CommandID, s.last.CommandID) &&
		s.option(`,"commanddigest":"`, &e.CommandDigest, "") &&
		(!s.peek(`,"commandindex":`) || s.number(`,"commandindex":`, &index) && index <= MaxCommands) &&
		s.option(`,"correlationid":"`, &e.Correlation, s.last.Correlation) &&
		s.option(`,"causationid":"`, &e.Causation, s.last.Causation) &&
		s.option(`,"actor":"`, &e.Actor, s.last.Actor) &&
		s.option(`,"traceparent":"`, &e.TraceParent, s.last.TraceParent) &&
		s.word(dataName)
	data := s.at
	if !ok || !s.object() || !s.word("}") || !sourceFits(source, e.Tenant, e.ThreadID) {
		return false
	}
	e.Time = s.last.Time
	if s.clock == "" || string(at) != s.clock {
		var bad badTime
		if e.Time, bad = parseTime(at); bad != 0 {
			return false
		}
	}
	if !e.setData(row, name, schema, s.b[data:s.at-1:s.at-1]) {
		return false
	}
	e.ID, e.CommandIndex, e.raw = string(id), int(index), s.b[from:s.at:s.at]
	return true
}

// advance makes e the last event, which must stay in memory.
func (s *scanner) advance(e *Event) {
	if e.Time != s.last.Time || s.clock == "" {
		s.clock = e.Time.String()
	}
	s.last = e
}

// setData decodes the data, of which only brackets and quotes are known to be balanced.
func (e *Event) setData(row *Row, name, schema []byte, data JSON) bool {
	var err error
	if row != nil && string(schema) == row.schema {
		e.Type, e.schema = row.Type, row.schema
		e.Data, err = row.decode(data)
		return err == nil
	}
	if !jsontext.Value(data).IsValid() {
		return false
	}
	e.Type, e.schema = Type(name), string(schema)
	e.Data, err = decodeData(e.Type, e.schema, data)
	return err == nil
}

// sourceFits reports whether source is /{tenant}/threads/{thread}.
func sourceFits(source []byte, tenant, thread string) bool {
	path := 1 + len(tenant)
	return len(source) == path+len(threadsPath)+len(thread) && source[0] == '/' && string(source[1:path]) == tenant &&
		string(source[path:path+len(threadsPath)]) == threadsPath && string(source[path+len(threadsPath):]) == thread
}

func (s *scanner) peek(word string) bool {
	return len(s.b)-s.at >= len(word) && string(s.b[s.at:s.at+len(word)]) == word
}

// word accepts exactly that word.
func (s *scanner) word(word string) bool {
	if !s.peek(word) {
		return false
	}
	s.at += len(word)
	return true
}

// quoted accepts a string up to and including its closing quote.
func (s *scanner) quoted(to *[]byte) bool {
	ascii := true
	for i := s.at; i < len(s.b); i++ {
		switch c := s.b[i]; {
		case c == '"':
			*to = s.b[s.at:i]
			s.at = i + 1
			return ascii || utf8.Valid(*to)
		case c == '\\' || c < ' ':
			return false
		case c >= utf8.RuneSelf:
			ascii = false
		}
	}
	return false
}

// same accepts a known string and its closing quote.
func (s *scanner) same(known string, to *[]byte) bool {
	end := s.at + len(known)
	if len(known) == 0 || end >= len(s.b) || s.b[end] != '"' || string(s.b[s.at:end]) != known {
		return false
	}
	*to = s.b[s.at:end]
	s.at = end + 1
	return true
}

// text accepts a name and a string.
func (s *scanner) text(name string, to *string, last string) bool {
	if !s.word(name) {
		return false
	}
	if end := s.at + len(last); end < len(s.b) && s.b[end] == '"' && string(s.b[s.at:end]) == last {
		*to, s.at = last, end+1
		return true
	}
	var b []byte
	ok := s.quoted(&b)
	*to = string(b)
	return ok
}

// option accepts an attribute that may be absent.
func (s *scanner) option(name string, to *string, last string) bool {
	return !s.peek(name) || s.text(name, to, last)
}

// number accepts a name and a non-negative integer.
func (s *scanner) number(name string, to *int64) bool {
	if !s.word(name) {
		return false
	}
	from := s.at
	for ; s.at < len(s.b) && isDigit(s.b[s.at]); s.at++ {
		if *to > math.MaxInt64/10-1 {
			return false
		}
		*to = *to*10 + int64(s.b[s.at]-'0')
	}
	length := s.at - from
	return length == 1 || length > 1 && s.b[from] != '0'
}

// object accepts an object by its brackets and quotes alone. Decoding it finds out whether it
// is JSON.
func (s *scanner) object() bool {
	if !s.peek("{") {
		return false
	}
	depth := 0
	for i := s.at; i < len(s.b); i++ {
		switch s.b[i] {
		case '"':
			if i = closingQuote(s.b, i+1); i < 0 {
				return false
			}
		case '{', '[':
			if depth++; depth > maxScanDepth {
				return false
			}
		case '}', ']':
			if depth--; depth == 0 {
				s.at = i + 1
				return true
			}
		}
	}
	return false
}

// closingQuote returns the index of the quote that ends a string, or -1.
func closingQuote(b []byte, i int) int {
	for ; i < len(b); i++ {
		switch b[i] {
		case '"':
			return i
		case '\\':
			i++
		}
	}
	return -1
}
