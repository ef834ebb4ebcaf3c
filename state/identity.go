package state

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/excerpt"
)

// Where a request and its response carry the signed id of their thread.
const (
	ThreadHeader = "x-thread-id"
	ThreadCookie = "atid"
)

const cookieAge = 7 * 24 * time.Hour

// ThreadIDProvider names the thread of a request. It is asked at every request, and must be
// safe for concurrent use.
//
// The id must be as ValidThreadID says: any other is answered with 500, and nothing is stored.
// It is signed and returned to the client. An error that is an *events.Error is answered with
// the status of its code, and any other with 500.
type ThreadIDProvider interface {
	ThreadID(ctx context.Context, app AppState, r *http.Request) (string, error)
}

// ThreadIDFunc adapts a function to a ThreadIDProvider.
type ThreadIDFunc func(ctx context.Context, app AppState, r *http.Request) (string, error)

// ThreadID calls f.
func (f ThreadIDFunc) ThreadID(ctx context.Context, app AppState, r *http.Request) (string, error) {
	return f(ctx, app, r)
}

// UserThreads returns a provider of one thread for each user, whose id is derived from the
// user's, and of a new thread for each request without one. user returns the authenticated
// user of a request, or an empty text.
func UserThreads(user func(*http.Request) string) ThreadIDProvider {
	return ThreadIDFunc(func(_ context.Context, _ AppState, r *http.Request) (string, error) {
		id := user(r)
		if id == "" {
			return NewThreadID(), nil
		}
		sum := sha256.Sum256([]byte(id))
		return "thrd_" + hex.EncodeToString(sum[:])[:27], nil
	})
}

// ProxyUser returns the user that a proxy names in a header, such as x-user-id. It believes
// the header only if the request comes from one of the proxies' addresses: any client can send
// it. The proxies must remove it from what they forward.
func ProxyUser(header string, proxies ...netip.Prefix) func(*http.Request) string {
	return func(r *http.Request) string {
		if !comesFrom(r, proxies) {
			return ""
		}
		return r.Header.Get(header)
	}
}

// comesFrom reports whether a request was sent from one of the addresses.
func comesFrom(r *http.Request, addresses []netip.Prefix) bool {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return false
	}
	from, err := netip.ParseAddr(host)
	if err != nil {
		return false
	}
	from = from.Unmap().WithZone("")
	for _, p := range addresses {
		if p.Contains(from) {
			return true
		}
	}
	return false
}

// signedIDs is the default provider: the id of a signed header, or else of a signed cookie, or
// else a new one.
type signedIDs struct {
	keys   keyring
	logger *slog.Logger
}

// ThreadID implements ThreadIDProvider.
func (p signedIDs) ThreadID(ctx context.Context, _ AppState, r *http.Request) (string, error) {
	id, err := p.fromHeader(r)
	if err != nil || id != "" {
		return id, err
	}
	if id := p.fromCookie(ctx, r); id != "" {
		return id, nil
	}
	return NewThreadID(), nil
}

// fromHeader returns the id of the header; an empty text if there is none. The error is an
// unauthorized if it is not signed.
func (p signedIDs) fromHeader(r *http.Request) (string, error) {
	signed := r.Header.Values(ThreadHeader)
	if len(signed) == 0 {
		return "", nil
	}
	id, ok := p.keys.verify(signed[0])
	if !ok || len(signed) > 1 {
		return "", events.Errorf(events.Unauthorized, "the header %s has no valid signature; send the value of the response unchanged, or none for a new thread", ThreadHeader)
	}
	return id, nil
}

// fromCookie returns the id of the first signed cookie; an empty text if there is none.
func (p signedIDs) fromCookie(ctx context.Context, r *http.Request) string {
	ignored := 0
	for _, c := range r.CookiesNamed(ThreadCookie) {
		if signed, err := url.PathUnescape(c.Value); err == nil {
			if id, ok := p.keys.verify(signed); ok {
				return id
			}
		}
		ignored++
	}
	if ignored > 0 {
		p.logger.WarnContext(ctx, "cookies without a valid signature are ignored", "cookie", ThreadCookie, "count", ignored)
	}
	return ""
}

// identify returns the thread of a request, and whether the response must carry its id.
func (a *App) identify(r *http.Request) (id string, told bool, err error) {
	ctx := r.Context()
	if a.opts.RouteID != nil {
		if id := a.opts.RouteID(r); id != "" {
			return id, false, a.checkRoute(ctx, id, r)
		}
	}
	id, err = a.opts.ThreadIDs.ThreadID(ctx, a.state, r)
	if err != nil {
		return "", false, err
	}
	if !ValidThreadID(id) {
		return "", false, &invalidIDError{id}
	}
	return id, true, nil
}

// checkRoute checks the id of a route, and that a signed id in the request, if any, is the same.
func (a *App) checkRoute(ctx context.Context, id string, r *http.Request) error {
	if len(id) > maxThreadID || !events.ValidThreadID(id) {
		return events.Invalid("", "the route names the thread %.80q, which is not the id of one", id)
	}
	p := signedIDs{keys: a.keys, logger: a.opts.Logger}
	signed, err := p.fromHeader(r)
	if err != nil {
		return err
	}
	if signed == "" {
		signed = p.fromCookie(ctx, r)
	}
	if signed != "" && signed != id {
		return events.Invalid("", "the route names the thread %s, and the request is of another one; send only one of them", id)
	}
	return nil
}

// invalidIDError reports that a provider returned an invalid id.
type invalidIDError struct{ id string }

func (e *invalidIDError) Error() string {
	return "the provider of thread ids returned " + excerpt.Head(e.id, 80) + "; return thrd_ and 27 to 59 letters and digits"
}

// tell adds the signed id of a thread to a response.
func (a *App) tell(h http.Header, r *http.Request, id string) {
	signed := a.keys.sign(id)
	h.Set(ThreadHeader, signed)
	a.setCookie(h, r, url.PathEscape(signed), int(cookieAge/time.Second))
	if h.Get("Cache-Control") == "" {
		h.Set("Cache-Control", "private")
	}
	if r.Header.Get("Origin") != "" && !exposes(h) {
		h.Add("Access-Control-Expose-Headers", ThreadHeader)
	}
}

// setCookie replaces the cookie of a response; a negative age deletes it.
func (a *App) setCookie(h http.Header, r *http.Request, value string, age int) {
	secure := r.TLS != nil
	if forwarded := r.Header.Values("X-Forwarded-Proto"); !secure && len(forwarded) == 1 && comesFrom(r, a.opts.TrustedProxies) {
		secure = strings.EqualFold(forwarded[0], "https")
	}
	cookie := http.Cookie{Name: ThreadCookie, Value: value, Path: "/", MaxAge: age, HttpOnly: true, Secure: secure, SameSite: http.SameSiteLaxMode}
	h.Add("Set-Cookie", cookie.String())
}

// exposes reports whether a response already exposes the header to scripts.
func exposes(h http.Header) bool {
	for _, line := range h.Values("Access-Control-Expose-Headers") {
		for name := range strings.SplitSeq(line, ",") {
			if strings.EqualFold(strings.TrimSpace(name), ThreadHeader) {
				return true
			}
		}
	}
	return false
}
