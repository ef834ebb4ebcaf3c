package markdown

import (
	"bytes"
	"errors"
	"html/template"
	"sync"
	"time"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/util"
)

// Limits of what is rendered.
const (
	maxText   = 256 << 10       // bytes of text that are shown
	maxSource = 128 << 10       // bytes of text that are read as Markdown; a longer one is shown as it is
	maxOutput = 4 << 20         // bytes of HTML
	codeTime  = 1 * time.Second // for the colors of one text
)

// Renderer renders Markdown. A program has one, which remembers what it has read and compiled. It
// is safe for concurrent use.
type Renderer struct {
	markdown goldmark.Markdown
	nodes    nodes
}

// New returns a Renderer.
func New() *Renderer {
	n := nodes{languages: sync.OnceValue(indexLanguages), colors: palette()}
	return &Renderer{nodes: n, markdown: goldmark.New(
		goldmark.WithExtensions(
			extension.NewTable(extension.WithTableCellAlignMethod(extension.TableCellAlignAttribute)),
			extension.Strikethrough, extension.TaskList, extension.NewLinkify(),
		),
		goldmark.WithRendererOptions(renderer.WithNodeRenderers(util.Prioritized(n, 100))),
	)}
}

// Render returns a text as HTML. It always returns the text in some form: one that is too
// expensive as Markdown is shown as it is.
func (r *Renderer) Render(text string) template.HTML {
	text, rest := Cut(text, maxText)
	text = Visible(text)
	if expensive(text) {
		return plain(text, rest)
	}
	source := []byte(text)
	out := &limited{left: maxOutput}
	if err := r.markdown.Convert(source, out); err != nil || out.full {
		return plain(text, rest)
	}
	return template.HTML(out.Bytes()) + tail(rest)
}

// limited is a buffer that refuses what exceeds its limit.
type limited struct {
	bytes.Buffer
	left int
	full bool
}

var errFull = errors.New("the rendering is too long")

func (l *limited) Write(b []byte) (int, error) {
	if l.full = l.full || len(b) > l.left; l.full {
		return 0, errFull
	}
	l.left -= len(b)
	return l.Buffer.Write(b)
}
