package page

import (
	"fmt"
	"html/template"
	"net/http"

	"github.com/skein-threads/skein/api/edge"
	"github.com/skein-threads/skein/events"
)

// Shared is a page for anyone who has its address, which contains a token; it needs no session and
// no key. It has its own layout without parts of the console, and is not live. The client of its
// ask may only read what the token opens.
type Shared struct {
	Path     string // below /console: it begins with /shared/{tenant}/
	Template string
	Load     func(*Ask) (title string, data any, err error)
}

// sharedView is the data of the layout of a shared page.
type sharedView struct {
	Title   string
	Content template.HTML
}

// routeShared adds the routes of shared pages.
func (s *server) routeShared() error {
	for _, p := range s.Shared {
		if s.templates.Lookup(p.Template) == nil {
			return fmt.Errorf("page %s: there is no template %q", p.Path, p.Template)
		}
		s.edge.HandleLink("GET "+Root+p.Path, func(w http.ResponseWriter, r *http.Request, c *edge.Caller) error {
			a := &Ask{Caller: c, Request: r}
			title, data, err := p.Load(a)
			if err != nil {
				return err
			}
			content, err := s.render(p.Template, &View{Ask: a, Data: data, site: s})
			if err != nil {
				return err
			}
			return s.showShared(w, http.StatusOK, sharedView{title, content})
		}, s.refuseShared)
	}
	s.edge.HandlePublic("GET "+Root+"/shared/{path...}", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.refuseShared(w, r, errNoPage())
	}))
	return nil
}

// secureShared sets the headers of every response to the holder of a link. The address is a secret
// that no search engine and no other site may learn.
func secureShared(w http.ResponseWriter) {
	secure(w)
	h := w.Header()
	h.Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; img-src data:; form-action 'none'; base-uri 'none'; frame-ancestors 'none'")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("X-Robots-Tag", "noindex, nofollow, noarchive")
}

func (s *server) showShared(w http.ResponseWriter, status int, v sharedView) error {
	whole, err := s.render("shared-layout", v)
	if err != nil {
		return err
	}
	secureShared(w)
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(whole)) // the reader may have gone
	return nil
}

// refuseShared answers with an error. The answer is the same for every invalid link, so that it
// does not reveal whether the thread, tenant or share exists.
func (s *server) refuseShared(w http.ResponseWriter, r *http.Request, err error) {
	p := problemOf(err)
	switch p.Status {
	case http.StatusTooManyRequests, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		p.Title, p.Text, p.Next = "Not now", "This page cannot be shown at the moment.", "Try again in a moment."
		w.Header().Set("Retry-After", "1")
	default:
		p = Problem{Title: "Nothing is shared here", Status: http.StatusNotFound, Text: "This link opens nothing.", Next: "It may be incomplete, or it was ended. Ask for a new one."}
	}
	content, err := s.render("shared-problem", p)
	if err == nil {
		err = s.showShared(w, p.Status, sharedView{p.Title, content})
	}
	if err != nil {
		edge.WriteError(w, events.Errorf(events.Unavailable, "the page cannot be shown"))
	}
}
