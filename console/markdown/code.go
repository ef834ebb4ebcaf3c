package markdown

import (
	"fmt"
	"html/template"
	"strings"
	"time"

	"github.com/alecthomas/chroma/v2"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/util"
)

// maxCode is the length of code that is colored. Lexers are regular expressions that backtrack.
const maxCode = 16 << 10

func (n nodes) fenced(w util.BufWriter, source []byte, node ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		return ast.WalkContinue, nil
	}
	block := node.(*ast.FencedCodeBlock)
	language := string(block.Language(source))
	return ast.WalkSkipChildren, n.writeCode(w, string(lines(block, source)), language, n.lexer(language), spend(node.OwnerDocument()))
}

func (n nodes) indented(w util.BufWriter, source []byte, node ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		return ast.WalkContinue, nil
	}
	return ast.WalkSkipChildren, n.writeCode(w, string(lines(node, source)), "", nil, time.Time{})
}

// spend returns when the colors of a document's code must be done: the first call sets it.
func spend(document *ast.Document) time.Time {
	const name = "code-until"
	if until, ok := document.Meta()[name].(time.Time); ok {
		return until
	}
	until := time.Now().Add(codeTime)
	document.AddMeta(name, until)
	return until
}

func (n nodes) writeCode(w util.BufWriter, code, language string, lexer chroma.Lexer, until time.Time) error {
	label := ""
	if language != "" {
		label = fmt.Sprintf(` data-language="%s"`, template.HTMLEscapeString(language))
	}
	_, err := fmt.Fprintf(w, "<pre class=\"code\"%s><code>%s</code></pre>\n", label, n.colored(code, lexer, until))
	return err
}

// Code returns code as HTML, colored if its language is known and it is not too long.
func (r *Renderer) Code(code, language string) template.HTML {
	code, rest := Cut(code, maxText)
	return `<pre class="code" tabindex="0"><code>` + template.HTML(r.nodes.colored(Visible(code), r.nodes.lexer(language), time.Now().Add(codeTime))) + "</code></pre>\n" + tail(rest)
}

// lexer returns the lexer of a language, nil if there is none.
func (n nodes) lexer(language string) chroma.Lexer {
	if language == "" { // then the languages need no index
		return nil
	}
	return n.languages().lexer(language)
}

// colored returns code as HTML.
func (n nodes) colored(code string, lexer chroma.Lexer, until time.Time) string {
	if lexer == nil || len(code) > maxCode || time.Now().After(until) {
		return template.HTMLEscapeString(code)
	}
	tokens, err := chroma.Coalesce(lexer).Tokenise(nil, code)
	if err != nil {
		return template.HTMLEscapeString(code)
	}
	var b strings.Builder
	for token := tokens(); token != chroma.EOF; token = tokens() {
		if time.Now().After(until) {
			return template.HTMLEscapeString(code)
		}
		text := template.HTMLEscapeString(token.Value)
		if class := n.colors.class(token.Type); class != "" {
			text = `<span class="` + class + `">` + text + "</span>"
		}
		b.WriteString(text)
	}
	return b.String()
}
