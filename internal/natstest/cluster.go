package natstest

import (
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// ClusterSize is how many servers a Cluster has.
const ClusterSize = 3

// clusterPatience bounds what a cluster of servers in one process must reach, on
// a machine with much else to do.
const clusterPatience = 2 * time.Minute

// Cluster is three nats-servers with JetStream in the test's own process.
type Cluster struct {
	t       testing.TB
	log     record
	options [ClusterSize]server.Options
	Servers [ClusterSize]*server.Server // as they were last started
}

// StartCluster runs a cluster until the test and its cleanups registered later
// end, and returns when it has a leader that knows all servers.
func StartCluster(t testing.TB) *Cluster {
	t.Helper()
	c := &Cluster{t: t}
	t.Cleanup(func() { c.log.show(t) }) // after the end of the servers
	var routes [ClusterSize]int
	for i := range routes {
		routes[i] = freePort(t)
	}
	for i := range c.options {
		c.options[i] = server.Options{
			ServerName: fmt.Sprint("n", i+1), Host: "127.0.0.1", Port: freePort(t), JetStream: true, StoreDir: t.TempDir(), NoSigs: true, NoLog: true,
			MaxPayload: 4 << 20, Cluster: server.ClusterOpts{Name: "skein", Host: "127.0.0.1", Port: routes[i], NoAdvertise: true},
			Routes: server.RoutesFromStr(fmt.Sprintf("nats://127.0.0.1:%d,nats://127.0.0.1:%d", routes[(i+1)%ClusterSize], routes[(i+2)%ClusterSize])),
		}
		c.Start(i)
	}
	t.Cleanup(func() {
		for i := range c.Servers {
			c.Stop(i)
		}
	})
	for begin := time.Now(); !c.formed(); time.Sleep(10 * time.Millisecond) {
		if time.Since(begin) > clusterPatience {
			t.Fatal("natstest: the cluster has no leader that knows all servers")
		}
	}
	return c
}

func freePort(t testing.TB) int {
	t.Helper()
	address, err := net.ResolveTCPAddr("tcp", FreeAddress(t))
	if err != nil {
		t.Fatalf("natstest: %v", err)
	}
	return address.Port
}

func (c *Cluster) formed() bool {
	for _, s := range c.Servers {
		if len(s.JetStreamClusterPeers()) == ClusterSize {
			return true
		}
	}
	return false
}

// Start starts a server that was stopped, at the address that it had.
func (c *Cluster) Start(i int) {
	c.t.Helper()
	o := c.options[i]
	s, err := server.NewServer(&o)
	if err != nil {
		c.t.Fatalf("natstest: %v", err)
	}
	c.Servers[i] = s
	s.SetLoggerV2(namedLog{o.ServerName, &c.log}, false, false, false)
	s.Start()
	if !s.ReadyForConnections(clusterPatience) {
		c.t.Fatal("natstest: a server of the cluster is not ready")
	}
}

// Stop stops a server and waits until it has ended.
func (c *Cluster) Stop(i int) {
	c.Servers[i].Shutdown()
	c.Servers[i].WaitForShutdown()
}

// Name returns the name of a server.
func (c *Cluster) Name(i int) string { return c.options[i].ServerName }

// URL names all servers, for a client.
func (c *Cluster) URL() string {
	var urls []string
	for i := range c.options {
		urls = append(urls, fmt.Sprintf("nats://127.0.0.1:%d", c.options[i].Port))
	}
	return strings.Join(urls, ",")
}
