package compact

import (
	"slices"
	"strings"
	"unsafe"
)

// Pool holds the texts that packed values refer to by number: few, and each in many values, such
// as names. The zero value is empty and ready to use.
type Pool struct {
	texts []string
	index map[string]uint32 // of the texts, once they are many
	bytes int64             // of the texts
}

// fewTexts is how many texts are found faster without an index, which takes memory in each of
// many small pools.
const fewTexts = 16

// Number returns the number of a text, 0 for the empty one. A text that was not there is added.
func (p *Pool) Number(text string) uint32 {
	if n, ok := p.Find(text); ok {
		return n
	}
	text = strings.Clone(text) // it may be a piece of something large
	p.texts = append(p.texts, text)
	p.bytes += TextSize(text)
	n := uint32(len(p.texts))
	switch {
	case p.index != nil:
		p.index[text] = n
	case n > fewTexts:
		p.index = map[string]uint32{}
		for i, t := range p.texts {
			p.index[t] = uint32(i + 1)
		}
	}
	return n
}

// Find returns the number of a text that is there.
func (p *Pool) Find(text string) (n uint32, ok bool) {
	if text == "" {
		return 0, true
	}
	if p.index != nil {
		n, ok = p.index[text]
		return n, ok
	}
	n = uint32(slices.Index(p.texts, text) + 1)
	return n, n > 0
}

// Text returns the text with that number.
func (p *Pool) Text(n uint32) string {
	if n == 0 {
		return ""
	}
	return p.texts[n-1]
}

// Bytes estimates the memory of the pool, in bytes.
func (p *Pool) Bytes() int64 {
	return p.bytes + int64(len(p.texts))*int64(unsafe.Sizeof("")) + Room[string, uint32](len(p.index))
}
