package keys

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

// internet answers for every host, so that no test needs one.
type internet struct {
	t     *testing.T
	keys  string   // where the issuer says that its keys are
	asked []string // for keys
}

// RoundTrip answers a request.
func (i *internet) RoundTrip(r *http.Request) (*http.Response, error) {
	answer := &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Request: r}
	body := any(map[string]any{"keys": []any{}})
	switch address := r.URL.String(); {
	case strings.HasSuffix(address, "/.well-known/openid-configuration"):
		body = map[string]any{"issuer": "https://login.example", "jwks_uri": i.keys}
	case strings.HasSuffix(address, "/moved"):
		i.asked = append(i.asked, address)
		answer.StatusCode = http.StatusFound
		answer.Header.Set("Location", "http://login.example/keys")
	default:
		i.asked = append(i.asked, address)
	}
	raw, err := json.Marshal(body)
	if err != nil {
		i.t.Fatal(err)
	}
	answer.Header.Set("Content-Type", "application/json")
	answer.Body = io.NopCloser(strings.NewReader(string(raw)))
	return answer, nil
}

// Keys are fetched only from where nobody can change them on their way, whatever the issuer says of
// itself, and where it redirects to.
func TestIssuer_KeysInTheClear(t *testing.T) {
	part := func(v any) string {
		raw, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return base64.RawURLEncoding.EncodeToString(raw)
	}
	token := part(map[string]string{"alg": "ES256", "kid": "k"}) + "." +
		part(map[string]any{"iss": "https://login.example", "aud": "skein", "exp": time.Now().Add(time.Hour).Unix()}) + "." + base64.RawURLEncoding.EncodeToString(make([]byte, 64))
	for keys, want := range map[string][]string{
		"https://login.example/keys":  {"https://login.example/keys"},
		"http://login.example/keys":   nil,
		"http://192.0.2.1/keys":       nil,
		"https://login.example/moved": {"https://login.example/moved"},
	} {
		i := newIssuer(TokenOptions{Issuer: "https://login.example", Audience: "skein"})
		net := &internet{t: t, keys: keys}
		i.client.Transport = &fetcher{to: net}
		_, err := i.verify(t.Context(), token)
		if unreachable := errors.Is(err, errUnreachable); err == nil || unreachable == (keys == "https://login.example/keys") {
			t.Errorf("keys at %s: %v", keys, err)
		}
		if !slices.Equal(net.asked, want) {
			t.Errorf("keys at %s: %v was asked, and not %v", keys, net.asked, want)
		}
	}
}
