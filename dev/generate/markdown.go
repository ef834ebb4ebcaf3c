package main

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/schema"
)

// generated tells readers of a page where it comes from.
const generated = "<!-- Written by dev/generate from the package events. Change it there, then run make generate. -->\n\n"

// page is a Markdown page under construction.
type page struct {
	bytes.Buffer
	shapes *shapes
	here   bool // the sections of shapes are on this page
	output bool // the fields are of what Skein sends, whose limits are in the JSON Schemas
}

func newPage(title string) (*page, error) {
	s, err := newShapes()
	p := &page{shapes: s}
	p.WriteString(generated)
	p.line("# %s", title)
	return p, err
}

// sections is the page on which the sections of shapes are, as a link has it.
func (p *page) sections() string {
	if p.here {
		return ""
	}
	return "queries.md"
}

// columns is the width of prose.
const columns = 100

// line writes a heading, or paragraphs wrapped at columns, followed by an empty line.
func (p *page) line(format string, args ...any) {
	for paragraph := range strings.SplitSeq(fmt.Sprintf(format, args...), "\n\n") {
		if strings.HasPrefix(paragraph, "#") || strings.HasPrefix(paragraph, "-") || strings.HasPrefix(paragraph, "<") {
			p.WriteString(paragraph)
		} else {
			p.WriteString(wrapped(paragraph))
		}
		p.WriteString("\n\n")
	}
}

// wrapped breaks a paragraph between words.
func wrapped(paragraph string) string {
	var out strings.Builder
	column := 0
	for i, word := range strings.Fields(paragraph) {
		width := utf8.RuneCountInString(word)
		switch {
		case i == 0:
		case column+1+width > columns:
			out.WriteByte('\n')
			column = 0
		default:
			out.WriteByte(' ')
			column++
		}
		out.WriteString(word)
		column += width
	}
	return out.String()
}

// item writes an item of a list, in lines of at most columns where its words allow it.
func (p *page) item(mark, text string) {
	line, indent := mark, strings.Repeat(" ", len(mark))
	for i, word := range strings.Fields(text) {
		switch {
		case i == 0:
			line += word
		case len(line)+1+len(word) <= columns:
			line += " " + word
		default:
			fmt.Fprintln(p, line)
			line = indent + word
		}
	}
	fmt.Fprintln(p, line)
}

// code writes a block of code.
func (p *page) code(language, body string) {
	fmt.Fprintf(p, "```%s\n%s\n```\n\n", language, strings.TrimSuffix(body, "\n"))
}

// fields writes the fields of a struct.
func (p *page) fields(value any) error {
	lines, as, err := p.shapes.table(value)
	if err != nil {
		return err
	}
	p.described(lines, as)
	return nil
}

// described writes a list of fields, and where the others are described.
func (p *page) described(fields []schema.Description, as []reference) {
	var plain []string // fields in a row without a text
	for _, f := range fields {
		if isObsolete(f) {
			continue
		}
		text, kind := nameOf(f), p.kindOf(f)
		f, kind = sinceEpoch(f, kind)
		if kind != "text" {
			text += " (" + kind + ")"
		}
		if restates(f) {
			plain = append(plain, text)
			continue
		}
		p.together(plain)
		plain = nil
		p.item("- ", text+": "+terse(f.Doc))
	}
	p.together(plain)
	for _, r := range as {
		p.item("- ", r.as(p.sections()))
	}
	if len(fields) == 0 && len(as) == 0 {
		p.WriteString("It has no fields.\n")
	}
	p.WriteByte('\n')
}

// together writes fields without a text as one item.
func (p *page) together(fields []string) {
	if len(fields) > 0 {
		p.item("- ", strings.Join(fields, ", "))
	}
}

// patterns explains the names of forms that the tables use.
func (p *page) patterns() {
	p.line("## Forms of texts")
	p.line("The regular expressions are in the JSON Schemas.")
	for _, form := range schema.Patterns() {
		doc := form.Doc
		if _, after, ok := strings.Cut(doc, ": "); ok {
			doc = after // the name says what is before
		}
		p.item("- ", fmt.Sprintf("`%s`: %s", form.Name, doc))
	}
}

func names(types []events.Type) string {
	out := make([]string, len(types))
	for i, t := range types {
		out[i] = fmt.Sprintf("[`%s`](events.md#%s)", t, anchor(string(t)))
	}
	return strings.Join(out, ", ")
}

// anchor is the link to a heading that is a name.
func anchor(name string) string { return strings.ToLower(strings.ReplaceAll(name, ".", "")) }
