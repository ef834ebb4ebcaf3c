package edge

import (
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/skein-threads/skein/events"
)

// checkHost refuses a request for another host than the listener's own and those of
// Options.Hosts. A foreign page can make a browser send requests here, through a name of its
// own that resolves to this machine; the browser sends that name.
func (e *Edge) checkHost(r *http.Request) error {
	local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if !ok { // no server received it: a program calls the handler
		return nil
	}
	host := e.hostOf(r)
	name, port := splitHost(host)
	address, own, err := net.SplitHostPort(local.String())
	switch {
	case err != nil:
		return nil
	case slices.ContainsFunc(e.opts.Hosts, func(allowed string) bool { return strings.EqualFold(allowed, name) }):
		return nil
	case (port == "" || port == own) && (name == "" || strings.EqualFold(name, "localhost") || name == "127.0.0.1" || name == "::1" || name == address):
		return nil
	}
	return &statusError{status: http.StatusMisdirectedRequest, code: "misdirected_request", text: "the request names another host, " + clip(host) + "; use the listener's address with its port, or name the host with --http-host"}
}

// hostOf returns the host that a client named, as a trusted proxy tells it.
func (e *Edge) hostOf(r *http.Request) string {
	if forwarded := lastOf(r.Header, "X-Forwarded-Host"); forwarded != "" && e.fromProxy(r) {
		return forwarded
	}
	return r.Host
}

// lastOf returns what the nearest proxy says in a header: the last of its values. Those before it
// are what that proxy was told, by others or by the client itself.
func lastOf(h http.Header, name string) string {
	list := h.Values(name)
	if len(list) == 0 {
		return ""
	}
	last := list[len(list)-1]
	return strings.TrimSpace(last[strings.LastIndexByte(last, ',')+1:])
}

// secure reports whether a client's connection is encrypted, as a trusted proxy tells it.
func (e *Edge) secure(r *http.Request) bool {
	return r.TLS != nil || e.fromProxy(r) && strings.EqualFold(lastOf(r.Header, "X-Forwarded-Proto"), "https")
}

// fromProxy reports whether a request came through a proxy of Options.Proxies.
func (e *Edge) fromProxy(r *http.Request) bool {
	at, err := netip.ParseAddrPort(r.RemoteAddr)
	return err == nil && slices.ContainsFunc(e.opts.Proxies, func(p netip.Prefix) bool { return p.Contains(at.Addr().Unmap()) })
}

func splitHost(host string) (name, port string) {
	name, port, err := net.SplitHostPort(host)
	if err != nil {
		name, port = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]"), ""
	}
	return strings.TrimSuffix(name, "."), port
}

// BaseURL returns the URL of this server by which a request asks it, with no slash at its end.
func (e *Edge) BaseURL(r *http.Request) string {
	if e.secure(r) {
		return "https://" + e.hostOf(r)
	}
	return "http://" + e.hostOf(r)
}

// sameOrigin reports whether a page of this server's own origin makes a request.
func (e *Edge) sameOrigin(r *http.Request) bool {
	return strings.EqualFold(r.Header.Get("Origin"), e.BaseURL(r))
}

// checkOrigin refuses a request of a page of another origin, unless Options.Origins has it:
// then it sets the headers that let the browser show the answer to the page. It reports
// whether the request only asks for those.
func (e *Edge) checkOrigin(w http.ResponseWriter, r *http.Request) (preflight bool, err error) {
	origin := r.Header.Get("Origin")
	if origin == "" {
		return false, nil
	}
	if e.sameOrigin(r) {
		switch site := r.Header.Get("Sec-Fetch-Site"); site {
		case "", "same-origin", "none":
			return false, nil
		default: // the browser knows the page better than a proxy that rewrote its headers
			return false, events.Errorf(events.Forbidden, "the request names this server's own origin, and its browser says %s; name the page's origin with --cors-origin", clip(site))
		}
	}
	if !slices.Contains(e.opts.Origins, origin) {
		return false, events.Errorf(events.Forbidden, "pages of the origin %s may not use this server; name it with --cors-origin", clip(origin))
	}
	h := w.Header()
	h.Set("Access-Control-Allow-Origin", origin)
	h.Add("Vary", "Origin")
	h.Set("Access-Control-Expose-Headers", "Skein-Log, Skein-Request-Id, X-Request-Id, Skein-Thread-Id, Skein-Execution-Id, WWW-Authenticate, Skein-Seq, ETag, Location, Retry-After, X-Vercel-Ai-Ui-Message-Stream")
	if r.Method != http.MethodOptions || r.Header.Get("Access-Control-Request-Method") == "" {
		return false, nil
	}
	h.Set("Access-Control-Allow-Methods", "GET, HEAD, POST, PUT, PATCH, DELETE")
	if asked := r.Header.Get("Access-Control-Request-Headers"); asked != "" {
		h.Set("Access-Control-Allow-Headers", clip(asked))
	}
	h.Set("Access-Control-Max-Age", "600")
	return true, nil
}
