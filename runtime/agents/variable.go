package agents

import (
	"errors"
	"fmt"
	"net/url"
	"path"
	"strings"

	"github.com/skein-threads/skein/events"
)

// Variable is an environment variable that definitions may pass to one MCP server, or to
// servers below one URL. Its value may also be the secret that signs requests to such URLs.
type Variable struct {
	Tenant string // whose definitions; *: of every tenant
	Name   string
	Target string // prefix of the URL, or the command as in the definition
}

// ParseVariables parses TENANT:NAME=TARGET, as in
// acme:SHOP_TOKEN=https://shop.example/mcp. The error names every invalid entry.
func ParseVariables(list []string) ([]Variable, error) {
	var out []Variable
	var errs []error
	for _, text := range list {
		v, err := parseVariable(text)
		if err != nil {
			errs = append(errs, fmt.Errorf("%.128q %w; write TENANT:NAME=TARGET, where TARGET begins the server's URL or is its command, as in acme:SHOP_TOKEN=https://shop.example/mcp", text, err))
			continue
		}
		out = append(out, v)
	}
	return out, errors.Join(errs...)
}

func parseVariable(text string) (Variable, error) {
	binding, target, found := strings.Cut(text, "=")
	tenant, name, named := strings.Cut(binding, ":")
	v := Variable{tenant, name, target}
	switch {
	case !found || target == "":
		return v, errors.New("does not say where the variable may go")
	case !named || tenant != "*" && !events.ValidTenant(tenant):
		return v, errors.New("does not say whose definitions may name the variable")
	case !events.Pattern(events.PatternVariable).MatchString(name):
		return v, errors.New("does not name a variable")
	}
	if u, err := url.Parse(target); err == nil && (u.Scheme == "http" || u.Scheme == "https") {
		if u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" || !plainPath(u) {
			return v, errors.New("has a URL that is not a scheme, a host and a plain path")
		}
	}
	return v, nil
}

// ParseSecrets parses TENANT:NAME=URL, where every target is a URL. The error names every
// invalid entry.
func ParseSecrets(list []string) ([]Variable, error) {
	out, err := ParseVariables(list)
	errs := []error{err}
	for _, v := range out {
		if u, err := url.Parse(v.Target); err != nil || u.Scheme != "http" && u.Scheme != "https" {
			errs = append(errs, fmt.Errorf("%.128q does not go to a URL; write TENANT:NAME=URL, as in acme:SHOP_SECRET=https://shop.example/", v.Tenant+":"+v.Name+"="+v.Target))
		}
	}
	return out, errors.Join(errs...)
}

// Signs reports whether the variable is the tenant's secret of that name for requests to
// a URL.
func (v Variable) Signs(tenant, name, to string) bool {
	return v.Name == name && (v.Tenant == tenant || v.Tenant == "*") && v.reaches(to)
}

// goesTo reports whether the variable may be passed to a server.
func (v Variable) goesTo(s *events.ToolServer) bool {
	if s.Command != "" {
		return v.Target == s.Command
	}
	return v.reaches(s.URL)
}

// reaches reports whether a URL is the target, or below it.
func (v Variable) reaches(address string) bool {
	to, err := url.Parse(address)
	allowed, err2 := url.Parse(v.Target)
	if err != nil || err2 != nil || to.Scheme != allowed.Scheme || !strings.EqualFold(to.Host, allowed.Host) || to.User != nil || !plainPath(to) {
		return false
	}
	prefix := strings.TrimSuffix(allowed.Path, "/")
	return to.Path == prefix || strings.HasPrefix(to.Path, prefix+"/")
}

// plainPath reports whether a URL's path has one meaning only: no segments that go up,
// and no escapes that servers may interpret in different ways.
func plainPath(u *url.URL) bool {
	if u.RawPath != "" || strings.ContainsAny(u.Path, "\\%;") {
		return false
	}
	clean := path.Clean("/" + u.Path)
	return u.Path == "" || u.Path == clean || u.Path == clean+"/"
}
