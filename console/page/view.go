package page

import (
	"bytes"
	"fmt"
	"hash/fnv"
	"html/template"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/skein-threads/skein/api/edge"
)

// View is the data of a template of a page or a panel.
type View struct {
	*Ask
	Page Page
	Data any // what the page or the panel loaded

	site    *server
	content template.HTML // the rendered page, for the layout
}

// show answers with a page.
func (s *server) show(w http.ResponseWriter, status int, v *View) error {
	content, err := s.render(v.Page.Template, v)
	if err != nil {
		return err
	}
	v.content = content
	whole, err := s.render("layout", v)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(whole)) // the reader may have gone
	return nil
}

func (s *server) render(name string, v any) (template.HTML, error) {
	var b bytes.Buffer
	if err := s.templates.ExecuteTemplate(&b, name, v); err != nil {
		return "", fmt.Errorf("template %s: %w", name, err)
	}
	return template.HTML(b.String()), nil
}

// Content returns the page, for its layout.
func (v *View) Content() template.HTML { return v.content }

// Panel returns a panel of the page, in an element with the panel's id, by which it is replaced.
func (v *View) Panel(id string) (template.HTML, error) {
	for _, p := range v.Page.Panels {
		if p.ID == id {
			inner, err := v.site.panel(v.Ask, v.Page, p)
			if err != nil {
				return "", err
			}
			return template.HTML(`<div class="panel" id="`+id+`" data-panel data-digest="`+digest(inner)+`">`) + inner + `</div>`, nil
		}
	}
	return "", fmt.Errorf("the page %s has no panel %q", v.Page.Path, id)
}

// panel renders a panel. If that fails, the error is shown in its place.
func (s *server) panel(a *Ask, page Page, p Panel) (template.HTML, error) {
	data, err := p.Load(a)
	if err != nil {
		if a.Context().Err() != nil {
			return "", err
		}
		return s.render("panel-error", problemOf(err))
	}
	return s.render(p.ID, &View{Ask: a, Page: page, Data: data, site: s})
}

// digest returns a short digest of a panel.
func digest(h template.HTML) string {
	sum := fnv.New64a()
	_, _ = sum.Write([]byte(h))
	return strconv.FormatUint(sum.Sum64(), 36)
}

// Modules returns the scripts that console.js imports, so that a browser fetches them with it. The
// first paint waits for them: a conversation is painted at its end, and times in the reader's zone.
func (v *View) Modules() []string {
	var names []string
	for name := range v.site.assets {
		if strings.HasSuffix(name, ".js") && name != "console.js" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// Link is a link to a page.
type Link struct {
	Name, Address string
	Here          bool
	Count         int
}

// Nav returns the links of the navigation.
func (v *View) Nav() []Link {
	var links []Link
	counts := map[string]int{}
	if v.site.Sign != nil && v.Ask != nil && v.Caller != nil {
		for _, b := range v.site.Sign(v.Ask) {
			counts[b.Path] = b.Count
		}
	}
	for _, p := range v.site.Pages {
		if p.In != Navigation || v.site.admits(v.Caller, p) != nil {
			continue
		}
		here := v.Page.Path == p.Path || p.Path != "/" && strings.HasPrefix(v.Page.Path, p.Path+"/")
		links = append(links, Link{Name: p.Name, Address: Root + p.Path, Here: here, Count: counts[p.Path]})
	}
	return links
}

// Tabs returns the links to the pages of the thread.
func (v *View) Tabs() []Link {
	var links []Link
	for _, p := range v.site.Pages {
		if p.In == Tabs && v.site.admits(v.Caller, p) == nil {
			links = append(links, Link{Name: p.Name, Address: v.ThreadLink(strings.TrimPrefix(p.Path, "/threads/{thread}")), Here: p.Path == v.Page.Path})
		}
	}
	return links
}

// MaySignOut reports whether there is a session to end. Without keys there is none.
func (v *View) MaySignOut() bool { return v.site.edge.Session(v.Request) }

// MayWrite reports whether the principal may change threads.
func (v *View) MayWrite() bool { return v.May(edge.Write) }

// ForkAddress returns the address of the action that forks the thread as it is shown.
func (v *View) ForkAddress() string { return v.ThreadLink("/fork") }

// InThread reports whether the page is one of the tabs of a thread.
func (v *View) InThread() bool { return v.Page.In == Tabs && v.Thread != nil }

// LiveAddress returns the address at which a browser follows the page; empty if it shows the
// past, or the principal may not follow.
func (v *View) LiveAddress() string {
	if v.Ask == nil || v.Caller == nil || !v.Live() || !v.Follows() || len(v.Page.Panels) == 0 && v.Page.Follow == nil {
		return ""
	}
	q := v.Request.URL.Query()
	if v.Thread != nil {
		q.Set("seq", strconv.FormatInt(v.Thread.Seq, 10))
	}
	return Root + "/live" + strings.TrimPrefix(v.Request.URL.EscapedPath(), Root) + "?" + q.Encode()
}

// JSONAddress returns the address of the page's content as JSON; empty if there is none.
func (v *View) JSONAddress() string {
	return v.fill(v.Page.JSON, url.PathEscape, v.atQuery())
}

// Command returns the command that shows the page's content; empty if there is none.
func (v *View) Command() string {
	at := ""
	if v.Ask != nil && v.At != nil {
		if !strings.Contains(v.Page.CLI, "{at}") { // the command shows the present only
			return ""
		}
		if at = " --at " + v.At.Time; v.At.Version != nil {
			at = " --at " + strconv.FormatInt(*v.At.Version, 10)
		}
	}
	return v.fill(v.Page.CLI, quoteWord, at)
}

// places matches the placeholders in the paths and commands of pages.
var places = regexp.MustCompile(`\{[a-z]+\}`)

// fill replaces the placeholders in a text by values of the path.
func (v *View) fill(text string, quote func(string) string, at string) string {
	return places.ReplaceAllStringFunc(text, func(place string) string {
		switch name := place[1 : len(place)-1]; {
		case name == "at":
			return at
		case name == "query":
			return v.query()
		case name == "thread" && v.Thread != nil:
			return quote(v.Thread.ID)
		case slices.Contains(v.Page.Query, name):
			return quote(v.param(name))
		default:
			return quote(v.Request.PathValue(name))
		}
	})
}

// query returns the parameters of the address that the JSON address also accepts.
func (v *View) query() string {
	q := url.Values{}
	for _, name := range v.Page.Query {
		if value := v.param(name); value != "" {
			q.Set(name, value)
		}
	}
	if at := v.atQuery(); at != "" {
		q.Set("at", v.Ask.Query("at"))
	}
	return join("", q)
}

// param returns a parameter of the address, translated by the page's data if that is Params.
func (v *View) param(name string) string {
	if of, ok := v.Data.(Params); ok {
		return of.Param(name)
	}
	return v.Ask.Query(name)
}

// plainWord matches a word that a shell leaves as it is.
var plainWord = regexp.MustCompile(`^[A-Za-z0-9_./:@-]+$`)

// quoteWord returns a word of a command, quoted where a shell would change it.
func quoteWord(word string) string {
	if plainWord.MatchString(word) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
