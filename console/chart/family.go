package chart

import (
	"fmt"
	"html/template"
	"strings"

	"github.com/skein-threads/skein/console/markdown"
)

// MaxNodes is how many threads a family draws.
const MaxNodes = 200

// Node is a thread of a family.
type Node struct {
	ID     string
	Title  string
	Detail string // such as its agent and when it began
	Status string // of its machine
	Href   string
	Here   bool // the one that is looked at
}

// Relation leads from a thread to one that came from it, or that it mentions.
type Relation struct {
	From, To string // ids of nodes
	Kind     string // fork, handoff, mention or subagent
	Detail   string // such as what it is for
}

// Family is threads that are related.
type Family struct {
	ID        string // unique on its page: letters, digits, dashes and underscores
	Title     string
	Nodes     []Node
	Relations []Relation
	Left      int // threads that are not in Nodes
}

// The measures of the drawing.
const (
	nodeWidth, nodeHeight = 240, 48
	columnGap, rowGap     = 96, 16
)

// placed is a node with its place.
type placed struct {
	Node
	kind, detail string // of the relation that leads to it
	parent       int    // its index; -1: none
	column, row  int
}

// HTML returns the family as a drawing of linked boxes, and as a list.
func (f Family) HTML() template.HTML {
	if len(f.Nodes) == 0 {
		return `<p class="empty">This thread is related to no other.</p>` + "\n"
	}
	left := f.Left
	if len(f.Nodes) > MaxNodes {
		left += len(f.Nodes) - MaxNodes
		f.Nodes = f.Nodes[:MaxNodes]
	}
	nodes, others := f.place()
	var b strings.Builder
	f.draw(&b, nodes, others)
	f.list(&b, nodes, others)
	if left > 0 {
		fmt.Fprintf(&b, `<p class="cut">%s more threads are not drawn.</p>`+"\n", Count(int64(left)))
	}
	return template.HTML(b.String())
}

// place puts every node below the first relation that leads to it, and returns the relations
// that are not drawn that way.
func (f Family) place() (nodes []placed, others []Relation) {
	index, entered := map[string]int{}, map[string]bool{}
	below := map[string][]Relation{}
	for i, n := range f.Nodes {
		index[n.ID] = i
	}
	for _, r := range f.Relations {
		_, from := index[r.From]
		_, to := index[r.To]
		switch {
		case !from || !to || r.From == r.To:
		case r.Kind == "mention" || entered[r.To]: // a mention is no descent
			others = append(others, r)
		default:
			entered[r.To] = true
			below[r.From] = append(below[r.From], r)
		}
	}
	row, at := 0, map[string]int{}
	var walk func(id string, r Relation, parent, column int)
	walk = func(id string, r Relation, parent, column int) {
		if _, done := at[id]; done {
			return
		}
		me := len(nodes)
		at[id] = me
		nodes = append(nodes, placed{Node: f.Nodes[index[id]], kind: r.Kind, detail: r.Detail, parent: parent, column: column, row: row})
		for i, next := range below[id] {
			if i > 0 {
				row++
			}
			walk(next.To, next, me, column+1)
		}
	}
	for _, n := range f.Nodes {
		if !entered[n.ID] {
			walk(n.ID, Relation{}, -1, 0)
			row++
		}
	}
	for _, n := range f.Nodes { // ancestors of one another
		if _, done := at[n.ID]; !done {
			walk(n.ID, Relation{}, -1, 0)
			row++
		}
	}
	return nodes, others
}

func (p *placed) x() int { return p.column * (nodeWidth + columnGap) }
func (p *placed) y() int { return p.row * (nodeHeight + rowGap) }

func (f Family) draw(b *strings.Builder, nodes []placed, others []Relation) {
	width, height, at := 0, 0, map[string]*placed{}
	for i := range nodes {
		p := &nodes[i]
		at[p.ID] = p
		width, height = max(width, p.x()+nodeWidth), max(height, p.y()+nodeHeight)
	}
	if len(others) > 0 {
		width += columnGap / 2
	}
	id := template.HTMLEscapeString(f.ID)
	fmt.Fprintf(b, `<div class="scroll" tabindex="0" role="region" aria-labelledby="%s-t"><svg class="family" role="group" aria-labelledby="%s-t %s-d" width="%d" height="%d" viewBox="-2 -2 %d %d">`,
		id, id, id, width+4, height+4, width+4, height+4)
	fmt.Fprintf(b, `<title id="%s-t">%s</title><desc id="%s-d">%d threads and how they are related; the list below says the same.</desc>`+"\n",
		id, escape(f.Title, 200), id, len(nodes))
	for i := range nodes {
		if p := &nodes[i]; p.parent >= 0 {
			edge(b, &nodes[p.parent], p)
		}
	}
	for _, r := range others {
		aside(b, at[r.From], at[r.To], r)
	}
	for i := range nodes {
		box(b, &nodes[i])
	}
	b.WriteString("</svg></div>\n")
}

// edge draws the relation between a node and one below it.
func edge(b *strings.Builder, from, to *placed) {
	x, y := from.x()+nodeWidth, from.y()+nodeHeight/2
	tx, ty := to.x(), to.y()+nodeHeight/2
	middle := tx - columnGap*3/4
	fmt.Fprintf(b, `<path class="r-%s" d="M%d %dH%dV%dH%d"/><text class="edge" x="%d" y="%d" text-anchor="middle">%s</text>`+"\n",
		escape(to.kind, 40), x, y, middle, ty, tx, tx-columnGap*3/8, ty-5, escape(to.kind, 12))
}

// aside draws a relation that is no descent.
func aside(b *strings.Builder, from, to *placed, r Relation) {
	x, y := from.x()+nodeWidth, from.y()+nodeHeight/2+10
	tx, ty := to.x()+nodeWidth, to.y()+nodeHeight/2+10
	bow := max(x, tx) + columnGap/2
	fmt.Fprintf(b, `<path class="r-%s aside" d="M%d %dC%d %d %d %d %d %d"><title>%s</title></path>`+"\n",
		escape(r.Kind, 40), x, y, bow, y, bow, ty, tx, ty, escape(r.Kind+" "+r.Detail, 200))
}

func box(b *strings.Builder, p *placed) {
	class := "node s-" + escape(p.Status, 40)
	if p.Here {
		class += " here"
	}
	fmt.Fprintf(b, `<a href="%s" class="%s"><title>%s</title><rect x="%d" y="%d" width="%d" height="%d" rx="6"/><circle cx="%d" cy="%d" r="4"/><text x="%d" y="%d">%s</text><text class="detail" x="%d" y="%d">%s</text></a>`+"\n",
		template.HTMLEscapeString(p.Href), class, escape(p.Title, 300), p.x(), p.y(), nodeWidth, nodeHeight,
		p.x()+14, p.y()+18, p.x()+26, p.y()+22, escape(p.Title, 23), p.x()+26, p.y()+38, escape(p.Detail, 30))
}

// list says in words what is drawn.
func (f Family) list(b *strings.Builder, nodes []placed, others []Relation) {
	b.WriteString(`<details class="as-list"><summary>As a list</summary><table><thead><tr><th scope="col">Thread</th><th scope="col">Status</th><th scope="col">Came from</th><th scope="col">By</th></tr></thead><tbody>` + "\n")
	titles := map[string]string{}
	for i := range nodes {
		p := &nodes[i]
		titles[p.ID] = p.Title
		from := ""
		if p.parent >= 0 {
			from = nodes[p.parent].Title
		}
		fmt.Fprintf(b, `<tr><th scope="row" class="d%d"><a href="%s">%s</a></th><td>%s</td><td>%s</td><td>%s</td></tr>`+"\n",
			min(p.column, maxDepth), template.HTMLEscapeString(p.Href), escape(p.Title, 120), escape(p.Status, 40), escape(from, 120), escape(strings.TrimSpace(p.kind+" "+p.detail), 240))
	}
	for _, r := range others {
		fmt.Fprintf(b, `<tr><th scope="row">%s</th><td></td><td>%s</td><td>%s</td></tr>`+"\n", escape(titles[r.To], 120), escape(titles[r.From], 120), escape(strings.TrimSpace(r.Kind+" "+r.Detail), 240))
	}
	b.WriteString("</tbody></table></details>\n")
}

// escape returns a text that came from outside as HTML, at most n characters of it.
func escape(s string, n int) string { return template.HTMLEscapeString(markdown.Visible(clip(s, n))) }
