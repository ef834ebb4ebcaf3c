package keys

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"github.com/skein-threads/skein/api/edge"
	"github.com/skein-threads/skein/events"
)

// subject begins the subject of a principal with a token.
const tokenSubject = "jwt:"

// mostText is the length of the longest claim that is taken, in bytes: an actor has at most 256.
const mostText = 256 - len(tokenSubject)

// Authenticator authenticates by tokens. It is safe for concurrent use.
type Authenticator struct {
	issuer *issuer
	serves []string // tenants; empty: all
	logger zerolog.Logger
}

// NewAuthenticator returns an Authenticator for the tokens of some tenants, or, without any, of all. The
// issuer need not be there yet.
func NewAuthenticator(o TokenOptions, serves []string, logger zerolog.Logger) *Authenticator {
	return &Authenticator{newIssuer(o), serves, logger}
}

// Authenticate returns the principal of a request with a token.
func (a *Authenticator) Authenticate(r *http.Request) (edge.Principal, error) {
	text, ok := edge.Bearer(r)
	if !ok {
		return edge.Principal{}, events.Errorf(events.Unauthorized, "the request has no token; send it as Authorization: Bearer TOKEN")
	}
	token, err := a.issuer.verify(r.Context(), text)
	switch {
	case errors.Is(err, errUnreachable):
		if !errors.Is(err, errWaiting) {
			a.logger.Warn().Err(err).Msg("tokens cannot be checked")
		}
		return edge.Principal{}, events.Errorf(events.Unavailable, "the token cannot be checked now: its issuer does not answer; try again later")
	case err != nil:
		a.logger.Debug().Err(err).Msg("a token was refused")
		return edge.Principal{}, events.Errorf(events.Unauthorized, "the token is not valid: its signature by the issuer, its audience and its time are checked")
	}
	var claims map[string]any
	if err := token.Claims(&claims); err != nil {
		return edge.Principal{}, events.Errorf(events.Unauthorized, "the token's claims are not an object")
	}
	p, err := a.principal(claims)
	if err != nil {
		return edge.Principal{}, err
	}
	p.Expires = token.Expiry
	return p, nil
}

// principal returns who the claims of a token name.
func (a *Authenticator) principal(claims map[string]any) (edge.Principal, error) {
	o := a.issuer.options
	refuse := func(claim, why string) (edge.Principal, error) {
		return edge.Principal{}, events.Errorf(events.Unauthorized, "the token's claim %s %s", claim, why)
	}
	sub, ok := textOf(claims, "sub")
	if !ok {
		return refuse("sub", "is missing, or is no text")
	}
	p := edge.Principal{Subject: tokenSubject + sub, Roles: rolesOf(claims, o.RolesClaim)}
	if p.Tenant, ok = textOf(claims, o.TenantClaim); !ok || !events.ValidTenant(p.Tenant) {
		return refuse(o.TenantClaim, "names no tenant")
	}
	if len(a.serves) > 0 && !slices.Contains(a.serves, p.Tenant) {
		return refuse(o.TenantClaim, "names a tenant that is not served here")
	}
	if len(p.Roles) == 0 {
		return refuse(o.RolesClaim, "names no role; publisher and subscriber are known")
	}
	if o.UserClaim != "" {
		if p.User, ok = textOf(claims, o.UserClaim); !ok {
			return refuse(o.UserClaim, "names no user")
		}
	}
	return p, nil
}

// Resume returns the principal of a token that another edge authenticated.
func (a *Authenticator) Resume(_ context.Context, p edge.Principal) (edge.Principal, error) {
	served := len(a.serves) == 0 || slices.Contains(a.serves, p.Tenant)
	if !served || !IsToken(p) || !time.Now().Before(p.Expires) {
		return edge.Principal{}, events.Errorf(events.Unauthorized, "the token has expired")
	}
	return p, nil
}

// IsToken reports whether a principal has a token.
func IsToken(p edge.Principal) bool { return strings.HasPrefix(p.Subject, tokenSubject) }

// claim returns the value of a claim: the member of that name, or the one at that path.
func claim(claims map[string]any, name string) any {
	if v, ok := claims[name]; ok {
		return v
	}
	head, rest, nested := strings.Cut(name, ".")
	if inner, ok := claims[head].(map[string]any); ok && nested {
		return claim(inner, rest)
	}
	return nil
}

// textOf returns a claim that is a text, not empty and not too long.
func textOf(claims map[string]any, name string) (string, bool) {
	s, ok := claim(claims, name).(string)
	return s, ok && s != "" && len(s) <= mostText && !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f })
}

// rolesOf returns the roles of a claim that are known.
func rolesOf(claims map[string]any, name string) []string {
	var given []string
	switch v := claim(claims, name).(type) {
	case string:
		given = strings.Fields(v)
	case []any:
		for _, one := range v {
			if s, ok := one.(string); ok {
				given = append(given, s)
			}
		}
	}
	var roles []string
	for _, known := range events.TenantRole("").Enum() {
		if slices.Contains(given, known) {
			roles = append(roles, known)
		}
	}
	return roles
}
