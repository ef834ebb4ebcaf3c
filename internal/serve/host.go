package serve

import (
	"net"
	"net/http"
	"strings"
)

// ownHost refuses requests that name another host than this one. A page of a
// stranger can make a browser ask this port, by a name of its own that it has
// resolve to this machine; the browser says that name.
func ownHost(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !hostIsOwn(r.Host) {
			http.Error(w, "the request names another host; ask by an address, or by localhost", http.StatusMisdirectedRequest)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// hostIsOwn reports whether a Host header is an address or localhost. None at all
// is sent by no browser.
func hostIsOwn(host string) bool {
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		name = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	}
	return name == "" || strings.EqualFold(strings.TrimSuffix(name, "."), "localhost") || net.ParseIP(name) != nil
}
