package page

import (
	"errors"
	"fmt"
	"html/template"
	"io/fs"
	"net/http"
	"strings"

	"github.com/skein-threads/skein/api/edge"
	"github.com/skein-threads/skein/events"
)

// Site holds all pages and actions of the console.
type Site struct {
	Pages     []Page
	Actions   []Action
	Pictures  []Picture
	Shared    []Shared
	Templates fs.FS                     // *.html in the folder templates: those of the pages
	Funcs     template.FuncMap          // for these templates, besides those of this package
	Assets    map[string][]byte         // scripts and styles besides those of this package, by name
	Home      string                    // the path, below /console, of the first page
	Next      func(*Ask) (*Step, error) // returns the next step of a thread that is played; default: threads cannot be played
	Sign      func(*Ask) []Badge        // the badges in the head of all pages; default: none
}

// Badge is a number at a link of the navigation.
type Badge struct {
	Path  string // of the page
	Count int
}

// server serves a site.
type server struct {
	Site
	edge      *edge.Edge
	templates *template.Template
	assets    map[string]asset
}

// Routes adds the routes of a site to an edge.
func Routes(e *edge.Edge, site Site) error {
	s := &server{Site: site, edge: e}
	if err := s.openAssets(); err != nil {
		return err
	}
	if err := s.openTemplates(); err != nil {
		return err
	}
	for _, p := range site.Pages {
		if err := s.check(p); err != nil {
			return err
		}
		s.route("GET "+Root+pattern(p.Path), s.page(p))
		if len(p.Panels) > 0 || p.Follow != nil {
			e.Handle("GET "+Root+"/live"+pattern(p.Path), s.live(p))
		}
	}
	for _, a := range site.Actions {
		s.route("POST "+Root+pattern(a.Path), s.action(a))
	}
	for _, p := range site.Pictures {
		s.route("GET "+Root+pattern(p.Path), s.picture(p))
	}
	if err := s.routeShared(); err != nil {
		return err
	}
	s.route("GET "+Root+"/{$}", s.redirectHome)
	s.route("GET "+Root, s.redirectHome)
	e.HandlePublic("GET /{$}", http.RedirectHandler(Root+"/", http.StatusSeeOther)) // for readers who open the address in a browser
	s.route("GET "+Root+"/{path...}", s.unknown)
	e.HandlePublic("GET "+Root+"/static/{name...}", http.HandlerFunc(s.asset))
	s.routeSigning()
	return nil
}

// route adds a route that answers errors with a page.
func (s *server) route(pattern string, h edge.Handler) {
	s.edge.HandlePages(pattern, func(w http.ResponseWriter, r *http.Request, c *edge.Caller) error {
		secure(w)
		return h(w, r, c)
	}, s.refuse)
}

// pattern returns the pattern that matches a path exactly.
func pattern(path string) string {
	if strings.HasSuffix(path, "/") {
		return path + "{$}"
	}
	return path
}

// check returns an error if a page is not declared correctly.
func (s *server) check(p Page) error {
	if p.Path == "" || p.Name == "" {
		return errors.New("a page needs a path and a name")
	}
	if s.templates.Lookup(p.Template) == nil {
		return fmt.Errorf("page %s: there is no template %q", p.Path, p.Template)
	}
	if p.In == Tabs && !strings.HasPrefix(p.Path, "/threads/{thread}") {
		return fmt.Errorf("page %s is in the tabs of threads, and its path has no thread", p.Path)
	}
	for _, panel := range p.Panels {
		if s.templates.Lookup(panel.ID) == nil {
			return fmt.Errorf("page %s: there is no template %q of its panel", p.Path, panel.ID)
		}
	}
	return nil
}

// secure sets the headers of every answer of the console.
func secure(w http.ResponseWriter) {
	h := w.Header()
	h.Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; frame-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "same-origin") // without a policy, forms would send the origin null
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
}

// page returns the handler of a page.
func (s *server) page(p Page) edge.Handler {
	return func(w http.ResponseWriter, r *http.Request, c *edge.Caller) error {
		v, err := s.view(r, c, p)
		if err != nil {
			return err
		}
		return s.show(w, http.StatusOK, v)
	}
}

// view returns the data of a page.
func (s *server) view(r *http.Request, c *edge.Caller, p Page) (*View, error) {
	if err := s.admits(c, p); err != nil {
		return nil, err
	}
	a, err := newAsk(r, c)
	if err != nil {
		return nil, err
	}
	v := &View{Ask: a, Page: p, site: s}
	if p.Load != nil {
		v.Data, err = p.Load(a)
	}
	return v, err
}

// admits returns a refusal unless a caller may see a page.
func (s *server) admits(c *edge.Caller, p Page) error {
	if p.For != nil && !p.For(c) {
		return errNoPage()
	}
	return permits(c, p.Right, edge.Read)
}

// permits returns a forbidden unless the principal has the capability.
func permits(c *edge.Caller, right, other edge.Capability) error {
	if right == "" {
		right = other
	}
	if c.May(right) {
		return nil
	}
	return events.Errorf(events.Forbidden, "your key does not permit to %s; sign in with one that does", right)
}

// action returns the handler of an action.
func (s *server) action(a Action) edge.Handler {
	return func(w http.ResponseWriter, r *http.Request, c *edge.Caller) error {
		if err := s.edge.OwnPage(r); err != nil {
			return err
		}
		if err := permits(c, a.Right, edge.Write); err != nil {
			return err
		}
		if err := parseForm(w, r); err != nil {
			return err
		}
		ask, err := newAsk(r, c)
		if err != nil {
			return err
		}
		if a.Shows != nil {
			data, err := a.Shows(ask)
			if err != nil {
				return err
			}
			return s.show(w, http.StatusOK, &View{Ask: ask, Page: a.On, Data: data, site: s})
		}
		address, err := a.Do(ask)
		if err != nil {
			return err
		}
		if wantsJSON(r) {
			edge.WriteJSON(w, http.StatusOK, struct {
				Address string `json:"address"`
			}{address})
			return nil
		}
		http.Redirect(w, r, address, http.StatusSeeOther)
		return nil
	}
}

// parseForm reads the form of a request. Files of a form are read by its action.
func parseForm(w http.ResponseWriter, r *http.Request) error {
	if strings.HasPrefix(r.Header.Get("Content-Type"), "multipart/") {
		return nil
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	if err := r.ParseForm(); err != nil {
		if large := (*http.MaxBytesError)(nil); errors.As(err, &large) {
			return err
		}
		return events.Invalid("", "the form cannot be read: %w", err)
	}
	return nil
}

// wantsJSON reports whether a page's script sent the request, and not the browser itself.
func wantsJSON(r *http.Request) bool {
	return strings.Contains(r.Header.Get("Accept"), "application/json")
}

func (s *server) redirectHome(w http.ResponseWriter, r *http.Request, _ *edge.Caller) error {
	http.Redirect(w, r, Root+s.Home, http.StatusSeeOther)
	return nil
}

func (s *server) unknown(http.ResponseWriter, *http.Request, *edge.Caller) error {
	return errNoPage()
}

func errNoPage() error { return events.Errorf(events.NotFound, "the console has no such page") }
