package keys_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/skein-threads/skein"
	"github.com/skein-threads/skein/internal/natstest"
	"github.com/skein-threads/skein/skeintest"
)

// issuer is an issuer of the test's own: it describes itself, publishes its keys, and signs.
type issuer struct {
	t       testing.TB
	server  *httptest.Server
	url     string
	keys    atomic.Value // what it publishes, a jwks
	key     *ecdsa.PrivateKey
	kid     string
	fetched atomic.Int64 // requests for its keys

	describe func() // called before it describes itself
}

func newIssuer(t testing.TB) *issuer {
	i := &issuer{t: t, url: "http://" + natstest.FreeAddress(t)}
	i.rotate("k1")
	i.start()
	t.Cleanup(func() { i.server.Close() })
	return i
}

// start starts the issuer's server at its address; stop ends it.
func (i *issuer) start() {
	l, err := net.Listen("tcp", strings.TrimPrefix(i.url, "http://"))
	if err != nil {
		i.t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		if i.describe != nil {
			i.describe()
		}
		_ = json.NewEncoder(w).Encode(map[string]any{
			"issuer": i.url, "jwks_uri": i.url + "/keys", "authorization_endpoint": i.url + "/a", "token_endpoint": i.url + "/t",
			"id_token_signing_alg_values_supported": []string{"ES256", "HS256", "none"},
		})
	})
	mux.HandleFunc("GET /keys", func(w http.ResponseWriter, _ *http.Request) {
		i.fetched.Add(1)
		_ = json.NewEncoder(w).Encode(i.keys.Load())
	})
	i.server = &httptest.Server{Listener: l, Config: &http.Server{Handler: mux}}
	i.server.Start()
}

func (i *issuer) stop() { i.server.Close() }

// holdDescription has the issuer tell that it is asked to describe itself, and wait for answers.
func (i *issuer) holdDescription() (asked <-chan struct{}, answers chan struct{}) {
	told, answers := make(chan struct{}, 1), make(chan struct{})
	i.describe = func() {
		select {
		case told <- struct{}{}:
		default:
		}
		<-answers
	}
	return told, answers
}

// rotate replaces the key.
func (i *issuer) rotate(kid string) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		i.t.Fatal(err)
	}
	public, err := key.PublicKey.Bytes() // 4, x and y
	if err != nil {
		i.t.Fatal(err)
	}
	i.key, i.kid = key, kid
	i.keys.Store(jwks{[]map[string]string{{
		"kty": "EC", "crv": "P-256", "x": encoded(public[1:33]), "y": encoded(public[33:]), "kid": kid, "alg": "ES256", "use": "sig",
	}}})
}

// jwks is a JSON Web Key Set.
type jwks struct {
	Keys []map[string]string `json:"keys"`
}

// part is a part of a token.
func part(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return encoded(raw)
}

func encoded(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

// claims are those of a valid token, changed in pairs of a name and a value; nil removes one.
func (i *issuer) claims(change ...any) map[string]any {
	c := map[string]any{
		"iss": i.url, "aud": "skein", "sub": "u1", "exp": time.Now().Add(time.Hour).Unix(), "iat": time.Now().Unix(),
		"https://skein/tenant": "acme", "realm": map[string]any{"roles": []string{"publisher", "subscriber", "other"}}, "user": "ann",
	}
	for n := 0; n < len(change); n += 2 {
		if change[n+1] == nil {
			delete(c, change[n].(string))
			continue
		}
		c[change[n].(string)] = change[n+1]
	}
	return c
}

// sign returns a token with the issuer's key.
func (i *issuer) sign(claims map[string]any) string {
	return i.signWith(i.key, i.kid, claims)
}

// signWith returns a token that says it was signed with the key of that name.
func (i *issuer) signWith(key *ecdsa.PrivateKey, kid string, claims map[string]any) string {
	i.t.Helper()
	signed := part(map[string]string{"alg": "ES256", "kid": kid}) + "." + part(claims)
	digest := sha256.Sum256([]byte(signed))
	r, s, err := ecdsa.Sign(rand.Reader, key, digest[:])
	if err != nil {
		i.t.Fatal(err)
	}
	return signed + "." + encoded(append(r.FillBytes(make([]byte, 32)), s.FillBytes(make([]byte, 32))...))
}

// mac returns a token with a MAC instead of a signature.
func (i *issuer) mac(key []byte, claims map[string]any) string {
	signed := part(map[string]string{"alg": "HS256", "kid": i.kid}) + "." + part(claims)
	h := hmac.New(sha256.New, key)
	h.Write([]byte(signed))
	return signed + "." + encoded(h.Sum(nil))
}

// site is a server that takes the issuer's tokens.
type site struct {
	t   testing.TB
	url string
}

func (i *issuer) site(change ...func(*skein.Options)) *site {
	i.t.Helper()
	s := skeintest.Start(i.t, append([]func(*skein.Options){func(o *skein.Options) {
		o.HTTPListen, o.JWTIssuer, o.JWTAudience, o.JWTTenantClaim, o.JWTRolesClaim = "127.0.0.1:0", i.url, "skein", "https://skein/tenant", "realm.roles"
	}}, change...)...)
	return &site{i.t, s.Addresses().HTTP}
}

// open sends a request with a token.
func (s *site) open(ctx context.Context, method, path, token string) *http.Response {
	s.t.Helper()
	r, err := http.NewRequestWithContext(ctx, method, s.url+path, strings.NewReader("{}"))
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	if path != "/api/events" { // which the tests follow
		r.Header.Set("Accept", "application/json")
	}
	if method == "GET" {
		r.Body, r.ContentLength = nil, 0
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	answer, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		s.t.Fatal(err)
	}
	return answer
}

// ask returns the status and the body of an answer.
func (s *site) ask(method, path, token string) (int, string) {
	s.t.Helper()
	answer := s.open(s.t.Context(), method, path, token)
	defer answer.Body.Close()
	raw, err := io.ReadAll(answer.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return answer.StatusCode, string(raw)
}

// want checks the status of listing threads.
func (s *site) want(what string, status int, token string) {
	s.t.Helper()
	if got, body := s.ask("GET", "/api/threads", token); got != status {
		s.t.Errorf("%s: %d %.300s, want %d", what, got, body, status)
	}
}

// What a token says counts only with the issuer's signature, for this audience, and in time.
func TestTokens_WhatCounts(t *testing.T) {
	i := newIssuer(t)
	s := i.site()
	s.want("a valid token", 200, i.sign(i.claims()))
	s.want("roles in a text", 200, i.sign(i.claims("realm", map[string]any{"roles": "subscriber other"})))
	s.want("several audiences", 200, i.sign(i.claims("aud", []string{"x", "skein"})))
	past := time.Now().Add(-time.Minute).Unix()
	for what, claims := range map[string]map[string]any{
		"expired": i.claims("exp", past), "no expiry": i.claims("exp", nil), "another audience": i.claims("aud", "other"), "no audience": i.claims("aud", nil),
		"another issuer": i.claims("iss", "https://evil.example"), "not yet": i.claims("nbf", time.Now().Add(time.Hour).Unix()),
		"no subject": i.claims("sub", nil), "a long subject": i.claims("sub", strings.Repeat("x", 300)), "a control character": i.claims("sub", "a\nb"),
		"no tenant": i.claims("https://skein/tenant", nil), "a tenant with a dot": i.claims("https://skein/tenant", "a.b"), "every tenant": i.claims("https://skein/tenant", "*"),
		"a list of tenants": i.claims("https://skein/tenant", []string{"acme"}), "no roles": i.claims("realm", nil),
		"unknown roles": i.claims("realm", map[string]any{"roles": []string{"administrator", "worker"}}), "roles elsewhere": i.claims("realm", nil, "roles", []string{"publisher"}),
	} {
		s.want(what, 401, i.sign(claims))
	}
	other, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	public, err := i.key.PublicKey.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	valid := strings.Split(i.sign(i.claims()), ".")
	for what, token := range map[string]string{
		"alg none": part(map[string]string{"alg": "none"}) + "." + part(i.claims()) + ".", "alg None": part(map[string]string{"alg": "None"}) + "." + part(i.claims()) + ".x",
		"HS256 with the public key": i.mac(public, i.claims()),
		"another key of that name":  i.signWith(other, i.kid, i.claims()),
		"changed claims":            valid[0] + "." + part(i.claims("https://skein/tenant", "globex")) + "." + valid[2],
		"no signature":              valid[0] + "." + valid[1] + ".", "two parts": valid[0] + "." + valid[1], "no token": "x", "a key": "skein_x_y", "nothing": "",
	} {
		s.want(what, 401, token)
	}
}

// A token acts for its tenant, as its subject, with its roles, and for the user that it names.
func TestTokens_Principal(t *testing.T) {
	i := newIssuer(t)
	s := i.site(func(o *skein.Options) { o.JWTUserClaim = "user" })
	status, body := s.ask("POST", "/api/threads", i.sign(i.claims()))
	var made struct{ ThreadID string }
	if err := json.Unmarshal([]byte(body), &made); err != nil || status != http.StatusCreated {
		t.Fatalf("%d %s", status, body)
	}
	thread := "/api/threads/" + made.ThreadID
	if _, body := s.ask("GET", thread+"/events", i.sign(i.claims("user", "ann"))); !strings.Contains(body, `"jwt:u1"`) {
		t.Errorf("the events: %s", body)
	}
	for what, c := range map[string]struct {
		token string
		want  int
	}{
		"the user": {i.sign(i.claims()), 200}, "another user": {i.sign(i.claims("user", "bob")), 404}, "another tenant": {i.sign(i.claims("https://skein/tenant", "globex")), 404},
		"no user": {i.sign(i.claims("user", nil)), 401}, "an empty user": {i.sign(i.claims("user", "")), 401},
	} {
		if got, body := s.ask("GET", thread, c.token); got != c.want {
			t.Errorf("%s: %d %s, want %d", what, got, body, c.want)
		}
	}
	reader := i.sign(i.claims("realm", map[string]any{"roles": []string{"subscriber"}}))
	if got, _ := s.ask("POST", thread+"/items", reader); got != http.StatusForbidden {
		t.Errorf("a subscriber writes: %d", got)
	}
}

// A token by a new key is taken as soon as the issuer publishes it, tokens by the old one are
// not any more after that, and tokens that name unknown keys are no flood for the issuer.
func TestTokens_KeyRotation(t *testing.T) {
	i := newIssuer(t)
	s := i.site()
	old := i.sign(i.claims())
	s.want("before", 200, old)
	i.rotate("k2")
	for begin := time.Now(); ; { // a key that is not known is looked for once a second at most
		if got, body := s.ask("GET", "/api/threads", i.sign(i.claims())); got == 200 {
			break
		} else if got != 401 || time.Since(begin) > time.Minute {
			t.Fatalf("a token by the new key: %d %s", got, body)
		}
	}
	begin, before := time.Now(), i.fetched.Load()
	for n := range 200 {
		unknown := i.signWith(i.key, fmt.Sprint("x", n), i.claims())
		if got, _ := s.ask("GET", "/api/threads", unknown); got != 401 && got != 503 {
			t.Errorf("an unknown key: %d", got)
		}
	}
	if n, seconds := i.fetched.Load()-before, int64(time.Since(begin)/time.Second); n > seconds+2 {
		t.Errorf("200 tokens by unknown keys made %d requests in %d s", n, seconds)
	}
	s.want("the old key", 401, waitFor(s, old))
}

// waitFor returns the token once the answer to it is no longer that its key cannot be checked.
func waitFor(s *site, token string) string {
	for {
		if got, _ := s.ask("GET", "/api/threads", token); got != 503 {
			return token
		}
	}
}

// An issuer that is down at the start makes requests unavailable until it is there; one that is
// down later is not missed for tokens by keys that are known.
func TestTokens_IssuerDown(t *testing.T) {
	i := newIssuer(t)
	i.stop()
	s := i.site()
	s.want("without the issuer", 503, i.sign(i.claims()))
	i.start()
	s.want("with it", 200, waitFor(s, i.sign(i.claims())))
	i.stop()
	s.want("by a known key", 200, i.sign(i.claims()))
	s.want("expired", 401, i.sign(i.claims("exp", time.Now().Add(-time.Minute).Unix())))
	i.rotate("k2")
	for { // the keys that were fetched count for a second
		if got, body := s.ask("GET", "/api/threads", i.sign(i.claims())); got == 503 {
			return
		} else if got != 401 {
			t.Fatalf("by an unknown key: %d %s", got, body)
		}
	}
}

// A stream ends when its token expires.
func TestTokens_ExpiryEndsStreams(t *testing.T) {
	i := newIssuer(t)
	s := i.site()
	end := time.Now().Add(3 * time.Second)
	answer := s.open(t.Context(), "GET", "/api/events", i.sign(i.claims("exp", end.Unix())))
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		t.Fatal(answer.StatusCode)
	}
	if _, err := io.Copy(io.Discard, answer.Body); err != nil {
		t.Error(err)
	}
	if early := time.Until(end.Truncate(time.Second)); early > 0 {
		t.Errorf("it ended %v early", early)
	}
}

// TokenOptions without an audience, or with claims that nothing reads, are refused.
func TestTokens_Options(t *testing.T) {
	valid := skein.Options{JWTIssuer: "https://login.example", JWTAudience: "a", JWTTenantClaim: "t", JWTRolesClaim: "r"}
	if err := valid.Validate(); err != nil {
		t.Error(err)
	}
	for what, change := range map[string]func(*skein.Options){
		"no audience": func(o *skein.Options) { o.JWTAudience = "" }, "no tenant": func(o *skein.Options) { o.JWTTenantClaim = "" },
		"no roles": func(o *skein.Options) { o.JWTRolesClaim = "" }, "no issuer": func(o *skein.Options) { o.JWTIssuer = "" },
		"in the clear": func(o *skein.Options) { o.JWTIssuer = "http://login.example" }, "no URL": func(o *skein.Options) { o.JWTIssuer = "login" },
		"a tenant for all": func(o *skein.Options) { o.Tenant = "acme" },
	} {
		o := valid
		change(&o)
		if o.Validate() == nil {
			t.Errorf("%s is accepted", what)
		}
	}
}
