package api

import (
	"net"
	"net/http"
	"strings"
)

// ownHost refuses requests that name another host than this one. A foreign page can
// make a browser send requests to this port, through a name of its own that resolves to
// this machine; the browser sends that name.
func ownHost(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !hostIsOwn(r.Host) {
			http.Error(w, "the request names another host; ask by an address, or by localhost", http.StatusMisdirectedRequest)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// hostIsOwn reports whether a Host header is an address or localhost. Every browser
// sends one.
func hostIsOwn(host string) bool {
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		name = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	}
	return name == "" || strings.EqualFold(strings.TrimSuffix(name, "."), "localhost") || net.ParseIP(name) != nil
}
