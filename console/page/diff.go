package page

import (
	"fmt"
	"html/template"
	"strings"

	"github.com/aymanbagabas/go-udiff"

	"github.com/skein-threads/skein/console/markdown"
)

// Limits of what is compared and shown.
const (
	maxText      = 1 << 20 // bytes of each side
	maxRows      = 1000
	maxLine      = 400 // characters of a line that are shown
	contextLines = 3   // lines around a difference
)

// JSONDiff returns as HTML what differs between two documents, line by line of their indented form: the order
// of an object's fields and the space between them make no difference. What is no JSON is compared as
// text. Time and size are bounded: the lines that differ are a smallest set only if few do.
func JSONDiff(before, after []byte) template.HTML {
	return textDiff(Indented(before), Indented(after))
}

// textDiff returns what differs between two texts, line by line.
func textDiff(before, after string) template.HTML {
	before, restBefore := markdown.Cut(before, maxText)
	after, restAfter := markdown.Cut(after, maxText)
	note := ""
	if restBefore+restAfter > 0 {
		note = fmt.Sprintf(`<p class="cut">Only the first %d KiB of each side are compared.</p>`+"\n", maxText>>10)
	}
	if before == after {
		return template.HTML(`<p class="empty">Nothing differs.</p>` + "\n" + note)
	}
	u, err := udiff.ToUnifiedDiff("", "", before, udiff.Lines(before, after), contextLines)
	if err != nil { // the edits are of these texts
		return template.HTML(`<p class="empty">The difference cannot be shown.</p>` + "\n" + note)
	}
	var b strings.Builder
	b.WriteString(`<div class="scroll" tabindex="0" role="region" aria-label="Differences"><table class="diff"><thead class="visually-hidden"><tr><th scope="col">Before</th><th scope="col">After</th><th scope="col">Change</th><th scope="col">Line</th></tr></thead><tbody>` + "\n")
	left := rows(&b, u.Hunks)
	b.WriteString("</tbody></table></div>\n")
	if left > 0 {
		fmt.Fprintf(&b, `<p class="cut">%d more lines are not shown.</p>`+"\n", left)
	}
	return template.HTML(b.String() + note)
}

// rows writes a row for each line, and returns how many there was no room for.
func rows(b *strings.Builder, hunks []*udiff.Hunk) (left int) {
	shown, last := 0, 1
	for _, h := range hunks {
		if skipped := h.FromLine - last; skipped > 0 && shown < maxRows {
			fmt.Fprintf(b, `<tr class="same"><td colspan="4">unchanged lines: %d</td></tr>`+"\n", skipped)
		}
		from, to := h.FromLine, h.ToLine
		for _, line := range h.Lines {
			if shown++; shown > maxRows {
				left++
				continue
			}
			was, is, class, sign := fmt.Sprint(from), fmt.Sprint(to), "equal", ""
			switch line.Kind {
			case udiff.Delete:
				is, class, sign = "", "del", "−"
				from++
			case udiff.Insert:
				was, class, sign = "", "ins", "+"
				to++
			default:
				from++
				to++
			}
			fmt.Fprintf(b, `<tr class="%s"><td class="num">%s</td><td class="num">%s</td><td class="sign">%s</td><td><code>%s</code></td></tr>`+"\n",
				class, was, is, sign, template.HTMLEscapeString(markdown.Visible(clip(strings.TrimSuffix(line.Content, "\n")))))
		}
		last = from
	}
	return left
}

func clip(line string) string {
	count := 0
	for i := range line {
		if count++; count > maxLine {
			return line[:i] + "…"
		}
	}
	return line
}
