package chart

import (
	"fmt"
	"html/template"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/skein-threads/skein/events"
)

// maxDepth is how deep bars are nested.
const maxDepth = 8

// ChosenID is the id of the row that its reader looks at.
const ChosenID = "chosen"

// Waterfall is bars, one under the other, on one line of time.
type Waterfall struct {
	ID    string // unique on its page: letters, digits, dashes and underscores
	Title string
	Bars  []Bar
	Left  int               // bars that are not in Bars
	Now   events.Time       // what lasts is drawn until then
	Cost  func(*Bar) string // formats what a bar's usage costs, empty if that is not known; default nobody knows
}

// HTML returns the waterfall as a table whose rows have their bars.
func (w Waterfall) HTML() template.HTML {
	if len(w.Bars) == 0 {
		return `<p class="empty">Nothing has run yet.</p>` + "\n"
	}
	bars := nest(w.Bars)
	left := w.Left
	if len(bars) > MaxBars {
		left += len(bars) - MaxBars
		bars = bars[:MaxBars]
	}
	d := drawing{Waterfall: w, scale: newScale(bars, w.Now)}
	d.tokens = slices.ContainsFunc(bars, func(b Bar) bool { return tokens(b.Usage) > 0 })
	d.head(bars)
	for i := range bars {
		d.row(&bars[i])
	}
	d.text("</tbody></table></div>\n")
	if left > 0 {
		d.text(`<p class="cut">` + Count(int64(left)) + " more are not drawn.</p>\n")
	}
	return template.HTML(d.String())
}

// nest returns bars below their parents, in the order of their time, with their depth.
func nest(bars []Bar) []Bar {
	known, below := map[string]bool{}, map[string][]Bar{}
	for _, b := range bars {
		known[b.ID] = true
	}
	for _, b := range bars {
		parent := b.Parent
		if !known[parent] || parent == b.ID {
			parent = ""
		}
		below[parent] = append(below[parent], b)
	}
	for _, list := range below {
		slices.SortStableFunc(list, func(a, b Bar) int { return int(min(max(a.Begun-b.Begun, -1), 1)) })
	}
	out, done := make([]Bar, 0, len(bars)), map[string]bool{}
	var walk func(parent string, depth int)
	walk = func(parent string, depth int) {
		for _, b := range below[parent] {
			if b.depth = min(depth, maxDepth); !done[b.ID] {
				done[b.ID] = true
				out = append(out, b)
				walk(b.ID, min(depth+1, 1000))
			}
		}
	}
	walk("", 0)
	for _, b := range bars { // parents of one another
		if !done[b.ID] {
			done[b.ID] = true
			out = append(out, b)
		}
	}
	return out
}

type drawing struct {
	Waterfall
	strings.Builder
	scale  *scale
	tokens bool
}

func (d *drawing) text(s string) { d.WriteString(s) }

func (d *drawing) head(bars []Bar) {
	id := template.HTMLEscapeString(d.ID)
	first, last := bars[0].Begun, bars[0].end(d.Now)
	for i := range bars {
		first, last = min(first, bars[i].Begun), max(last, bars[i].end(d.Now))
	}
	about := fmt.Sprintf("%d bars over %s, beginning at %s.", len(bars), Duration(int64(last-first)), first)
	for _, g := range d.scale.gaps {
		about += " A wait of " + Duration(g.micros) + " is shortened."
	}
	fmt.Fprintf(d, `<div class="scroll" tabindex="0" role="region" aria-labelledby="%s-c"><table class="waterfall"><caption id="%s-c">%s</caption>`+"\n", id, id, escape(d.Title, 200))
	d.text(`<thead><tr><th scope="col">What</th><th scope="col" class="track">`)
	fmt.Fprintf(d, `<svg role="img" aria-labelledby="%s-t %s-d" width="100%%" height="20"><title id="%s-t">Line of time</title><desc id="%s-d">%s</desc><g id="%s-g">`,
		id, id, id, id, template.HTMLEscapeString(about), id)
	places, micros := d.scale.ticks()
	for _, place := range places {
		fmt.Fprintf(d, `<line class="wf-tick" x1="%s%%" x2="%s%%" y1="-6" y2="26"/>`, number(place), number(place))
	}
	for _, g := range d.scale.gaps {
		fmt.Fprintf(d, `<rect class="wf-gap" x="%s%%" width="%s%%" y="-6" height="32"/>`, number(g.from), number(g.to-g.from))
	}
	d.text("</g>")
	for i, place := range places {
		fmt.Fprintf(d, `<text x="%s%%" dx="4" y="14">%s</text>`, number(place), Duration(micros[i]))
	}
	d.text(`</svg></th><th scope="col" class="num">Took</th>`)
	if d.tokens {
		d.text(`<th scope="col" class="num">Tokens</th>`)
		if d.Cost != nil {
			d.text(`<th scope="col" class="num">Cost</th>`)
		}
	}
	d.text("</tr></thead><tbody>\n")
}

func (d *drawing) row(b *Bar) {
	class := "k-" + string(b.Kind)
	if b.Failed {
		class += " failed"
	}
	if b.Ended == 0 {
		class += " lasts"
	}
	id, current := "", ""
	if b.Chosen {
		id, current = ` id="`+ChosenID+`"`, ` aria-current="true"`
	}
	fmt.Fprintf(d, `<tr class="%s"%s><th scope="row" class="d%d"><span class="kind">%s</span> `, class, id, b.depth, b.Kind)
	name := escape(b.Name, 120)
	if b.Href != "" {
		name = `<a href="` + template.HTMLEscapeString(b.Href) + `"` + current + `>` + name + `</a>`
	}
	d.text(name)
	if b.Detail != "" {
		fmt.Fprintf(d, ` <span class="detail">%s</span>`, escape(b.Detail, 240))
	}
	took := Duration(int64(b.end(d.Now) - b.Begun))
	if b.Kind == MarkBar {
		took = ""
	} else if b.Ended == 0 {
		took += " …"
	}
	from, to := d.scale.of(b.Begun), d.scale.of(b.end(d.Now))
	width := max(to-from, 0.4)
	fmt.Fprintf(d, `</th><td class="track"><svg aria-hidden="true" width="100%%" height="20"><use href="#%s-g"/><rect class="bar" x="%s%%" y="5" width="%s%%" height="10" rx="2"/></svg></td><td class="num">%s</td>`,
		template.HTMLEscapeString(d.ID), number(min(from, 100-width)), number(width), took)
	d.usage(b)
	d.text("</tr>\n")
}

func (d *drawing) usage(b *Bar) {
	u := b.Usage
	if !d.tokens {
		return
	}
	if tokens(u) == 0 {
		d.text(`<td class="num"></td>`)
	} else {
		fmt.Fprintf(d, `<td class="num">%s<span class="of"> in</span> %s<span class="of"> out</span></td>`, Count(u.InputTokens), Count(u.OutputTokens))
	}
	if d.Cost != nil && tokens(u) == 0 {
		d.text(`<td class="num"></td>`)
	} else if d.Cost != nil {
		fmt.Fprintf(d, `<td class="num">%s</td>`, template.HTMLEscapeString(d.Cost(b)))
	}
}

func tokens(u events.Usage) int64 { return u.InputTokens + u.OutputTokens }

// number formats a coordinate.
func number(f float64) string { return strconv.FormatFloat(math.Round(f*100)/100, 'f', -1, 64) }

// clip shortens a text that came from outside to a number of characters.
func clip(s string, n int) string {
	count := 0
	for i := range s {
		if count++; count > n {
			return s[:i] + "…"
		}
	}
	return s
}
