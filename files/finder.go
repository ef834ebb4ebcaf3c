package files

import (
	"bytes"
	"errors"
	"regexp/syntax"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/pattern"
)

// finder finds the lines that match a pattern.
type finder struct {
	line    *pattern.Pattern // matches one line, without its end
	needles []needle         // every matching line contains one of them; may be empty
	text    *pattern.Pattern // matches many lines at once; nil: lines must be matched one by one
}

// newFinder compiles an expression. The error is an invalid_request.
func newFinder(expression string) (*finder, error) {
	line, err := pattern.Compile(expression, GrepPattern)
	var large *pattern.SizeError
	switch {
	case errors.As(err, &large):
		return nil, events.Invalid("/pattern", "%.80q is too large: %w", expression, err)
	case err != nil:
		return nil, events.Invalid("/pattern", "%.80q is not a regular expression (RE2): %w", expression, err)
	}
	f := &finder{line: line}
	// The same expression, with ^ and $ matching at line ends.
	parsed, err := syntax.Parse(expression, syntax.Perl&^syntax.OneLine)
	if err != nil { // matching line by line suffices
		return f, nil
	}
	if f.needles = needlesOf(parsed); f.needles == nil && !endsMatter(parsed) {
		f.text, _ = pattern.Compile(parsed.String(), GrepPattern)
	}
	return f, nil
}

// endsMatter reports whether a pattern depends on line ends, of which there are two kinds, or on
// the ends of the text.
func endsMatter(p *syntax.Regexp) bool {
	switch p.Op {
	case syntax.OpEndLine, syntax.OpBeginText, syntax.OpEndText:
		return true
	}
	return slices.ContainsFunc(p.Sub, endsMatter)
}

// lines calls found with each matching line of the text and its offset, until found returns false.
// It returns false if spend stopped the search.
func (f *finder) lines(text []byte, spend pattern.Spend, found func(at int, line []byte) bool) bool {
	hay := haystack{needles: f.needles}
	for at := 0; at < len(text); {
		begin, ok := f.candidate(text, at, &hay, spend)
		if !ok || begin == len(text) {
			return ok
		}
		begin = bytes.LastIndexByte(text[:begin], '\n') + 1
		end := bytes.IndexByte(text[begin:], '\n')
		if end < 0 {
			end = len(text)
		} else {
			end += begin
		}
		line := bytes.TrimSuffix(text[begin:end], []byte{'\r'})
		// The match may extend beyond the end of the line.
		matched, ok := f.line.Match(line, spend)
		if !ok {
			return false
		}
		if matched && !found(begin, line) {
			return true
		}
		at = end + 1
	}
	return true
}

// linesAtOnce is how many bytes are searched for a candidate at a time, extended to the next line
// end. It is bounded because a match may extend over all of it, which is then searched again for
// the next line.
const linesAtOnce = 16 << 10

// candidate returns an offset in the first line from at on that may match: at itself if every line
// must be tried, len(text) if no line can match.
func (f *finder) candidate(text []byte, at int, hay *haystack, spend pattern.Spend) (place int, ok bool) {
	switch {
	case len(f.needles) > 0:
		return hay.find(text, at), true
	case f.text == nil:
		return at, true
	}
	for at < len(text) {
		end := min(at+linesAtOnce, len(text))
		if next := bytes.IndexByte(text[end:], '\n'); next >= 0 {
			end += next + 1
		} else {
			end = len(text)
		}
		where, ok := f.text.Find(text[at:end], spend)
		if !ok || where >= 0 {
			return at + where, ok
		}
		at = end
	}
	return len(text), true
}

// scan is the state of the search of one file.
type scan struct {
	find    *finder
	spend   pattern.Spend
	limit   int
	matches []events.GrepMatch
	cut     bool // not all of the file was searched, or not all of its matches were returned

	line  int64  // the number of the first line of rest
	rest  []byte // what follows the last line end
	known bool   // the first part of a long line in rest was searched before, and has matched
}

// add searches the lines that a piece completes, and reports whether to continue the search.
func (s *scan) add(piece []byte) bool {
	end := bytes.LastIndexByte(piece, '\n') + 1
	if end == 0 && len(s.rest)+len(piece) < LongLine {
		s.rest = append(s.rest, piece...)
		return true
	}
	if end == 0 {
		end = len(piece)
	}
	if len(s.rest) > 0 {
		first := bytes.IndexByte(piece[:end], '\n') + 1
		if first == 0 {
			first = end
		}
		s.search(append(s.rest, piece[:first]...))
		s.rest = s.rest[:0]
		s.search(piece[first:end])
	} else {
		s.search(piece[:end])
	}
	s.rest = append(s.rest, piece[end:]...)
	return !s.cut
}

// end searches the rest.
func (s *scan) end() { s.search(s.rest) }

func (s *scan) search(text []byte) {
	counted := 0
	all := s.find.lines(text, s.spend, func(at int, line []byte) bool {
		ends := bytes.Count(text[counted:at], []byte{'\n'})
		counted = at
		s.line += int64(ends)
		if at > 0 || !s.known {
			s.matches = append(s.matches, events.GrepMatch{Line: s.line, Content: clip(line)})
		}
		s.known = bytes.IndexByte(text[at:], '\n') < 0
		s.cut = len(s.matches) > s.limit
		return !s.cut
	})
	s.cut = s.cut || !all
	ends := bytes.Count(text[counted:], []byte{'\n'})
	s.line += int64(ends)
	if bytes.HasSuffix(text, []byte{'\n'}) {
		s.known = false
	}
}

// clip shortens a line for the result.
func clip(line []byte) string {
	if len(line) > LineBytes {
		line = line[:LineBytes]
		for len(line) > 0 && !utf8.RuneStart(line[len(line)-1]) { // do not cut within a character
			line = line[:len(line)-1]
		}
		if last, n := utf8.DecodeLastRune(line); last == utf8.RuneError && n == 1 {
			line = line[:len(line)-1]
		}
	}
	return strings.ToValidUTF8(string(line), "\uFFFD")
}
