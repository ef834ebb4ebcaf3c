package server

import (
	"context"
	"errors"
	"sync"

	"github.com/nats-io/nats.go"
	"github.com/rs/zerolog"

	"github.com/skein-threads/skein/api"
	"github.com/skein-threads/skein/api/edge"
	"github.com/skein-threads/skein/api/keys"
	"github.com/skein-threads/skein/connect"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/operator/access"
	"github.com/skein-threads/skein/server/metrics"
)

// Gateway is `skein gateway`: Skein's HTTP in a process of its own, next to as many others as one
// likes, for a Skein that runs elsewhere. It is safe for concurrent use.
//
//   - It serves what `skein serve` serves at --http-listen, with the same code. It stores
//     nothing: a stream that began at one gateway continues at another.
//   - API keys are those of the Skein that it serves: it asks for each that it is shown, and
//     what a revoked key does here ends within a second.
//   - A ticket or a session of one gateway is taken by the others as long as that one runs.
//   - It runs nothing and decides nothing: its NATS credentials, of the role gateway, decide what it
//     may do, and for each request package edge does.
type Gateway struct {
	cfg     GatewayConfig
	logger  zerolog.Logger
	nc      *nats.Conn
	keys    *keys.Remote // nil at a desk
	handler *api.Handler
	site    *api.Site
	metrics *metrics.Metrics
	stop    sync.Once
	stopErr error
}

// StartGateway starts a gateway, and returns when it accepts requests.
func StartGateway(cfg GatewayConfig, logger zerolog.Logger) (*Gateway, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	g := &Gateway{cfg: cfg.withDefaults(), logger: logger, metrics: metrics.New()}
	var err error
	g.site, err = api.OpenSite(cfg.Listen, cfg.OpsListen, logger)
	if err != nil {
		return nil, err
	}
	if err := g.open(); err != nil {
		g.site.Close()
		g.close()
		return nil, err
	}
	g.site.Serve(g.handler, g.ops())
	return g, nil
}

// open connects, and makes the handler.
func (g *Gateway) open() error {
	opts, err := g.cfg.connection().NATS("skein-gateway")
	if err != nil {
		return events.Errorf(events.Unauthorized, "%w", err)
	}
	g.nc, err = nats.Connect(g.cfg.NATS, append(opts, nats.ErrorHandler(g.asynchronous))...)
	if errors.Is(err, nats.ErrAuthorization) {
		return events.Errorf(events.Unauthorized, "the server %s refuses these credentials: %w", connect.WithoutCredentials(g.cfg.NATS), err)
	}
	if err != nil {
		return events.Errorf(events.Unavailable, "%w", connect.Failed(g.cfg.NATS, err))
	}
	served, err := g.serves()
	if err != nil {
		return err
	}
	auth := g.authenticator(served)
	g.handler, err = api.New(api.Options{
		Conn: g.nc, Names: g.cfg.Names, Auth: auth, Ops: g.ops(), Metrics: g.metrics, Realm: edge.GatewayRealm, Serves: served, Listen: g.cfg.Listen, Prices: g.cfg.Prices, A2AAgent: g.cfg.A2AAgent,
		OpenOps: api.ListenOptions{Address: g.cfg.Listen.Address}.Validate(false) == nil,
	})
	return err
}

// asynchronous logs what the server says of no request in particular.
func (g *Gateway) asynchronous(_ *nats.Conn, _ *nats.Subscription, err error) {
	g.logger.Warn().Err(err).Msg("the NATS server reports an error")
}

// serves returns the tenants that the gateway serves; empty: all that its connection reaches.
func (g *Gateway) serves() ([]string, error) {
	switch {
	case g.cfg.keys():
		return access.Serves(g.cfg.Creds, g.cfg.Names)
	case g.cfg.Tenant != "":
		return []string{g.cfg.Tenant}, nil
	}
	return nil, nil
}

// authenticator returns who may use the gateway.
func (g *Gateway) authenticator(served []string) edge.Authenticator {
	if !g.cfg.keys() && !g.cfg.Listen.Tokens.Enabled() {
		return edge.Desk{Tenant: g.cfg.Tenant, Credentials: g.cfg.credentials()}
	}
	var auth api.Authenticator
	if g.cfg.keys() {
		g.keys = keys.Follow(g.nc, g.cfg.Names, served)
		auth.Keys = g.keys
	}
	auth.Tokens = g.cfg.Listen.TokenAuthenticator(served, g.logger)
	return auth
}

// Addresses returns the URLs of HTTP, and of health and metrics if they have their own.
func (g *Gateway) Addresses() (http, ops string) { return g.site.HTTP, g.site.Ops }

// Stop ends streams, whose readers resume elsewhere, answers the requests in flight until ctx
// ends, and closes everything. Every call returns after the end, with the same error.
func (g *Gateway) Stop(ctx context.Context) error {
	g.stop.Do(func() {
		g.handler.Close()
		g.stopErr = g.site.Stop(ctx)
		g.close()
	})
	return g.stopErr
}

func (g *Gateway) close() {
	if g.keys != nil {
		g.keys.Close()
	}
	if g.nc != nil {
		g.nc.Close()
	}
}
