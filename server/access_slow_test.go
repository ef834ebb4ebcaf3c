package server_test

import (
	"net"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/skein-threads/skein/connect"
	"github.com/skein-threads/skein/operator/access"
)

// slowDialer makes connections of a client that takes longer to answer the server's greeting
// than nats-server and nats.go wait by themselves.
type slowDialer struct{ delay time.Duration }

func (d slowDialer) Dial(network, address string) (net.Conn, error) {
	c, err := net.Dial(network, address)
	if err != nil {
		return nil, err
	}
	return &slowConn{Conn: c, delay: d.delay}, nil
}

type slowConn struct {
	net.Conn
	delay time.Duration
	first sync.Once
}

func (c *slowConn) Write(p []byte) (int, error) {
	c.first.Do(func() { time.Sleep(c.delay) })
	return c.Conn.Write(p)
}

// A busy machine needs more than the 2 s that nats.go and nats-server wait by themselves.
func TestAccess_SlowHandshake(t *testing.T) {
	t.Parallel()
	app := access.User{Name: "app", Tenant: "acme", Roles: []access.Role{access.Publisher}}
	slowly := func(t *testing.T, url, creds, ca string) {
		t.Helper()
		opts, err := connect.Options{Creds: creds, CA: ca}.NATS("slow")
		if err != nil {
			t.Fatal(err)
		}
		nc, err := nats.Connect(url, append(opts, nats.SetCustomDialer(slowDialer{2500 * time.Millisecond}))...)
		if err != nil {
			t.Fatal(err)
		}
		nc.Close()
	}
	for name, init := range map[string]access.InitOptions{"TLS": {Hosts: []string{"127.0.0.1"}}, "plain": {}} {
		t.Run("embedded "+name, func(t *testing.T) {
			t.Parallel()
			g := startGuarded(t, init, app)
			slowly(t, g.url(), g.creds("acme", "app"), g.ca())
		})
	}
	t.Run("standalone", func(t *testing.T) {
		t.Parallel()
		init := access.InitOptions{Listen: "127.0.0.1:-1", Store: t.TempDir(), Hosts: []string{"127.0.0.1"}}
		folder, err := access.Init(filepath.Join(t.TempDir(), "access"), init)
		if err != nil {
			t.Fatal(err)
		}
		creds, _, err := folder.Add(app)
		if err != nil {
			t.Fatal(err)
		}
		ns, _ := standalone(t, folder)
		ca, _ := folder.CA()
		slowly(t, ns.ClientURL(), creds, ca)
	})
}
