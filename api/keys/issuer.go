package keys

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
)

const (
	fetchWithin = 10 * time.Second
	fetchEvery  = time.Second // at most, whatever tokens say of their keys
	maxFetch    = 1 << 20     // bytes of an answer
)

// errUnreachable reports that a token's key is not known, and cannot be fetched now.
var errUnreachable = errors.New("the issuer's keys cannot be fetched now")

// recent is why keys are not fetched again: those that are known have just been.
const recent = "they were fetched less than a second ago"

// errWaiting reports that the issuer did not answer a moment ago, and is not asked again yet.
var errWaiting = fmt.Errorf("%w: it did not answer a moment ago", errUnreachable)

// issuer is an issuer, as it describes itself. It is safe for concurrent use.
type issuer struct {
	options TokenOptions
	client  *http.Client

	mu       sync.Mutex
	verifier *oidc.IDTokenVerifier // nil until the issuer has answered
	tried    time.Time             // when it was asked last
	asking   bool                  // and has not answered yet
}

func newIssuer(o TokenOptions) *issuer {
	return &issuer{options: o, client: &http.Client{Timeout: fetchWithin, Transport: &fetcher{to: http.DefaultTransport}}}
}

// verify returns a token that counts now.
func (i *issuer) verify(ctx context.Context, text string) (*oidc.IDToken, error) {
	v, err := i.discover(time.Now())
	if err != nil {
		return nil, err
	}
	token, err := v.Verify(ctx, text)
	if err != nil && strings.Contains(err.Error(), "fetching keys") && !strings.Contains(err.Error(), recent) { // the library has no types for them
		if strings.Contains(err.Error(), errWaiting.Error()) {
			return nil, errWaiting
		}
		return nil, errors.Join(errUnreachable, err)
	}
	return token, err
}

// discover asks the issuer to describe itself, until it has. One request asks; others are refused
// meanwhile, so that an issuer that does not answer holds up nobody but the first.
func (i *issuer) discover(now time.Time) (*oidc.IDTokenVerifier, error) {
	i.mu.Lock()
	v, wait := i.verifier, i.asking || now.Sub(i.tried) < fetchEvery
	i.asking = i.asking || v == nil && !wait
	i.mu.Unlock()
	switch {
	case v != nil:
		return v, nil
	case wait:
		return nil, errWaiting
	}
	v, err := i.describe()
	i.mu.Lock()
	defer i.mu.Unlock()
	i.verifier, i.tried, i.asking = v, time.Now(), false
	return v, err
}

// describe asks the issuer to describe itself.
func (i *issuer) describe() (*oidc.IDTokenVerifier, error) {
	// Its keys are fetched with this context, long after this request.
	provider, err := oidc.NewProvider(oidc.ClientContext(context.Background(), i.client), i.options.Issuer)
	if err != nil {
		return nil, errors.Join(errUnreachable, err)
	}
	var says struct {
		Keys string `json:"jwks_uri"`
	}
	if err := provider.Claims(&says); err != nil {
		return nil, errors.Join(errUnreachable, err)
	}
	if err := protected("the issuer's jwks_uri", says.Keys); err != nil {
		return nil, errors.Join(errUnreachable, err)
	}
	return provider.Verifier(&oidc.Config{ClientID: i.options.Audience, SupportedSigningAlgs: []string{
		oidc.RS256, oidc.RS384, oidc.RS512, oidc.PS256, oidc.PS384, oidc.PS512, oidc.ES256, oidc.ES384, oidc.ES512, oidc.EdDSA,
	}}), nil
}

// fetcher fetches what an issuer publishes, each address once a second at most: a token may
// name any key, and each unknown one would be a request.
type fetcher struct {
	to http.RoundTripper

	mu   sync.Mutex
	last map[string]fetched
}

// fetched is when an address was asked last, and whether it answered.
type fetched struct {
	at time.Time
	ok bool
}

// RoundTrip sends a request, also one that follows a redirect.
func (f *fetcher) RoundTrip(r *http.Request) (*http.Response, error) {
	address := r.URL.String()
	if err := protected("the issuer", address); err != nil {
		return nil, err
	}
	if err := f.begin(address, time.Now()); err != nil {
		return nil, err
	}
	answer, err := f.to.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	f.note(address, fetched{time.Now(), answer.StatusCode == http.StatusOK})
	answer.Body = struct {
		io.Reader
		io.Closer
	}{io.LimitReader(answer.Body, maxFetch), answer.Body}
	return answer, nil
}

// begin returns an error if the address was asked a moment ago.
func (f *fetcher) begin(address string, now time.Time) error {
	f.mu.Lock()
	last := f.last[address]
	f.mu.Unlock()
	switch {
	case now.Sub(last.at) >= fetchEvery:
		f.note(address, fetched{at: now})
		return nil
	case last.ok:
		return errors.New(recent)
	default:
		return errWaiting
	}
}

func (f *fetcher) note(address string, what fetched) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.last == nil || len(f.last) > 100 { // redirects
		f.last = map[string]fetched{}
	}
	f.last[address] = what
}
