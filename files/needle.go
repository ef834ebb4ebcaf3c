package files

import (
	"bytes"
	"regexp/syntax"
	"strings"
)

// needle is a text to search for. If a pattern has needles, every match contains at least one of
// them.
type needle struct {
	text string
	fold bool // case-insensitive; ASCII only
}

const (
	needleBytes  = 2 // the shortest needle worth searching for
	needlesAtOne = 8
	foldBytes    = 16 // the longest case-insensitive needle, which is compared at each offset
)

// needlesOf returns texts such that every match of the pattern contains at least one of them, or
// nil if there are none. Searching for a text is many times faster than matching a pattern.
func needlesOf(p *syntax.Regexp) []needle {
	switch p.Op {
	case syntax.OpLiteral:
		return literal(p)
	case syntax.OpCapture, syntax.OpPlus:
		return needlesOf(p.Sub[0])
	case syntax.OpRepeat:
		if p.Min > 0 {
			return needlesOf(p.Sub[0])
		}
	case syntax.OpConcat:
		var best []needle
		for _, part := range p.Sub {
			if found := needlesOf(part); shortest(found) > shortest(best) {
				best = found
			}
		}
		return best
	case syntax.OpAlternate:
		var all []needle
		for _, part := range p.Sub {
			found := needlesOf(part)
			if len(found) == 0 || len(all)+len(found) > needlesAtOne {
				return nil
			}
			all = append(all, found...)
		}
		return all
	}
	return nil
}

func shortest(list []needle) int {
	if len(list) == 0 {
		return 0
	}
	n := len(list[0].text)
	for _, one := range list[1:] {
		n = min(n, len(one.text))
	}
	return n
}

// literal returns the text of a literal. Of a case-insensitive literal it returns the longest part
// without letters that have case variants beyond ASCII.
func literal(p *syntax.Regexp) []needle {
	text := string(p.Rune)
	if p.Flags&syntax.FoldCase == 0 {
		if len(text) < needleBytes || strings.ContainsAny(text, "\n\ufffd") {
			return nil
		}
		return []needle{{text: text}}
	}
	best := ""
	for piece := range strings.FieldsFuncSeq(text, func(r rune) bool { return r >= 0x80 || strings.ContainsRune("\nkKsS", r) }) {
		if len(piece) > len(best) {
			best = piece
		}
	}
	if len(best) < needleBytes {
		return nil
	}
	return []needle{{text: strings.ToLower(best[:min(len(best), foldBytes)]), fold: true}}
}

// in returns the first offset of the needle in a text, -1 if there is none.
func (n needle) in(text []byte) int {
	if !n.fold {
		return bytes.Index(text, []byte(n.text))
	}
	low := n.text[0]
	high := bytes.ToUpper([]byte{low})[0]
	for at := 0; ; at++ {
		next := nextOf(text[at:], low, high)
		if next < 0 {
			return -1
		}
		if at += next; at+len(n.text) > len(text) {
			return -1
		}
		if strings.EqualFold(string(text[at:at+len(n.text)]), n.text) {
			return at
		}
	}
}

// nextOf returns the first offset of either of two bytes, which may be equal.
func nextOf(text []byte, a, b byte) int {
	const part = 4096 // search in parts, so that a rare byte is not searched to the end of the text each time
	for from := 0; from < len(text); from += part {
		piece := text[from:min(from+part, len(text))]
		i := bytes.IndexByte(piece, a)
		if i >= 0 {
			piece = piece[:i]
		}
		if a != b {
			if j := bytes.IndexByte(piece, b); j >= 0 {
				i = j
			}
		}
		if i >= 0 {
			return from + i
		}
	}
	return -1
}

// haystack searches one text for several needles. It finds each occurrence once.
type haystack struct {
	needles []needle
	next    []int // the next offset of each needle; len(text) if there is none
}

func (h *haystack) find(text []byte, at int) int {
	if h.next == nil {
		h.next = make([]int, len(h.needles))
		for i := range h.next {
			h.next[i] = -1
		}
	}
	first := len(text)
	for i, n := range h.needles {
		if h.next[i] < at {
			if h.next[i] = n.in(text[at:]); h.next[i] < 0 {
				h.next[i] = len(text)
			} else {
				h.next[i] += at
			}
		}
		first = min(first, h.next[i])
	}
	return first
}
