package page

import (
	"net/http"
	"net/url"
	"path"
	"strings"

	"github.com/skein-threads/skein/api/edge"
	"github.com/skein-threads/skein/events"
)

func (s *server) routeSigning() {
	s.edge.HandlePublic("GET "+Root+"/sign-in", http.HandlerFunc(s.showSignIn))
	s.edge.HandlePublic("POST "+Root+"/sign-in", http.HandlerFunc(s.signIn))
	s.edge.HandlePublic("POST "+Root+"/sign-out", http.HandlerFunc(s.signOut))
}

// signing is the data of the sign-in page.
type signing struct {
	Next    string // the address to go to afterwards
	Problem string // why the last attempt failed, or why a sign-in is needed
	Out     bool   // the reader has just signed out
	Desk    bool   // no key is needed
}

func (s *server) showSignIn(w http.ResponseWriter, r *http.Request) {
	shown := signing{Next: ownAddress(r.URL.Query().Get("next")), Out: r.URL.Query().Has("out")}
	_, err := s.edge.Principal(r)
	switch {
	case err == nil:
		shown.Desk = !s.edge.Session(r)
	case s.edge.Session(r):
		shown.Problem = "Your session has ended: its key was revoked or has expired, or the server was restarted. Sign in again."
	case !events.HasCode(err, events.Unauthorized):
		shown.Problem = events.AsError(err).Message
	}
	s.signPage(w, http.StatusOK, shown)
}

func (s *server) signPage(w http.ResponseWriter, status int, shown signing) {
	secure(w)
	if err := s.show(w, status, &View{Page: Page{Name: "Sign in", Template: "sign-in"}, Data: shown, site: s}); err != nil {
		edge.WriteError(w, err)
	}
}

func (s *server) signIn(w http.ResponseWriter, r *http.Request) {
	err := s.edge.OwnPage(r)
	if err == nil {
		err = parseForm(w, r)
	}
	next := ownAddress(r.PostFormValue("next"))
	if err == nil {
		_, _, err = s.edge.SignIn(w, r, strings.TrimSpace(r.PostFormValue("key")))
	}
	if err != nil {
		problem, status := edge.ProblemOf(err)
		if status == http.StatusUnauthorized {
			problem.Message = "This key is not valid: it has another form, was revoked, or has expired."
		}
		s.signPage(w, status, signing{Next: next, Problem: problem.Message})
		return
	}
	if next == "" {
		next = Root + "/"
	}
	secure(w)
	http.Redirect(w, r, next, http.StatusSeeOther)
}

func (s *server) signOut(w http.ResponseWriter, r *http.Request) {
	secure(w)
	if err := s.edge.OwnPage(r); err != nil {
		s.refuse(w, r, err)
		return
	}
	if err := s.edge.SignOut(w, r); err != nil {
		s.refuse(w, r, err)
		return
	}
	w.Header().Set("Clear-Site-Data", `"cache"`)
	http.Redirect(w, r, Root+"/sign-in?out", http.StatusSeeOther)
}

// ownAddress returns address if it is one of the console, otherwise "", so that a link cannot
// redirect to another site.
func ownAddress(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "" || u.Host != "" || u.User != nil || !strings.HasPrefix(u.Path, Root+"/") || strings.ContainsAny(address, "\\\r\n\t") || strings.Contains(u.Path, "//") || path.Clean(u.Path) != strings.TrimSuffix(u.Path, "/") {
		return ""
	}
	return u.RequestURI()
}
