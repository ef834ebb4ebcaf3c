package keys

import (
	"errors"
	"fmt"
	"net"
	"net/url"
)

// TokenOptions say whose tokens are taken, and what their claims mean. A claim is the name of a
// member of the token's payload, or a path to one such as realm_access.roles.
type TokenOptions struct {
	Issuer   string // URL, as in the tokens; empty: no tokens are taken
	Audience string // required

	TenantClaim string // names the tenant; required
	RolesClaim  string // names the roles publisher and subscriber, in a list or separated by spaces; required
	UserClaim   string // names the user to whose threads the token is limited; empty: it is not limited
}

// Enabled reports whether tokens are taken.
func (o TokenOptions) Enabled() bool { return o.Issuer != "" }

// Validate reports everything that is wrong with the options, as one error.
func (o TokenOptions) Validate() error {
	if !o.Enabled() {
		if o != (TokenOptions{}) {
			return errors.New("--jwt-audience and the claims belong to --jwt-issuer")
		}
		return nil
	}
	var errs []error
	at, err := url.Parse(o.Issuer)
	if err != nil || at.Host == "" || at.RawQuery != "" || at.Fragment != "" || at.User != nil {
		errs = append(errs, fmt.Errorf("--jwt-issuer: %.200q is not a URL such as https://login.example.org", o.Issuer))
	} else {
		errs = append(errs, protected("--jwt-issuer", o.Issuer))
	}
	for _, f := range []struct{ flag, value string }{{"audience", o.Audience}, {"tenant-claim", o.TenantClaim}, {"roles-claim", o.RolesClaim}} {
		if f.value == "" {
			errs = append(errs, fmt.Errorf("--jwt-%s is required with --jwt-issuer; there is no default", f.flag))
		}
	}
	return errors.Join(errs...)
}

// protected returns an error unless what an address sends cannot be changed on its way.
func protected(what, address string) error {
	at, err := url.Parse(address)
	if err == nil && (at.Scheme == "https" || at.Scheme == "http" && loopback(at.Hostname())) {
		return nil
	}
	return fmt.Errorf("%s: only https counts, or http on loopback, and not %.200q: a caller that can change the keys on their way can make tokens", what, address)
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
