package markdown

import (
	"bytes"
	"fmt"
	"net/url"
	"strings"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/util"
)

// maxAddress is the length of an address that becomes a link.
const maxAddress = 2048

// nodes renders what the parser's own renderer would render with less care: HTML, links, images
// and code.
type nodes struct {
	languages func() languages // indexed with the first code that names one
	colors    colors
}

// RegisterFuncs implements renderer.NodeRenderer.
func (n nodes) RegisterFuncs(r renderer.NodeRendererFuncRegisterer) {
	r.Register(ast.KindHTMLBlock, n.htmlBlock)
	r.Register(ast.KindRawHTML, n.rawHTML)
	r.Register(ast.KindLink, n.link)
	r.Register(ast.KindImage, n.image)
	r.Register(ast.KindAutoLink, n.autoLink)
	r.Register(ast.KindFencedCodeBlock, n.fenced)
	r.Register(ast.KindCodeBlock, n.indented)
}

func (nodes) htmlBlock(w util.BufWriter, source []byte, node ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		return ast.WalkContinue, nil
	}
	block := node.(*ast.HTMLBlock)
	text := lines(block, source)
	if block.HasClosure() {
		text = append(text, block.ClosureLine.Value(source)...)
	}
	_, err := fmt.Fprintf(w, "<pre class=\"plain\">%s</pre>\n", util.EscapeHTML(bytes.TrimRight(text, "\n")))
	return ast.WalkSkipChildren, err
}

func (nodes) rawHTML(w util.BufWriter, source []byte, node ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		return ast.WalkContinue, nil
	}
	segments := node.(*ast.RawHTML).Segments
	for i := range segments.Len() {
		segment := segments.At(i)
		if _, err := w.Write(util.EscapeHTML(segment.Value(source))); err != nil {
			return ast.WalkStop, err
		}
	}
	return ast.WalkSkipChildren, nil
}

func (nodes) link(w util.BufWriter, _ []byte, node ast.Node, entering bool) (ast.WalkStatus, error) {
	address, ok := allowed(node.(*ast.Link).Destination)
	ok = ok && !inLink(node)
	return ast.WalkContinue, anchor(w, "", address, ok, entering)
}

// image renders a link to the image, whose text is the image's description.
func (nodes) image(w util.BufWriter, _ []byte, node ast.Node, entering bool) (ast.WalkStatus, error) {
	image := node.(*ast.Image)
	address, ok := allowed(image.Destination)
	ok = ok && !inLink(image) // a link holds no link
	err := anchor(w, "image", address, ok, entering)
	if err == nil && entering && !image.HasChildren() {
		_, err = w.WriteString("image")
	}
	return ast.WalkContinue, err
}

func inLink(n ast.Node) bool {
	for n = n.Parent(); n != nil; n = n.Parent() {
		if n.Kind() == ast.KindLink || n.Kind() == ast.KindImage {
			return true
		}
	}
	return false
}

func (nodes) autoLink(w util.BufWriter, source []byte, node ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		return ast.WalkContinue, nil
	}
	link := node.(*ast.AutoLink)
	to := link.URL(source)
	if link.AutoLinkType == ast.AutoLinkEmail && !bytes.HasPrefix(bytes.ToLower(to), []byte("mailto:")) {
		to = append([]byte("mailto:"), to...)
	}
	address, ok := allowed(to)
	ok = ok && !inLink(link)
	if err := anchor(w, "", address, ok, true); err != nil {
		return ast.WalkStop, err
	}
	if _, err := w.Write(util.EscapeHTML(link.Label(source))); err != nil {
		return ast.WalkStop, err
	}
	return ast.WalkContinue, anchor(w, "", address, ok, false)
}

// anchor writes the beginning or the end of a link. What may not be a link is only text.
func anchor(w util.BufWriter, class, address string, ok, entering bool) (err error) {
	switch {
	case !ok && entering:
		_, err = w.WriteString(`<span class="nolink">`)
	case !ok:
		_, err = w.WriteString("</span>")
	case entering:
		if class != "" {
			class = ` class="` + class + `"`
		}
		_, err = fmt.Fprintf(w, `<a%s href="%s" rel="noopener noreferrer nofollow" target="_blank">`, class, util.EscapeHTML([]byte(address)))
	default:
		_, err = w.WriteString("</a>")
	}
	return err
}

// allowed returns an address as it is written in an attribute, and whether it may be a link: an
// absolute one of a scheme that opens a page or a letter. A relative one would lead into the
// console.
func allowed(destination []byte) (string, bool) {
	if len(destination) > maxAddress {
		return "", false
	}
	address := string(util.URLEscape(destination, true))
	u, err := url.Parse(address)
	if err != nil {
		return "", false
	}
	switch strings.ToLower(u.Scheme) {
	case "http", "https":
		return address, u.Host != ""
	case "mailto":
		return address, true
	}
	return "", false
}

// lines returns the text of a block.
func lines(block ast.Node, source []byte) (text []byte) {
	for i := range block.Lines().Len() {
		segment := block.Lines().At(i)
		text = append(text, segment.Value(source)...)
	}
	return text
}
