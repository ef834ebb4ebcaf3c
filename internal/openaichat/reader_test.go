package openaichat_test

import (
	"io"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/openaichat"
)

// repeated reads as n letters.
type repeated struct{ n int }

func (r *repeated) Read(p []byte) (int, error) {
	if r.n == 0 {
		return 0, io.EOF
	}
	n := min(len(p), r.n)
	for i := range n {
		p[i] = 'x'
	}
	r.n -= n
	return n, nil
}

func readers(list ...io.Reader) io.Reader { return io.MultiReader(list...) }

// contentOf returns a message's content in the form of an item.
func contentOf(m openaichat.Message) events.JSON {
	out := events.JSON{'['}
	for i, p := range m.Content {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, p...)
	}
	return append(out, ']')
}
