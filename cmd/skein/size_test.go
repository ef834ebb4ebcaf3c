package main_test

import (
	"strings"
	"testing"
)

type sized struct {
	Tenant, Thread string
	Threads, Bytes int64
	Log, Documents struct{ Number, Bytes int64 }
}

// Sizes on the command line: of tenants, of a tenant's threads, of named threads; and a
// purge, which is complete on the server (AM-87) once documents are written again.
func TestSizeAndPurge(t *testing.T) {
	t.Parallel()
	s := start(t, t.TempDir())
	var small, large, other reply
	decode(t, s.ok("thread", "create", "--key", "small", "--json"), &small)
	decode(t, s.ok("thread", "create", "--key", "large", "--json"), &large)
	decode(t, s.ok("thread", "create", "--tenant", "globex", "--json"), &other)
	s.ok("message", "add", "key:large", strings.Repeat("where is it? ", 100))
	s.ok("thread", "list") // wait until the read models show everything
	threads := decodeLines[sized](t, s.ok("size", "--json"))
	if len(threads) != 3 || threads[0].Thread != large.ThreadID || threads[1].Thread != small.ThreadID || threads[2].Thread != "" ||
		threads[2].Threads != 2 || threads[2].Bytes < threads[0].Bytes+threads[1].Bytes || threads[0].Log.Number != 2 {
		t.Errorf("%+v", threads)
	}
	everywhere := run(t, []string{"SKEIN_SERVER=" + s.NATS}, "", "size", "--json")
	tenants := decodeLines[sized](t, everywhere.out)
	if everywhere.code != 0 || len(tenants) != 3 || tenants[0].Bytes != threads[2].Bytes || tenants[1].Tenant != "globex" || tenants[2].Threads != 3 {
		t.Errorf("%+v", everywhere)
	}
	if named := decodeLines[sized](t, s.ok("size", small.ThreadID, "--json")); len(named) != 2 || named[0] != threads[1] || named[1].Bytes != named[0].Bytes {
		t.Errorf("%+v", named)
	}
	text := run(t, s.env, "", "size", "--limit", "1")
	if text.code != 0 || !strings.Contains(text.out, "2 threads") || strings.Contains(text.out, small.ThreadID) || !strings.Contains(text.err, "1 more") {
		t.Errorf("%+v", text)
	}
	s.ok("thread", "delete", "key:large", "--purge")
	if o := run(t, s.env, "", "thread", "get", large.ThreadID); o.code != 1 || !strings.HasPrefix(o.err, "skein: not_found: ") {
		t.Errorf("a purged thread: %+v", o)
	}
	s.ok("replay", "--rewrite")
	s.ok("replay", "--verify")
	s.ok("audit", "verify")
	for _, c := range []struct {
		args string
		code int
	}{{"size --limit -1", 2}, {"replay --rewrite --verify", 2}} {
		if o := run(t, s.env, "", strings.Fields(c.args)...); o.code != c.code || !strings.HasPrefix(o.err, "skein: usage: ") {
			t.Errorf("skein %s: %+v", c.args, o)
		}
	}
	s.stop()
}
