package server

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/rs/zerolog"

	"github.com/skein-threads/skein/api"
	"github.com/skein-threads/skein/api/keys"
	"github.com/skein-threads/skein/api/natsagents"
	"github.com/skein-threads/skein/commands"
	"github.com/skein-threads/skein/connect"
	"github.com/skein-threads/skein/eventlog"
	"github.com/skein-threads/skein/eventlog/assets"
	"github.com/skein-threads/skein/eventlog/derived"
	"github.com/skein-threads/skein/eventlog/pairs"
	"github.com/skein-threads/skein/eventlog/streams"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/files"
	"github.com/skein-threads/skein/internal/embedded"
	"github.com/skein-threads/skein/operator/store"
	"github.com/skein-threads/skein/quota"
	"github.com/skein-threads/skein/runtime/webhooks"
	"github.com/skein-threads/skein/server/metrics"
	"github.com/skein-threads/skein/service"
)

// Server is a running Skein. It is safe for concurrent use.
type Server struct {
	cfg     Config
	logger  zerolog.Logger
	metrics *metrics.Metrics

	nats     *embedded.Server // nil if another server is used
	store    *store.Opened    // of the embedded server
	watch    watch
	url      string
	conns    []*nats.Conn
	logs     []*eventlog.Log
	recent   *eventlog.Recent
	floors   *streams.Floors
	outage   *eventlog.Outage
	writing  *streams.Writing
	site     *api.Site
	api      *api.Handler
	keys     *keys.Store // nil at a desk
	activity *quota.Activity

	clients           *nats.Conn // on which requests are answered
	answers, refusals *nats.Conn // on which requests are answered
	floods            *quota.Floods
	suspended         suspensions

	dispatcher        *commands.Dispatcher
	pairs             *pairs.Store
	pushes            *webhooks.Pushes
	operations        *eventlog.Operations
	commands, queries *service.Service
	embeddings        *service.Service    // nil: this process runs no agents
	agents            *natsagents.Service // nil: agents are not served
	files             *files.Service
	reading           reading
	work              running
	endLives          func(context.Context) (int, error) // those of states that are due by the clock

	background context.CancelFunc
	running    sync.WaitGroup

	stopping chan struct{}
	stopOnce sync.Once
	stopErr  error
}

// Addresses are the URLs at which a server can be reached, without credentials.
type Addresses struct {
	NATS, HTTP string
	Ops        string // second address of health and metrics; empty if none
}

// Start starts everything and returns when commands and queries are accepted. ctx
// bounds the start only; see Stop.
func Start(ctx context.Context, cfg Config, logger zerolog.Logger) (*Server, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	s := &Server{cfg: cfg.WithDefaults(), logger: logger, metrics: metrics.New(), recent: &eventlog.Recent{}, activity: &quota.Activity{}, floors: &streams.Floors{}, outage: eventlog.NewOutage(), writing: &streams.Writing{}, stopping: make(chan struct{}), watch: watch{asked: make(chan struct{}, 1)}}
	if err := s.start(ctx); err != nil {
		undo, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		_ = s.Stop(undo) // the first error says more
		return nil, err
	}
	return s, nil
}

func (s *Server) start(ctx context.Context) error {
	var background context.Context
	background, s.background = context.WithCancel(context.Background())
	// The ports first: a port in use is reported before the store is opened.
	if err := s.listen(); err != nil {
		return err
	}
	if err := s.assemble(ctx, background); err != nil {
		s.site.Close()
		return err
	}
	s.site.Serve(s.Handler(), s.ops())
	return nil
}

// listen opens the ports of HTTP.
func (s *Server) listen() (err error) {
	o := s.cfg.listen()
	if s.cfg.HTTPListen == NoListen {
		o.Address = ""
	}
	s.site, err = api.OpenSite(o, s.cfg.OpsListen, s.logger)
	return err
}

// hold runs work that must run once, while this process has its lease.
func (s *Server) hold(ctx context.Context, log *eventlog.Log, lease string, work func(context.Context) error) {
	s.metrics.Lease(lease, false)
	s.running.Go(func() {
		derived.LeasesOn(log.Streams(), log.Logger()).Hold(ctx, lease, func(holding context.Context) error {
			s.metrics.Lease(lease, true)
			defer s.metrics.Lease(lease, false)
			return work(holding)
		})
	})
}

// embed starts the embedded server, unless another one is used.
func (s *Server) embed(ctx context.Context) error {
	if s.cfg.NATS != "" {
		s.url = s.cfg.NATS
		return nil
	}
	o, err := s.cfg.embedded()
	if err != nil {
		return err
	}
	o.Logger = s.logger
	o.WriteFailed = func(err error) { s.unwritable(o.StoreDir, err) }
	o.OtherFailed = s.otherUnwritable
	o.Streams = assets.Kept(s.cfg.Names)
	o.Prepare, o.Ended = func() error { return s.openStore(ctx, o.StoreDir) }, s.closeStore
	if err := store.Room(o.StoreDir); err != nil {
		return err
	}
	server, err := embedded.Start(o)
	if err != nil {
		return store.Roomless(o.StoreDir, err)
	}
	s.nats, s.url = server, server.URL()
	s.writing.Room = s.roomOf(o.StoreDir)
	return nil
}

// peersTimeout is how long a write may take to other processes, which get nothing later.
const peersTimeout = 2 * time.Second

// connect returns a connection. Requests of tenants have connections of their own: if
// one is flooded, and closed by the server, only requests are delayed.
func (s *Server) connect(purpose string, more ...nats.Option) (*nats.Conn, error) {
	name := "skein-" + purpose
	opts, err := s.cfg.connection().NATS(name)
	opts = append(opts, more...)
	if err != nil {
		return nil, events.Errorf(events.Unauthorized, "%w", err)
	}
	var nc *nats.Conn
	if s.nats != nil { // it lives as long as this process
		nc, err = s.nats.ConnectInProcess(name, append(opts, nats.PingInterval(nats.DefaultPingInterval))...)
	} else {
		nc, err = nats.Connect(s.url, opts...)
	}
	if err != nil {
		return nil, events.Errorf(events.Unavailable, "%w", connect.Failed(s.url, err))
	}
	s.conns = append(s.conns, nc)
	return nc, nil
}

// open opens the log on a connection of its own.
func (s *Server) open(purpose string) (*eventlog.Log, error) {
	nc, err := s.connect(purpose)
	if err != nil {
		return nil, err
	}
	cfg := s.cfg.log()
	cfg.Recent, cfg.Floors, cfg.Outage, cfg.Writing = s.recent, s.floors, s.outage, s.writing
	if s.store != nil {
		cfg.Damage = s.watch.damage
	}
	log, err := eventlog.Open(nc, cfg, s.logger, s.metrics)
	if err != nil {
		return nil, err
	}
	s.logs = append(s.logs, log)
	return log, nil
}

// Reload reads the folder of access again: new tenants, revoked users, new
// certificates. It does nothing if the server is not embedded.
func (s *Server) Reload() error {
	if s.nats == nil || s.cfg.Access == "" {
		return nil
	}
	return s.nats.Reload()
}

// Addresses returns the URLs. They do not change while the server runs.
func (s *Server) Addresses() Addresses {
	return Addresses{NATS: connect.WithoutCredentials(s.url), HTTP: s.site.HTTP, Ops: s.site.Ops}
}

func namesOf[T any](rows []T, name func(T) string) []string {
	var out []string
	for _, r := range rows {
		out = append(out, name(r))
	}
	slices.Sort(out)
	return out
}
