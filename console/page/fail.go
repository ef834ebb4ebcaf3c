package page

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/skein-threads/skein/api/edge"
	"github.com/skein-threads/skein/events"
)

// Problem is a refusal or a failure, prepared for display.
type Problem struct {
	Title  string // what happened
	Text   string // the error's own words
	Code   string
	Status int
	Next   string // what to do
	Search string // what to search the threads for; empty: nothing
}

// problemOf prepares an error for display.
func problemOf(err error) Problem {
	told, status := edge.ProblemOf(err)
	p := Problem{Text: told.Message, Code: told.Code, Status: status}
	switch events.Code(told.Code) {
	case events.NotFound:
		p.Title, p.Next = "Not found", "It may have been deleted, belong to another tenant, or not exist yet."
	case events.Forbidden:
		p.Title, p.Next = "Not permitted", "Ask for a key with more rights, or sign in with another."
	case events.VersionConflict:
		p.Title, p.Next = "Someone was faster", "Reload the page, look at what has changed, and try again."
	case events.IllegalTransition:
		p.Title, p.Next = "Not possible now", "The thread has moved on since this page was loaded. Reload it."
	case events.QueueFull:
		p.Title, p.Next = "Too many at once", "Wait a moment, and try again."
	case events.ProjectionBehind:
		p.Title, p.Next = "Skein is catching up", "Nothing was lost, and commands work. Try again in a moment; the page System shows how far it is."
	case events.Unavailable:
		p.Title, p.Next = "Skein cannot answer now", "Nothing was lost. Try again in a moment; if it stays so, look at /readyz."
	case events.Unauthorized:
		p.Title, p.Next = "Signed out", "Sign in again."
	default:
		p.Title, p.Next = "That was refused", "Go back, correct it, and try again."
	}
	var none *noThreadError
	if errors.As(err, &none) {
		p.Title, p.Status, p.Search = "No such thread", http.StatusNotFound, strings.TrimPrefix(none.ref, "key:")
		p.Text = fmt.Sprintf("No thread of this tenant has the id or key %.200q.", none.ref)
		p.Next = "It may have been deleted, or its id was cut when it was copied. An address has the whole id, or key: and the whole key. Search for a part of it:"
	}
	return p
}

// refuse answers with an error: a page, or JSON for the script of one.
func (s *server) refuse(w http.ResponseWriter, r *http.Request, err error) {
	secure(w)
	p := problemOf(err)
	switch {
	case wantsJSON(r):
		edge.WriteError(w, err)
		return
	case p.Status == http.StatusUnauthorized && (r.Method == http.MethodGet || r.Method == http.MethodHead):
		http.Redirect(w, r, Root+"/sign-in?next="+url.QueryEscape(r.URL.RequestURI()), http.StatusSeeOther)
		return
	}
	v := &View{Page: Page{Name: p.Title, Template: "problem"}, Data: p, site: s}
	if who, err := s.edge.Principal(r); err == nil {
		v.Ask = &Ask{Caller: &edge.Caller{Principal: who}, Request: r}
	}
	if failed := s.show(w, p.Status, v); failed != nil {
		edge.WriteError(w, errors.Join(err, failed))
	}
}
