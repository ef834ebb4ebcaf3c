package api

import (
	"context"
	"net/http"
	"strings"

	"github.com/rs/zerolog"

	"github.com/skein-threads/skein/api/edge"
	"github.com/skein-threads/skein/api/keys"
	"github.com/skein-threads/skein/events"
)

// Authenticator authenticates by API keys and by tokens.
type Authenticator struct {
	Keys   KeyAuthenticator    // nil: there are none
	Tokens *keys.Authenticator // nil: none are taken
}

// TokenAuthenticator returns an authenticator for the tokens of the options, for some tenants or,
// without any, for all; nil if no tokens are taken.
func (o ListenOptions) TokenAuthenticator(serves []string, logger zerolog.Logger) *keys.Authenticator {
	if !o.Tokens.Enabled() {
		return nil
	}
	return keys.NewAuthenticator(o.Tokens, serves, logger)
}

// KeyAuthenticator authenticates by API keys.
type KeyAuthenticator interface {
	edge.Authenticator
	edge.Resumer
}

// Authenticate returns the principal of a request with a key or a token.
func (a Authenticator) Authenticate(r *http.Request) (edge.Principal, error) {
	text, ok := edge.Bearer(r)
	switch token := ok && !strings.HasPrefix(text, keys.Prefix); {
	case a.Tokens != nil && (token || a.Keys == nil && !ok):
		return a.Tokens.Authenticate(r)
	case a.Keys != nil:
		return a.Keys.Authenticate(r)
	default:
		return edge.Principal{}, events.Errorf(events.Unauthorized, "the API key is not valid: this server has none, and takes tokens")
	}
}

// Resume returns the principal that another edge authenticated, as it is now.
func (a Authenticator) Resume(ctx context.Context, p edge.Principal) (edge.Principal, error) {
	switch {
	case keys.IsToken(p) && a.Tokens != nil:
		return a.Tokens.Resume(ctx, p)
	case a.Keys != nil:
		return a.Keys.Resume(ctx, p)
	default:
		return edge.Principal{}, events.Errorf(events.Unauthorized, "the credential is not known here")
	}
}
