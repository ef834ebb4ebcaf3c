package edge

import (
	"errors"
	"mime"
	"net/http"
	"net/url"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/skein-threads/skein/events"
)

// Lives of what stands for a credential where a browser cannot send one.
const (
	ticketLasts  = time.Minute
	sessionLasts = 12 * time.Hour
)

// principal returns who makes a request: by a ticket, a session, or a credential.
func (e *Edge) principal(r *http.Request) (Principal, error) {
	if ticket := r.URL.Query().Get("ticket"); ticket != "" {
		refused := events.Errorf(events.Unauthorized, "the ticket is not valid: it is for one GET, within a minute; ask for another with POST /api/tickets")
		if r.Method != http.MethodGet {
			return Principal{}, refused
		}
		return e.tickets.byPass(r, ticket, refused)
	}
	if _, ok := Bearer(r); !ok {
		if cookie, err := r.Cookie(e.cookieName(r)); err == nil {
			switch p, err := e.sessions.find(r.Context(), cookie.Value); {
			case err == nil:
				return p, e.ownPage(r)
			case !errors.Is(err, errNoPass):
				return Principal{}, err
			}
		}
	}
	return e.opts.Auth.Authenticate(r)
}

// ownPage refuses a change, or a socket, that a session's cookie came with, unless a page of
// this origin makes it. Pages of other origins with the header Origin are refused already.
func (e *Edge) ownPage(r *http.Request) error {
	safe := (r.Method == http.MethodGet || r.Method == http.MethodHead) && r.Header.Get("Upgrade") == ""
	if safe || e.sameOrigin(r) || r.Header.Get("Sec-Fetch-Site") == "same-origin" {
		return nil
	}
	return events.Errorf(events.Forbidden, "a session is used by pages of this origin only; send a key instead")
}

// RouteSessions adds the routes of tickets and sessions.
func RouteSessions(e *Edge) {
	e.Handle("POST /api/tickets", e.giveTicket)
	e.HandlePublic("POST /console/session", http.HandlerFunc(e.signIn))
	e.HandlePublic("DELETE /console/session", http.HandlerFunc(e.signOut))
}

func (e *Edge) giveTicket(w http.ResponseWriter, r *http.Request, c *Caller) error {
	token, made, err := e.tickets.add(r.Context(), c.Principal)
	if err != nil {
		return err
	}
	w.Header().Set("Cache-Control", "no-store")
	WriteJSON(w, http.StatusCreated, struct {
		Ticket  string    `json:"ticket"`
		Expires time.Time `json:"expiresAt"`
	}{token, made.Until})
	return nil
}

// signIn exchanges a key for a session.
func (e *Edge) signIn(w http.ResponseWriter, r *http.Request) {
	key, err := keyOf(w, r)
	var who Principal
	var until time.Time
	if err == nil {
		who, until, err = e.SignIn(w, r, key)
	}
	if err != nil {
		WriteError(w, err)
		return
	}
	w.Header().Set("Cache-Control", "no-store")
	WriteJSON(w, http.StatusOK, struct {
		Tenant  string    `json:"tenant"`
		Roles   []string  `json:"roles"`
		Expires time.Time `json:"expiresAt"`
	}{who.Tenant, who.Roles, until})
}

// SignIn begins a session for the principal of a key, which replaces the request's session, and
// sets its cookie. It returns when the session ends.
func (e *Edge) SignIn(w http.ResponseWriter, r *http.Request, key string) (Principal, time.Time, error) {
	asked := r.Clone(r.Context())
	asked.Header.Set("Authorization", "Bearer "+key)
	who, err := e.opts.Auth.Authenticate(asked)
	if err != nil {
		return who, time.Time{}, err
	}
	token, made, err := e.sessions.add(r.Context(), who)
	if err != nil {
		return who, time.Time{}, err
	}
	if err := e.endSession(r); err != nil {
		return who, time.Time{}, err
	}
	http.SetCookie(w, e.cookie(r, token, int(sessionLasts.Seconds())))
	return who, made.Until, nil
}

// SignOut ends the session of a request, and removes its cookie. It keeps the cookie of one that it
// cannot end: the error is an unavailable.
func (e *Edge) SignOut(w http.ResponseWriter, r *http.Request) error {
	if err := e.endSession(r); err != nil {
		return err
	}
	http.SetCookie(w, e.cookie(r, "", -1))
	return nil
}

// Session reports whether a request came with the cookie of a session, valid or not.
func (e *Edge) Session(r *http.Request) bool {
	_, err := r.Cookie(e.cookieName(r))
	return err == nil
}

// Principal returns who makes a request. The error is an *events.Error, unauthorized if the
// request has no valid credential.
func (e *Edge) Principal(r *http.Request) (Principal, error) { return e.principal(r) }

// OwnPage returns a forbidden unless a page of this server's own origin makes the request.
func (e *Edge) OwnPage(r *http.Request) error {
	if e.sameOrigin(r) || r.Header.Get("Sec-Fetch-Site") == "same-origin" {
		return nil
	}
	return events.Errorf(events.Forbidden, "only pages of this origin may do this")
}

// keyOf returns the key in the body of a request, a JSON object or a form.
func keyOf(w http.ResponseWriter, r *http.Request) (string, error) {
	r.Body = http.MaxBytesReader(w, r.Body, 8<<10)
	kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")) // an unknown one is taken as JSON
	var body struct {
		Key string `json:"key"`
	}
	if kind == "application/x-www-form-urlencoded" {
		if err := r.ParseForm(); err != nil {
			return "", events.Invalid("/key", "the form cannot be read: %w", err)
		}
		body.Key = url.Values(r.PostForm).Get("key")
	} else if err := json.UnmarshalRead(r.Body, &body); err != nil {
		return "", events.Invalid("/key", "the body is not {\"key\": KEY}: %w", err)
	}
	if body.Key == "" {
		return "", events.Invalid("/key", "a key is required")
	}
	return body.Key, nil
}

func (e *Edge) signOut(w http.ResponseWriter, r *http.Request) {
	if err := e.SignOut(w, r); err != nil {
		WriteError(w, err)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

func (e *Edge) endSession(r *http.Request) error {
	old, err := r.Cookie(e.cookieName(r))
	if err != nil {
		return nil // it has none
	}
	return e.sessions.remove(r.Context(), old.Value)
}

// cookieName returns the name of the session's cookie. Browsers drop one with the prefix
// __Host- that is not for encrypted connections only.
func (e *Edge) cookieName(r *http.Request) string {
	if e.secure(r) {
		return "__Host-skein"
	}
	return "skein"
}

func (e *Edge) cookie(r *http.Request, token string, seconds int) *http.Cookie {
	return &http.Cookie{Name: e.cookieName(r), Value: token, Path: "/", MaxAge: seconds, HttpOnly: true, Secure: e.secure(r), SameSite: http.SameSiteLaxMode}
}
