package state_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/state"
)

const anID = "thrd_abc123def456789012345678901"

// sign signs an id as anybody with the key can.
func sign(key, id string) string {
	mac := hmac.New(sha256.New, []byte(key))
	mac.Write([]byte(id))
	return id + ";" + base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

func cookieOf(signed string) string { return "atid=" + url.PathEscape(signed) }

func TestValidThreadID(t *testing.T) { // AG-54 AG-55 AG-56 AG-57 AG-58 AG-59
	t.Parallel()
	for id, want := range map[string]bool{
		anID: true, "thrd_" + strings.Repeat("a", 59): true, "thrd_" + strings.Repeat("aZ0", 9): true,
		"thrd_abc": false, "thrd_abc-def-123": false, "thread_abc123": false, "thrd_" + strings.Repeat("a", 26): false, "thrd_" + strings.Repeat("a", 60): false,
		"thread_" + strings.Repeat("a", 30): false, "thrd_" + strings.Repeat("a", 29) + "-": false, anID + "\n": false, " " + anID: false, "thrd_" + strings.Repeat("é", 27): false, "": false,
	} {
		if got := state.ValidThreadID(id); got != want {
			t.Errorf("%q is valid: %v", id, got)
		}
	}
	if a, b := state.NewThreadID(), state.NewThreadID(); a == b || !regexp.MustCompile(`^thrd_[0-9a-f]{32}$`).MatchString(a) {
		t.Errorf("new ids are %s and %s", a, b)
	}
}

// The thread is that of the signed header, else of the signed cookie, else a new one. The
// response has both. A header that is not as it was signed is refused; a cookie is replaced.
func TestIdentity_HeaderThenCookieThenNew(t *testing.T) { // AG-66 AG-67 AG-68 AG-69 AG-71 AG-72 AG-73 C-33 C-45
	t.Parallel()
	s := open(t)
	reached := 0
	path := s.handle(func(http.ResponseWriter, *http.Request) error { reached++; return nil })
	first := s.get(path)
	other := sign(key, anID)
	if first.header() != sign(key, first.id()) || first.cookie() == nil || cookieOf(first.header()) != "atid="+first.cookie().Value {
		t.Fatalf("a new visitor gets %v", first.Header)
	}
	valid := func(id string) string { return sign(key, id) }
	for name, c := range map[string]struct {
		headers []string
		want    string // the thread; empty: a new one; "401"
	}{
		"header":                      {first.next(), first.id()},
		"cookie":                      {[]string{"Cookie", cookieOf(other)}, anID},
		"header before cookie":        {[]string{"x-thread-id", first.header(), "Cookie", cookieOf(other)}, first.id()},
		"two cookies":                 {[]string{"Cookie", cookieOf("thrd_x;y") + "; " + cookieOf(other)}, anID},
		"two cookies, both good":      {[]string{"Cookie", cookieOf(other) + "; " + cookieOf(first.header())}, anID},
		"cookie unsigned":             {[]string{"Cookie", "atid=" + anID}, ""},
		"cookie of another key":       {[]string{"Cookie", cookieOf(sign("other", anID))}, ""},
		"cookie with bad escapes":     {[]string{"Cookie", "atid=%zz"}, ""},
		"empty cookie":                {[]string{"Cookie", "atid="}, ""},
		"header unsigned":             {[]string{"x-thread-id", anID}, "401"},
		"header empty":                {[]string{"x-thread-id", ""}, "401"},
		"header with no signature":    {[]string{"x-thread-id", anID + ";"}, "401"},
		"header of another id":        {[]string{"x-thread-id", first.id() + strings.TrimPrefix(other, anID)}, "401"},
		"header of another key":       {[]string{"x-thread-id", sign("other", anID)}, "401"},
		"header in other base64":      {[]string{"x-thread-id", strings.TrimRight(other, "=")}, "401"},
		"header with more":            {[]string{"x-thread-id", other + "A"}, "401"},
		"header with a semicolon":     {[]string{"x-thread-id", other + ";"}, "401"},
		"header in other case":        {[]string{"x-thread-id", anID + strings.ToUpper(strings.TrimPrefix(other, anID))}, "401"},
		"header escaped":              {[]string{"x-thread-id", url.PathEscape(other)}, "401"},
		"header, bad, and a cookie":   {[]string{"x-thread-id", anID, "Cookie", cookieOf(other)}, "401"},
		"two headers":                 {[]string{"x-thread-id", other, "x-thread-id", other}, "401"},
		"signed, but no id":           {[]string{"x-thread-id", valid("thrd_abc")}, "401"},
		"signed id of another kind":   {[]string{"x-thread-id", valid("T-5928a90d-d53b-488f-a829-4e36442142ee")}, "401"},
		"signed cookie, but no id":    {[]string{"Cookie", cookieOf(valid("thrd_a.b.*.>cccccccccccccccccccccccccc"))}, ""},
		"header of a hundred KB":      {[]string{"x-thread-id", sign(key, "thrd_"+strings.Repeat("a", 100_000))}, "401"},
		"cookie of a hundred KB":      {[]string{"Cookie", cookieOf(sign(key, "thrd_"+strings.Repeat("a", 100_000)))}, ""},
		"cookie of the wrong name":    {[]string{"Cookie", "atid2=" + url.PathEscape(other)}, ""},
		"cookie that is the header's": {[]string{"Cookie", "x-thread-id=" + url.PathEscape(other)}, ""},
	} {
		before := reached
		a := s.get(path, c.headers...)
		switch {
		case c.want == "401":
			if a.StatusCode != http.StatusUnauthorized || reached != before || a.header() != "" || a.cookie() != nil || !strings.Contains(a.body, `"unauthorized"`) {
				t.Errorf("%s: %d %s, %v", name, a.StatusCode, a.body, a.Header)
			}
		case a.StatusCode != http.StatusOK || a.cookie() == nil || cookieOf(a.header()) != "atid="+a.cookie().Value || a.header() != sign(key, a.id()):
			t.Errorf("%s: %d, %v", name, a.StatusCode, a.Header)
		case c.want != "" && a.id() != c.want, c.want == "" && (a.id() == anID || a.id() == first.id() || !state.ValidThreadID(a.id())):
			t.Errorf("%s: the thread is %s, want %q", name, a.id(), c.want)
		}
	}
	log := s.log.String()
	if !strings.Contains(log, "without a valid signature") || strings.Contains(log, signatureOf(other)) || strings.Contains(log, key) {
		t.Errorf("the log is %s", log)
	}
}

func signatureOf(signed string) string {
	_, sum, _ := strings.Cut(signed, ";")
	return sum
}

// A header of ten megabytes is refused at no cost.
func TestIdentity_HugeHeader(t *testing.T) {
	t.Parallel()
	s := open(t)
	path := s.handle(nothing)
	r := httptest.NewRequest(http.MethodGet, path, http.NoBody)
	r.Header.Set("x-thread-id", "thrd_"+strings.Repeat("a", 10<<20))
	r.Header.Add("Cookie", "atid="+strings.Repeat("%3B", 10<<20))
	w := httptest.NewRecorder()
	state.Middleware(s.app)(s).ServeHTTP(w, r)
	if w.Code != http.StatusUnauthorized || w.Body.Len() > 1000 {
		t.Errorf("it is answered with %d and %d bytes", w.Code, w.Body.Len())
	}
	r.Header.Del("x-thread-id")
	w = httptest.NewRecorder()
	state.Middleware(s.app)(s).ServeHTTP(w, r)
	if w.Code != http.StatusOK || len(s.log.String()) > 10_000 {
		t.Errorf("a huge cookie is answered with %d, and %d bytes of log", w.Code, len(s.log.String()))
	}
}

// The first key signs, and all are accepted.
func TestKeys_Rotation(t *testing.T) { // AG-70
	t.Parallel()
	keys := [][]byte{[]byte("new"), []byte(key)}
	s := open(t, func(o *state.Options) { o.Keys = keys })
	clear(keys[0]) // which stays the caller's
	for signer, want := range map[string]int{"new": 200, key: 200, "older": 401} {
		a := s.get(s.handle(nothing), "x-thread-id", sign(signer, anID))
		if a.StatusCode != want || want == 200 && a.header() != sign("new", anID) {
			t.Errorf("an id that %q signed: %d, %s", signer, a.StatusCode, a.header())
		}
	}
}

// Without a key there is no application, except in development, which says so.
func TestKeys_AreRequired(t *testing.T) { // AG-70 C-34
	t.Parallel()
	s := open(t)
	for name, c := range map[string]struct {
		o  state.Options
		ok bool
	}{
		"none":                        {state.Options{}, false},
		"none in development":         {state.Options{Development: true}, true},
		"that of development":         {state.Options{Keys: [][]byte{[]byte("agentuity")}}, false},
		"that of development, second": {state.Options{Keys: [][]byte{[]byte(key), []byte("agentuity")}}, false},
		"that of development, there":  {state.Options{Keys: [][]byte{[]byte("agentuity")}, Development: true}, true},
		"an empty one":                {state.Options{Keys: [][]byte{nil}}, false},
		"an empty one, development":   {state.Options{Keys: [][]byte{{}}, Development: true}, false},
		"one":                         {state.Options{Keys: [][]byte{[]byte(key)}}, true},
	} {
		log := &lines{}
		c.o.Client, c.o.Logger = s.client, slog.New(slog.NewTextHandler(log, nil))
		app, err := state.New(t.Context(), c.o)
		if (err == nil) != c.ok || err != nil && !refused(err, events.InvalidRequest) {
			t.Errorf("%s: %v", name, err)
		}
		if name != "none in development" {
			continue
		}
		w := httptest.NewRecorder()
		state.Middleware(app)(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", http.NoBody))
		if signed := w.Header().Get("x-thread-id"); signed != sign("agentuity", signed[:37]) || !strings.Contains(log.String(), "public key") {
			t.Errorf("in development: %s, %s", signed, log)
		}
	}
	for name, o := range map[string]state.Options{
		"no client": {Keys: [][]byte{[]byte(key)}}, "half a second": {Client: s.client, Development: true, Idle: time.Second / 2}, "before now": {Client: s.client, Development: true, Idle: -time.Second}, "a year and more": {Client: s.client, Development: true, Idle: 9000 * time.Hour},
	} {
		if _, err := state.New(t.Context(), o); !refused(err, events.InvalidRequest) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The cookie is out of reach of scripts and of other sites, lasts a week, and is secure behind
// TLS: the server's own, or that of a proxy that is trusted.
func TestCookie_Attributes(t *testing.T) { // AG-84
	t.Parallel()
	s := open(t, func(o *state.Options) { o.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")} })
	for name, c := range map[string]struct {
		from, proto string
		tls, secure bool
	}{
		"plain": {"127.0.0.1:1", "", false, false}, "trusted proxy with TLS": {"127.0.0.1:1", "https", false, true}, "over IPv6": {"[::ffff:127.0.0.1]:1", "https", false, true},
		"trusted proxy without TLS": {"127.0.0.1:1", "http", false, false}, "any client": {"192.0.2.1:1", "https", false, false}, "TLS": {"192.0.2.1:1", "", true, true}, "no address": {"@", "https", false, false},
	} {
		target := "http://example.org/"
		if c.tls {
			target = "https://example.org/"
		}
		r := httptest.NewRequest(http.MethodGet, target, http.NoBody)
		r.RemoteAddr = c.from
		if c.proto != "" {
			r.Header.Set("X-Forwarded-Proto", c.proto)
		}
		w := httptest.NewRecorder()
		state.Middleware(s.app)(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})).ServeHTTP(w, r)
		got := answer{Response: w.Result()}.cookie()
		if got == nil || got.Secure != c.secure || !got.HttpOnly || got.SameSite != http.SameSiteLaxMode || got.Path != "/" || got.MaxAge != 604800 || got.Domain != "" {
			t.Errorf("%s: %v", name, got)
		}
	}
	cors := s.get(s.handle(nothing), "Origin", "https://example.org")
	own := s.visit(func(w http.ResponseWriter, _ *http.Request) error {
		w.Header().Set("Access-Control-Expose-Headers", "ETag, X-Thread-ID")
		w.Header().Set("Cache-Control", "no-store")
		return nil
	}, "Origin", "https://example.org")
	if a, b := cors.Header.Values("Access-Control-Expose-Headers"), own.Header.Values("Access-Control-Expose-Headers"); len(a) != 1 || a[0] != "x-thread-id" || len(b) != 1 {
		t.Errorf("exposed are %q and %q", a, b)
	}
	if a, b := cors.Header.Get("Cache-Control"), own.Header.Get("Cache-Control"); a != "private" || b != "no-store" {
		t.Errorf("the responses may be cached: %q, %q", a, b)
	}
}

// A custom provider is asked at every request, with the application's state. Its ids are signed
// and returned; one that is none is an error of the server, and nothing is stored.
func TestProvider_Custom(t *testing.T) { // AG-60 AG-61 AG-62 AG-63 AG-85 AG-89
	t.Parallel()
	asked := 0
	fail := error(nil)
	s := open(t, func(o *state.Options) {
		o.Setup = func(context.Context) (state.AppState, error) {
			return map[string]string{"/0": anID, "/1": "thrd_abc"}, nil
		}
		o.ThreadIDs = state.ThreadIDFunc(func(ctx context.Context, app state.AppState, r *http.Request) (string, error) {
			asked++
			return app.(map[string]string)[r.URL.Path], errors.Join(ctx.Err(), fail)
		})
	})
	reached := 0
	handler := func(_ http.ResponseWriter, r *http.Request) error {
		reached++
		if got := state.Session(r.Context()).App.(map[string]string)["/0"]; got != anID {
			t.Errorf("the state of the application is %s", got)
		}
		return state.Thread(r.Context()).Set(r.Context(), "n", reached)
	}
	good, bad := s.handle(handler), s.handle(handler)
	for n := range 2 {
		a := s.get(good, "x-thread-id", "whatever", "Cookie", cookieOf(sign(key, state.NewThreadID()))) // of no concern to this provider
		if a.header() != sign(key, anID) || a.cookie() == nil || asked != n+1 {
			t.Errorf("request %d: %s, asked %d times", n, a.header(), asked)
		}
	}
	var a answer
	if n := s.sent(func() { a = s.get(bad) }); n != 0 || a.StatusCode != http.StatusInternalServerError || reached != 2 || a.header() != "" {
		t.Errorf("an invalid id: %d, %d messages, %s", a.StatusCode, n, a.body)
	}
	if log := s.log.String(); !strings.Contains(log, "thrd_abc;") && !strings.Contains(log, "thrd_abc ") || strings.Contains(a.body, "thrd_abc") {
		t.Errorf("the log is %s, the body %s", log, a.body)
	}
	for status, err := range map[int]error{500: errors.New("a secret of the database"), 401: events.Errorf(events.Unauthorized, "who are you"), 403: events.Errorf(events.Forbidden, "not you")} {
		fail = err
		if a := s.get(good); a.StatusCode != status || reached != 2 || strings.Contains(a.body, "secret") {
			t.Errorf("%v: %d %s", err, a.StatusCode, a.body)
		}
	}
	if _, err := state.New(t.Context(), state.Options{Client: s.client, Development: true, Setup: func(context.Context) (state.AppState, error) { return nil, errors.New("no database") }}); err == nil || err.Error() != "no database" {
		t.Errorf("a setup that fails: %v", err)
	}
}

// A user has one thread; a request without a user gets a new one. A header names a user only if
// a trusted proxy sent it.
func TestProvider_Users(t *testing.T) { // AG-64 AG-65 AG-86
	t.Parallel()
	for _, c := range []struct {
		proxies    string
		believed   bool
		remoteAddr string
	}{{"127.0.0.0/8", true, "127.0.0.1:1"}, {"10.0.0.0/8", false, "127.0.0.1:1"}, {"127.0.0.0/8", false, "192.0.2.1:1"}} {
		user := state.ProxyUser("x-user-id", netip.MustParsePrefix(c.proxies))
		provider := state.UserThreads(user)
		r := httptest.NewRequest(http.MethodGet, "/", http.NoBody)
		r.RemoteAddr = c.remoteAddr
		r.Header.Set("x-user-id", "user_42")
		a, b := must(provider.ThreadID(t.Context(), nil, r))(t), must(provider.ThreadID(t.Context(), nil, r))(t)
		sum := sha256.Sum256([]byte("user_42"))
		want := "thrd_" + hex.EncodeToString(sum[:])[:27]
		if c.believed && (a != want || b != want || len(a) != 32) || !c.believed && (a == want || a == b || len(a) != 37) || !state.ValidThreadID(a) {
			t.Errorf("from %s with %s trusted: %s and %s", c.remoteAddr, c.proxies, a, b)
		}
		if none := state.ProxyUser("x-user-id"); none(r) != "" {
			t.Error("without proxies, the header is believed")
		}
	}
	s := open(t, func(o *state.Options) {
		o.User = func(r *http.Request) string { return r.Header.Get("test-user") } // authenticated, in a test
		o.ThreadIDs = state.UserThreads(o.User)
	})
	set := func(ctx context.Context, th *state.ThreadScope) error { return th.Set(ctx, "a", 1) }
	ada, again, eve, stranger := s.on(set, "test-user", "ada"), s.on(set, "test-user", "ada"), s.on(set, "test-user", "eve", "x-thread-id", "x"), s.on(set)
	if ada.id() != again.id() || ada.id() == eve.id() || stranger.id() == ada.id() {
		t.Errorf("the threads are %s, %s, %s and %s", ada.id(), again.id(), eve.id(), stranger.id())
	}
	if thread := must(client.Read(t.Context(), must(s.client.UpToDate(t.Context()))(t), events.GetThread{ThreadID: ada.id()}))(t); thread.UserID != "ada" {
		t.Errorf("the thread belongs to %q", thread.UserID)
	}
}

// The id of a route is for services. It must be one, and the same as a signed one.
func TestRouteID(t *testing.T) { // C-33
	t.Parallel()
	s := open(t, func(o *state.Options) {
		o.RouteID = func(r *http.Request) string { return r.URL.Query().Get("thread") }
	})
	path := s.handle(nothing)
	for name, c := range map[string]struct {
		id      string
		headers []string
		want    int
	}{
		"alone": {anID, nil, 200}, "of the other kind": {"T-5928a90d-d53b-488f-a829-4e36442142ee", nil, 200}, "no id": {"key:a", nil, 400}, "a wildcard": {"thrd_" + strings.Repeat("*", 30), nil, 400}, "huge": {strings.Repeat("a", 100_000), nil, 400},
		"same header": {anID, []string{"x-thread-id", sign(key, anID)}, 200}, "other header": {anID, []string{"x-thread-id", sign(key, anID+"a")}, 400}, "bad header": {anID, []string{"x-thread-id", anID}, 401},
		"same cookie": {anID, []string{"Cookie", cookieOf(sign(key, anID))}, 200}, "other cookie": {anID, []string{"Cookie", cookieOf(sign(key, anID+"a"))}, 400}, "bad cookie": {anID, []string{"Cookie", cookieOf(anID)}, 200},
	} {
		if a := s.get(path+"?thread="+url.QueryEscape(c.id), c.headers...); a.StatusCode != c.want || a.header() != "" || a.cookie() != nil || len(a.body) > 1000 {
			t.Errorf("%s: %d %.300s, %v", name, a.StatusCode, a.body, a.Header)
		}
	}
	if a := s.get(path); a.id() == "" {
		t.Errorf("without a route's id: %v", a.Header)
	}
}
