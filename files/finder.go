package files

import (
	"bytes"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/skein-threads/skein/events"
)

// finder finds the lines that match a pattern.
type finder struct {
	line    *regexp.Regexp // on one line, without its end
	needles []needle       // of which a line that matches holds one; or
	text    *regexp.Regexp // on many lines at once; nil if the pattern needs each by itself
}

// newFinder reads a pattern. The error is an invalid_request.
func newFinder(pattern string) (*finder, error) {
	line, err := regexp.Compile(pattern)
	if err != nil {
		return nil, events.Invalid("/pattern", "%.80q is not a regular expression (RE2): %w", pattern, err)
	}
	f := &finder{line: line}
	// The same with ^ and $ at the ends of lines.
	parsed, err := syntax.Parse(pattern, syntax.Perl&^syntax.OneLine)
	if err != nil { // line by line will do
		return f, nil
	}
	if f.needles = needlesOf(parsed); f.needles == nil && !endsMatter(parsed) {
		f.text, _ = regexp.Compile(parsed.String())
	}
	return f, nil
}

// endsMatter reports whether a pattern asks for the end of a line, of which
// there are two kinds, or for the ends of the whole text.
func endsMatter(p *syntax.Regexp) bool {
	switch p.Op {
	case syntax.OpEndLine, syntax.OpBeginText, syntax.OpEndText:
		return true
	}
	return slices.ContainsFunc(p.Sub, endsMatter)
}

// lines calls found with each line of the text that matches, and where it
// begins, until it returns false.
func (f *finder) lines(text []byte, found func(at int, line []byte) bool) {
	hay := haystack{needles: f.needles}
	for at := 0; at < len(text); {
		begin := f.candidate(text, at, &hay)
		if begin == len(text) {
			return
		}
		begin = bytes.LastIndexByte(text[:begin], '\n') + 1
		end := bytes.IndexByte(text[begin:], '\n')
		if end < 0 {
			end = len(text)
		} else {
			end += begin
		}
		line := bytes.TrimSuffix(text[begin:end], []byte{'\r'})
		// What was found may reach over the end of the line.
		if f.line.Match(line) && !found(begin, line) {
			return
		}
		at = end + 1
	}
}

// candidate gives a place in the first line from at on that may match, which is
// at itself if every line must be tried; len(text) if there is none.
func (f *finder) candidate(text []byte, at int, hay *haystack) int {
	switch {
	case len(f.needles) > 0:
		return hay.find(text, at)
	case f.text != nil:
		if where := f.text.FindIndex(text[at:]); where != nil {
			return at + where[0]
		}
		return len(text)
	}
	return at
}

// scan is the search of one file.
type scan struct {
	find    *finder
	limit   int
	matches []events.GrepMatch
	cut     bool // not all of it was searched, or shown

	line  int64  // the number of the first line of rest
	rest  []byte // what follows the last end of a line
	known bool   // that line has matched: a part of it was searched before
}

// add searches the lines that a piece ends, and reports whether to go on.
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

// end searches what is left.
func (s *scan) end() { s.search(s.rest) }

func (s *scan) search(text []byte) {
	counted := 0
	s.find.lines(text, func(at int, line []byte) bool {
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
	ends := bytes.Count(text[counted:], []byte{'\n'})
	s.line += int64(ends)
	if bytes.HasSuffix(text, []byte{'\n'}) {
		s.known = false
	}
}

// clip gives a line as it is shown.
func clip(line []byte) string {
	if len(line) > LineBytes {
		line = line[:LineBytes]
		for len(line) > 0 && !utf8.RuneStart(line[len(line)-1]) { // not amid a letter
			line = line[:len(line)-1]
		}
		if last, n := utf8.DecodeLastRune(line); last == utf8.RuneError && n == 1 {
			line = line[:len(line)-1]
		}
	}
	return strings.ToValidUTF8(string(line), "\uFFFD")
}
