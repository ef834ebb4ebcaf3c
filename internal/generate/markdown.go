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
const generated = "<!-- Written by internal/generate from the package events. Change it there, then run make generate. -->\n\n"

// page is a Markdown page under construction.
type page struct{ bytes.Buffer }

func newPage(title string) *page {
	p := &page{}
	p.WriteString(generated)
	p.line("# %s", title)
	return p
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

// code writes a block of code.
func (p *page) code(language, body string) {
	fmt.Fprintf(p, "```%s\n%s\n```\n\n", language, strings.TrimSuffix(body, "\n"))
}

// table writes a table.
func (p *page) table(head []string, rows [][]string) {
	write := func(cells []string) {
		for i, c := range cells {
			cells[i] = strings.ReplaceAll(c, "|", `\|`)
		}
		fmt.Fprintf(p, "| %s |\n", strings.Join(cells, " | "))
	}
	write(head)
	fmt.Fprintf(p, "|%s\n", strings.Repeat("---|", len(head)))
	for _, cells := range rows {
		write(cells)
	}
	p.WriteByte('\n')
}

// fields writes the table of a struct's fields.
func (p *page) fields(value any) error {
	fields, err := schema.Describe(value)
	if err != nil {
		return err
	}
	p.described(fields)
	return nil
}

// described writes the table of described fields.
func (p *page) described(fields []schema.Description) {
	if len(fields) == 0 {
		p.line("It has no fields.")
		return
	}
	var rows [][]string
	for _, f := range fields {
		required := ""
		if f.Required {
			required = "yes"
		}
		rows = append(rows, []string{"`" + f.Name + "`", f.Type, required, f.Doc})
	}
	p.table([]string{"field", "type", "required", "meaning"}, rows)
}

// patterns explains the names of forms that the tables use.
func (p *page) patterns() {
	p.line("## Forms of texts")
	var rows [][]string
	for _, form := range schema.Patterns() {
		rows = append(rows, []string{"`" + form.Name + "`", form.Doc, "`" + form.Expression + "`"})
	}
	p.table([]string{"form", "it is", "expression"}, rows)
}

func names(types []events.Type) string {
	out := make([]string, len(types))
	for i, t := range types {
		out[i] = fmt.Sprintf("[`%s`](events.md#%s)", t, anchor(string(t)))
	}
	return strings.Join(out, ", ")
}

// anchor is the link to a heading that is a name with dots.
func anchor(name string) string { return strings.ReplaceAll(name, ".", "") }
