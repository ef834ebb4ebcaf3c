package clients_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/skein-threads/skein"
	"github.com/skein-threads/skein/internal/embedded"
	"github.com/skein-threads/skein/internal/natstest"
	"github.com/skein-threads/skein/operator/access"
)

// natsServer is a Skein whose clients reach it over NATS. Its tests tell it over HTTP to be stopped, to
// be started, to lose what it answers, or to cut its connections.
type natsServer struct {
	t       *testing.T
	options skein.Options
	say     script
	proxy   *natstest.Proxy

	mu     sync.Mutex // guards server
	server *skein.Server
}

// startNATS starts a Skein with accounts, the reactors "echo" and "assistant", and users of the tenant
// acme. It returns the environment of a script of tests.
func startNATS(t *testing.T) []string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "access")
	folder, err := access.Init(dir, access.InitOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var env []string
	for name, roles := range map[string][]access.Role{"app": {access.Publisher, access.Subscriber}, "reader": {access.Subscriber}, "writer": {access.Publisher}} {
		creds, _, err := folder.Add(access.User{Name: name, Tenant: "acme", Roles: roles})
		if err != nil {
			t.Fatal(err)
		}
		env = append(env, "SKEIN_CREDS_"+name+"="+creds)
	}
	address := natstest.FreeAddress(t)
	return append(env, serveNATS(t, address, skein.Options{Store: t.TempDir(), NATSListen: address, Access: dir})...)
}

// startNATSWithPasswords is startNATS with a nats-server of its own, whose users have passwords: their
// names.
func startNATSWithPasswords(t *testing.T) []string {
	t.Helper()
	conf := filepath.Join(t.TempDir(), "nats.conf")
	if err := os.WriteFile(conf, []byte(`authorization { users = [
		{user: skein, password: skein}
		{user: app, password: app}
		{user: reader, password: reader, permissions: {publish: ["skein.query.acme.>"], subscribe: ["skein.timeline.acme.>", "_INBOX.reader.>"]}}
		{user: writer, password: writer, permissions: {publish: ["skein.cmd.acme.>", "skein.query.acme.>"], subscribe: ["_INBOX.writer.>"]}}
	] }`), 0o600); err != nil {
		t.Fatal(err)
	}
	address := natstest.FreeAddress(t)
	natstest.Start(t, natstest.Listen(address), func(o *embedded.Options) { o.Conf = conf })
	return serveNATS(t, address, skein.Options{NATS: "nats://skein:skein@" + address, NATSListen: skein.None})
}

// serveNATS starts a Skein, a proxy in front of its nats-server, and what tells it what to do.
func serveNATS(t *testing.T, address string, o skein.Options) []string {
	t.Helper()
	s := &natsServer{t: t, options: o, say: make(script), proxy: natstest.NewProxy(t, "nats://"+address)}
	s.options.HTTPListen, s.options.Setup = skein.None, s.setup
	s.options.Logger = zerolog.New(zerolog.NewTestWriter(t)).Level(zerolog.ErrorLevel) // that the connection is lost is meant
	s.start()
	t.Cleanup(s.stop)
	control := httptest.NewServer(s)
	t.Cleanup(control.Close)
	return []string{"SKEIN_NATS=" + s.proxy.URL(), "SKEIN_NATS_DIRECT=nats://" + address, "CONTROL_URL=" + control.URL}
}

func (s *natsServer) setup(server *skein.Server) error {
	if err := server.Reactor("echo", echoes); err != nil {
		return err
	}
	return server.Reactor("assistant", s.say.react)
}

func (s *natsServer) start() {
	s.mu.Lock()
	defer s.mu.Unlock()
	var err error
	if s.server, err = skein.Start(context.Background(), s.options); err != nil {
		s.t.Errorf("start Skein: %v", err)
	}
}

func (s *natsServer) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.server == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	if err := s.server.Stop(ctx); err != nil {
		s.t.Errorf("stop Skein: %v", err)
	}
	s.server = nil
}

// ServeHTTP does what the path says, or passes on a piece of an answer.
func (s *natsServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/stop":
		s.stop()
	case "/start":
		s.start()
	case "/cut":
		s.proxy.Cut()
	case "/lose": // answers, until it is cut
		s.proxy.DropReceived.Store(true)
	default:
		s.say.ServeHTTP(w, r)
	}
}
