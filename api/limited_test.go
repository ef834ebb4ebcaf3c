package api_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/skein-threads/skein/api/edge"
)

// What a credential may not do is refused with 403, also where the answer could have begun, and
// where there is nothing to do; and so is a request that names the server's own origin, and whose
// browser knows better.
func TestHandler_LimitedCredentialsAreRefused(t *testing.T) {
	t.Parallel()
	s := newStage(t, map[string]edge.Principal{
		"all": {Tenant: "acme", Subject: "key:a"}, "subscriber": {Tenant: "acme", Subject: "key:s", Roles: []string{"subscriber"}},
		"reader": {Tenant: "acme", Subject: "key:r", Can: []edge.Capability{edge.Read}},
	})
	s.teller()
	made := s.made("acme", "", "shared")
	file := "/api/threads/" + made.thread + "/files/a.txt"
	for name, c := range map[string]struct {
		who, method, path string
		headers           []string
		want              int
	}{
		"a file":                          {"all", http.MethodGet, file, nil, http.StatusOK},
		"a file's headers":                {"subscriber", http.MethodHead, file, nil, http.StatusOK},
		"a file's content":                {"subscriber", http.MethodGet, file, nil, http.StatusForbidden},
		"a part of a file's content":      {"subscriber", http.MethodGet, file, []string{"Range", "bytes=1-2"}, http.StatusForbidden},
		"a stop where nothing is active":  {"reader", http.MethodPost, "/chat/" + made.thread + "/stop", nil, http.StatusForbidden},
		"a stop":                          {"all", http.MethodPost, "/chat/" + made.thread + "/stop", nil, http.StatusOK},
		"a page of the server":            {"all", http.MethodGet, file, []string{"Origin", s.url, "Sec-Fetch-Site", "same-origin"}, http.StatusOK},
		"an old browser's page":           {"all", http.MethodGet, file, []string{"Origin", s.url}, http.StatusOK},
		"a page that is of another site":  {"all", http.MethodGet, file, []string{"Origin", s.url, "Sec-Fetch-Site", "cross-site"}, http.StatusForbidden},
		"a page that is of the same site": {"all", http.MethodGet, file, []string{"Origin", s.url, "Sec-Fetch-Site", "same-site"}, http.StatusForbidden},
	} {
		status, text := s.ask(c.who, c.method, c.path, "", c.headers...)
		if status != c.want || status == http.StatusForbidden && !strings.Contains(text, `"forbidden"`) {
			t.Errorf("%s: %d %.300s, want %d", name, status, text, c.want)
		}
	}
}
