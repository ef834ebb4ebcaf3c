package agents

import (
	"context"
	"net/url"
	"slices"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/projections/query"
	"github.com/skein-threads/skein/runtime"
	"github.com/skein-threads/skein/runtime/remote"
)

// reactorOf returns the reactor that the tenant defines with that name, and notes its
// definition; nil if it defines none.
func (d *Directory) reactorOf(ctx context.Context, tenant string, a *runtime.Agent, name string) (runtime.Reactor, error) {
	if name == "" || d.cfg.Definitions.Absent(tenant, events.ReactorKind, name) {
		return nil, nil
	}
	def, version, err := query.LoadDefinition[events.ReactorDefinition](ctx, d.cfg.Definitions, tenant, events.ReactorKind, name)
	if events.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	a.Refs = append(a.Refs, events.DefinitionVersion{Kind: events.ReactorKind, Name: name, Version: version})
	e, err := d.Endpoint(tenant, "the reactor "+name, def.HTTP)
	if err != nil {
		return nil, err
	}
	return remote.HTTPReactor(e, remote.Logger(d.cfg.Logger))
}

// httpTool returns a tool behind a URL.
func (d *Directory) httpTool(tenant string, def events.ToolDefinition) (runtime.Tool, error) {
	e, err := d.Endpoint(tenant, "the tool "+def.Name, def.HTTP)
	if err != nil {
		return nil, err
	}
	return remote.HTTPTool(e, specOf(def), remote.Logger(d.cfg.Logger))
}

// a2aTool returns a tool that is an agent elsewhere.
func (d *Directory) a2aTool(tenant string, def events.ToolDefinition) (runtime.Tool, error) {
	what := "the tool " + def.Name
	reach := func(address string) (remote.Endpoint, error) {
		if name := def.Server.TokenEnv; name != "" && !d.allowed(tenant, name, &events.ToolServer{URL: address}) {
			return remote.Endpoint{}, events.Errorf(events.Forbidden, "%s names the variable %s, which this server does not send to that address for this tenant (--mcp-variable)", what, name)
		}
		return d.Address("the address of "+what, address)
	}
	if _, err := reach(def.Server.URL); err != nil {
		return nil, err
	}
	token := ""
	if name := def.Server.TokenEnv; name != "" {
		var set bool
		if token, set = d.cfg.Lookup(name); !set {
			return nil, events.Errorf(events.Forbidden, "%s cannot be called: the variable %s is not set where this server runs", what, name)
		}
	}
	return NewA2ATool(A2AOptions{URL: def.Server.URL, Token: token, Reach: reach, Logger: d.cfg.Logger.With().Str("tenant", tenant).Logger()}, specOf(def)), nil
}

// Endpoint returns an endpoint that a tenant's definition names, if the operator allows it.
// The definition is what calls it, for errors: "the tool add".
func (d *Directory) Endpoint(tenant, what string, to *events.HTTPEndpoint) (remote.Endpoint, error) {
	for _, name := range to.SecretEnv {
		if !d.signs(tenant, name, to.URL) {
			return remote.Endpoint{}, events.Errorf(events.Forbidden, "%s names the variable %s, whose secret this server does not sign requests to that URL with for this tenant (--http-secret)", what, name)
		}
	}
	if u, err := url.Parse(to.URL); err != nil || d.cfg.Egress.CheckURL(u) != nil {
		return remote.Endpoint{}, events.Errorf(events.Forbidden, "%s names an address that this server does not connect to (--egress-allow)", what)
	}
	keys, err := remote.SigningKeys(to.SecretEnv, d.cfg.Lookup)
	if err != nil {
		return remote.Endpoint{}, events.Errorf(events.Forbidden, "%s cannot be called: %w; set it where this server runs", what, err)
	}
	return remote.Endpoint{URL: to.URL, Keys: keys, Client: d.http}, nil
}

// Address returns a URL that a client names, which has other means than a signature to know who sends
// to it. The URL is what, for errors.
func (d *Directory) Address(what, to string) (remote.Endpoint, error) {
	if u, err := url.Parse(to); err != nil || d.cfg.Egress.CheckURL(u) != nil {
		return remote.Endpoint{}, events.Errorf(events.Forbidden, "%s is an address that this server does not connect to (--egress-allow)", what)
	}
	return remote.Endpoint{URL: to, Unsigned: true, Client: d.http}, nil
}

// signs reports whether a variable's secret may sign a tenant's requests to a URL.
func (d *Directory) signs(tenant, name, to string) bool {
	return slices.ContainsFunc(d.cfg.Secrets, func(v Variable) bool { return v.Signs(tenant, name, to) })
}
