package embedded

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
)

// The servers of deploy/cluster are durable, take what the embedded one takes,
// listen on loopback, and name each other.
func TestConfOfTheCluster(t *testing.T) {
	for i := range 3 {
		name := fmt.Sprint("n", i+1)
		o, err := server.ProcessConfigFile(filepath.Join("..", "..", "deploy", "cluster", name+".conf"))
		if err != nil {
			t.Fatal(err)
		}
		if !o.JetStream || !o.SyncAlways || o.MaxPayload != DefaultMaxPayload || !o.NoSublistCache || !o.NoFastProducerStall || o.Host != "127.0.0.1" || o.Cluster.Host != "127.0.0.1" {
			t.Errorf("%s: JetStream %v, sync always %v, max payload %d, host %s and %s", name, o.JetStream, o.SyncAlways, o.MaxPayload, o.Host, o.Cluster.Host)
		}
		if o.PingInterval != pingInterval || o.MaxPingsOut != pingsOut {
			t.Errorf("%s: pings every %v, %d unanswered", name, o.PingInterval, o.MaxPingsOut)
		}
		if o.ServerName != name || o.Cluster.Name != "skein" || o.Port != 4221+i || o.Cluster.Port != 6221+i || o.HTTPPort != 8221+i || o.StoreDir != "./skein-cluster/"+name {
			t.Errorf("%s: %s of %s, ports %d, %d and %d, store %s", name, o.ServerName, o.Cluster.Name, o.Port, o.Cluster.Port, o.HTTPPort, o.StoreDir)
		}
		for _, other := range []int{(i + 1) % 3, (i + 2) % 3} {
			found := false
			for _, route := range o.Routes {
				found = found || route.Host == fmt.Sprintf("127.0.0.1:%d", 6221+other)
			}
			if !found || len(o.Routes) != 2 {
				t.Errorf("%s: routes %v", name, o.Routes)
			}
		}
	}
}
