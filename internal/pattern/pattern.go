// Package pattern matches regular expressions that strangers wrote, in bounded
// memory and with work that can be stopped.
//
// RE2 takes time in proportion to the text and to the compiled expression, and
// the second factor is easily forgotten: .{999} is six bytes and a thousand
// instructions, each of which may be tried on each byte of the text. So an
// expression has a size, a bound on it is checked before anything is compiled,
// and a match asks for its work in small pieces, which may be refused.
package pattern

import (
	"fmt"
	"io"
	"regexp"
	"regexp/syntax"
	"unicode/utf8"
)

const (
	// MaxText bounds an expression as it is written, in bytes. The parser alone
	// may use two thousand times as much memory.
	MaxText = 4096
	// Window is how many steps are asked for at a time: instructions tried on bytes.
	Window = 1 << 20
)

// SizeError says that an expression is larger than is allowed.
type SizeError struct {
	What       string // that is measured
	Size, Most int
}

// Error names both sizes and says what makes an expression large.
func (e *SizeError) Error() string {
	return fmt.Sprintf("it has %d %s, and %d are allowed; counted repetitions such as .{999} count each time", e.Size, e.What, e.Most)
}

// Size returns how many instructions an expression has when it is compiled, or
// a little more. A class of characters counts once for each 64 of its bounds.
// It compiles nothing. The error is a *SizeError if the expression is longer than
// MaxText, and otherwise says what is wrong with it.
func Size(expression string) (int, error) {
	if len(expression) > MaxText {
		return 0, &SizeError{"bytes", len(expression), MaxText}
	}
	parsed, err := syntax.Parse(expression, syntax.Perl)
	if err != nil {
		return 0, err
	}
	return 2 + size(parsed), nil
}

// size counts the instructions of a part. The parser bounds repetitions inside
// one another, so that the number fits.
func size(p *syntax.Regexp) int {
	switch p.Op {
	case syntax.OpLiteral:
		return max(1, len(p.Rune))
	case syntax.OpCharClass:
		return 1 + len(p.Rune)/64
	case syntax.OpRepeat:
		times := p.Max
		if p.Max < 0 {
			times = max(1, p.Min)
		}
		return 1 + times*(1+size(p.Sub[0]))
	}
	n := 1 + len(p.Sub)
	for _, part := range p.Sub {
		n += size(part)
	}
	return n
}

// Pattern is a compiled expression. It is safe for concurrent use.
type Pattern struct {
	expression *regexp.Regexp
	size       int
}

// Compile compiles an expression of at most so many instructions. The error is
// Size's, or a *SizeError.
func Compile(expression string, most int) (*Pattern, error) {
	n, err := Size(expression)
	if err != nil {
		return nil, err
	}
	if n > most {
		return nil, &SizeError{"instructions", n, most}
	}
	compiled, err := regexp.Compile(expression)
	if err != nil {
		return nil, err
	}
	return &Pattern{compiled, n}, nil
}

// Of returns the Pattern of an expression that is compiled already.
func Of(compiled *regexp.Regexp) (*Pattern, error) {
	n, err := Size(compiled.String())
	return &Pattern{compiled, n}, err
}

// Size returns what Size returns for its expression.
func (p *Pattern) Size() int { return p.size }

// String returns the expression.
func (p *Pattern) String() string { return p.expression.String() }

// Spend is asked for so many steps before they are made, and returns false to
// stop the match.
type Spend func(steps int) bool

// Match reports whether the text has a match; ok is false if spend stopped it.
func (p *Pattern) Match(text []byte, spend Spend) (found, ok bool) {
	if steps := p.size * len(text); steps <= Window {
		ok = spend(steps)
		return ok && p.expression.Match(text), ok
	}
	r := p.reader(text, spend)
	found = p.expression.MatchReader(r)
	return found && !r.stopped, !r.stopped
}

// Find returns where the first match begins, -1 if there is none; ok is false if
// spend stopped it.
func (p *Pattern) Find(text []byte, spend Spend) (at int, ok bool) {
	r := p.reader(text, spend)
	where := p.expression.FindReaderIndex(r)
	switch {
	case r.stopped:
		return -1, false
	case where == nil:
		return -1, true
	}
	return where[0], true
}

func (p *Pattern) reader(text []byte, spend Spend) *reader {
	return &reader{text: text, spend: spend, size: p.size, window: max(1, Window/p.size)}
}

// reader hands a text to the matcher, rune by rune, and asks for the work that
// each window of it may cost. It ends the text where it is refused.
type reader struct {
	text    []byte
	at      int
	paid    int // up to where the work was asked for
	size    int
	window  int
	spend   Spend
	stopped bool
}

// ReadRune implements io.RuneReader.
func (r *reader) ReadRune() (rune, int, error) {
	if r.at >= len(r.text) || r.stopped {
		return 0, 0, io.EOF
	}
	if r.at >= r.paid {
		n := min(r.window, len(r.text)-r.at)
		if !r.spend(n * r.size) {
			r.stopped = true
			return 0, 0, io.EOF
		}
		r.paid = r.at + n
	}
	if c := r.text[r.at]; c < utf8.RuneSelf {
		r.at++
		return rune(c), 1, nil
	}
	c, n := utf8.DecodeRune(r.text[r.at:])
	r.at += n
	return c, n, nil
}
