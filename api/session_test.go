package api_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/skein-threads/skein"
	"github.com/skein-threads/skein/api/keys"
	"github.com/skein-threads/skein/operator/access"
)

// guarded starts a server with keys, and returns its URL and folder, and a key.
func guarded(t *testing.T) (url string, folder *access.Folder, made keys.Key, key string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "access")
	folder, err := access.Init(dir, access.InitOptions{})
	if err != nil {
		t.Fatal(err)
	}
	made, key, err = folder.AddKey(keys.Key{Tenant: "acme", Roles: []string{"publisher", "subscriber"}})
	if err != nil {
		t.Fatal(err)
	}
	return start(t, func(o *skein.Options) { o.Access = dir }), folder, made, key
}

// A ticket stands for the credential in one GET, and for nothing else.
func TestSession_Tickets(t *testing.T) {
	t.Parallel()
	url, folder, made, key := guarded(t)
	if a := ask(t, url, "POST", "/api/tickets"); a.status != http.StatusUnauthorized {
		t.Errorf("a ticket for no key: %d", a.status)
	}
	ticket := func() string {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/api/tickets", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+key)
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		var got struct{ Ticket, ExpiresAt string }
		if err := json.NewDecoder(answer.Body).Decode(&got); err != nil || got.Ticket == "" || got.ExpiresAt == "" {
			t.Fatalf("%+v, %v", got, err)
		}
		return got.Ticket
	}
	one := ticket()
	for what, c := range map[string]struct {
		method, target string
		want           int
	}{
		"another": {"GET", "/api/threads?ticket=x", 401}, "a key in its place": {"GET", "/api/threads?ticket=" + key, 401}, "for a change": {"POST", "/api/threads?ticket=" + ticket(), 401},
	} {
		if a := ask(t, url, c.method, c.target); a.status != c.want {
			t.Errorf("%s: %d, want %d", what, a.status, c.want)
		}
	}
	if a := ask(t, url, "GET", "/api/threads?ticket="+one); a.status != http.StatusOK {
		t.Errorf("the first use: %d", a.status)
	}
	if a := ask(t, url, "GET", "/api/threads?ticket="+one); a.status != http.StatusUnauthorized {
		t.Errorf("the second use: %d", a.status)
	}
	last := ticket()
	if err := folder.RevokeKey(made.ID); err != nil {
		t.Fatal(err)
	}
	for ask(t, url, "GET", "/api/threads", "Authorization: Bearer "+key).status != http.StatusUnauthorized { // until it is noticed
	}
	if a := ask(t, url, "GET", "/api/threads?ticket="+last); a.status != http.StatusUnauthorized {
		t.Errorf("a ticket of a revoked key: %d", a.status)
	}
}

// A session stands for the key that it was signed in with, in requests of the server's own
// pages, until it is signed out, another one takes its place, or the key is revoked.
func TestSession_Cookies(t *testing.T) {
	t.Parallel()
	url, folder, made, key := guarded(t)
	own := "Origin: " + url
	signIn := func(kind, body string, headers ...string) (*http.Cookie, int) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/console/session", bytes.NewBufferString(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", kind)
		for _, h := range headers {
			name, value, _ := strings.Cut(h, ": ")
			r.Header.Set(name, value)
		}
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
		if list := answer.Cookies(); len(list) == 1 {
			return list[0], answer.StatusCode
		}
		return nil, answer.StatusCode
	}
	for _, wrong := range []string{`{"key":"` + key + `x"}`, `{"key":"skein_x_y"}`} {
		if _, status := signIn("application/json", wrong, own); status != http.StatusUnauthorized {
			t.Errorf("%s: %d", wrong, status)
		}
	}
	for _, wrong := range []string{`{`, `{}`, `[]`, ``} {
		if _, status := signIn("application/json", wrong, own); status != http.StatusBadRequest {
			t.Errorf("%q: %d", wrong, status)
		}
	}
	if _, status := signIn("application/json", `{"key":"`+key+`"}`, "Origin: https://evil.example"); status != http.StatusForbidden {
		t.Errorf("from another origin: %d", status)
	}
	first, status := signIn("application/json", `{"key":"`+key+`"}`, own)
	if status != http.StatusOK || first == nil || first.Name != "skein" || !first.HttpOnly || first.SameSite != http.SameSiteLaxMode || first.MaxAge != 12*60*60 || first.Path != "/" {
		t.Fatalf("%d %+v", status, first)
	}
	with := func(c *http.Cookie) string { return "Cookie: " + c.Name + "=" + c.Value }
	for what, c := range map[string]struct {
		method  string
		headers []string
		want    int
	}{
		"reading":                      {"GET", nil, 200},
		"a program without an origin":  {"POST", nil, 403},
		"a page of another origin":     {"POST", []string{"Origin: https://evil.example"}, 403},
		"a page that hides its origin": {"POST", []string{"Origin: null"}, 403},
		"a page of another site":       {"POST", []string{"Sec-Fetch-Site: cross-site"}, 403},
		"a socket without an origin":   {"GET", []string{"Upgrade: websocket"}, 403},
	} {
		if a := ask(t, url, c.method, "/api/threads", append(c.headers, with(first))...); a.status != c.want {
			t.Errorf("%s: %d, want %d", what, a.status, c.want)
		}
	}
	if a := ask(t, url, "POST", "/api/tickets", own, with(first)); a.status != http.StatusCreated {
		t.Errorf("a change by an own page: %d", a.status)
	}
	second, _ := signIn("application/x-www-form-urlencoded", "key="+key, own, with(first))
	if second == nil || second.Value == first.Value {
		t.Fatalf("%+v", second)
	}
	if a := ask(t, url, "GET", "/api/threads", with(first)); a.status != http.StatusUnauthorized {
		t.Errorf("the session before the sign-in: %d", a.status)
	}
	third, _ := signIn("application/json", `{"key":"`+key+`"}`, own)
	if a := ask(t, url, "DELETE", "/console/session", own, with(third)); a.status != http.StatusNoContent {
		t.Errorf("signing out: %d", a.status)
	}
	if a := ask(t, url, "GET", "/api/threads", with(third)); a.status != http.StatusUnauthorized {
		t.Errorf("after signing out: %d", a.status)
	}
	if err := folder.RevokeKey(made.ID); err != nil {
		t.Fatal(err)
	}
	for ask(t, url, "GET", "/api/threads", with(second)).status != http.StatusUnauthorized { // until it is noticed
	}
}
