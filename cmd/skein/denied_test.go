package main_test

import (
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// What the credentials do not permit is told by every command in one line, without waiting for an
// answer that does not come.
func TestDenied_IsOneLine(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "access")
	for _, args := range []string{"init --host 127.0.0.1", "user --tenant acme --role publisher --role subscriber --name app"} {
		if o := run(t, nil, "", append(append([]string{"access"}, strings.Fields(args)...), "--dir", dir)...); o.code != 0 {
			t.Fatal(o.err)
		}
	}
	s := start(t, t.TempDir(), "--access", dir)
	env := []string{
		"SKEIN_SERVER=" + s.NATS, "SKEIN_TENANT=acme", "SKEIN_CREDS=" + filepath.Join(dir, "creds", "tenant.acme.app.creds"),
		"SKEIN_TLS_CA=" + filepath.Join(dir, "tls", "ca.pem"), "SKEIN_TIMEOUT=5m",
	}
	const thread = "T-01900000-0000-7000-8000-000000000000"
	for _, args := range []string{
		"size", "archive", "archive " + thread, "thread freeze", "thread freeze " + thread, "audit verify", "audit trail " + thread, "audit diff --from 0 " + thread,
		"audit export " + thread, "replay --verify", "files gc", "backup " + filepath.Join(t.TempDir(), "backup"), "operation list",
	} {
		began := time.Now()
		o := run(t, env, "", strings.Fields(args)...)
		if o.code != 1 || !strings.HasPrefix(o.err, "skein: forbidden: these credentials may not ") || strings.Count(o.err, "\n") != 1 {
			t.Errorf("skein %s: exit %d: %q", args, o.code, o.err)
		}
		if took := time.Since(began); took > time.Minute {
			t.Errorf("skein %s took %v", args, took)
		}
	}
	if o := run(t, env, "", "thread", "list"); o.code != 0 {
		t.Errorf("%+v", o)
	}
}
