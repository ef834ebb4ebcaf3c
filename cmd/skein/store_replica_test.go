package main_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/skein-threads/skein/internal/natstest"
)

// Of a cluster one server is gone, and each of the two others lost another block of the log. Each
// store is repaired from the other, and together they have all of it.
func TestStore_RepairsFromAReplica(t *testing.T) {
	t.Parallel()
	nodes := natstest.StartCluster(t)
	s := startLogged(t, os.Stderr, "", "--nats", nodes.URL(), "--replicas", "3")
	content := filepath.Join(t.TempDir(), "content")
	if err := os.WriteFile(content, bytes.Repeat([]byte("content of a file "), 9000), 0o600); err != nil {
		t.Fatal(err)
	}
	var made reply
	decode(t, s.ok("thread", "create", "--json"), &made)
	s.ok("files", "put", made.ThreadID, content, "/a.txt")
	s.fill(200)
	threads := s.ok("thread", "list", "--limit", "500", "--json")
	s.stop()
	var stores [natstest.ClusterSize]string
	for i := range stores {
		stores[i] = filepath.Dir(nodes.Servers[i].StoreDir())
		nodes.Stop(i)
	}
	one, two := stores[0], stores[1]
	flip(t, logBlocks(t, one)[0], 0.5)
	flip(t, logBlocks(t, two)[1], 0.5)
	for _, c := range []struct{ store, from string }{{one, two}, {two, one}} {
		if o := run(t, nil, "", "store", "repair", "--store", c.store); o.code != 1 || !strings.Contains(o.err, "nowhere to be found: SKEIN_LOG") {
			t.Errorf("repair without the other replica: %+v", o)
		}
		o := run(t, nil, "", "store", "repair", "--store", c.store, "--from", c.from)
		if o.code != 0 || !strings.Contains(o.out, "SKEIN_LOG: ") || !strings.Contains(o.out, " 1 of them restored from elsewhere") {
			t.Fatalf("repair: %+v", o)
		}
		if o := run(t, nil, "", "store", "check", "--store", c.store); o.code != 0 {
			t.Errorf("check after the repair: %+v", o)
		}
	}
	nodes.Start(0)
	nodes.Start(1)
	s = start(t, "", "--nats", nodes.URL(), "--replicas", "3")
	if got := s.ok("thread", "list", "--limit", "500", "--json"); got != threads {
		t.Error("after the repair, the threads are not those that there were")
	}
	s.ok("audit", "verify", "--all-tenants")
	s.ok("thread", "create")
	s.stop()
}
