package main_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// secretKey matches secret keys of NATS.
var secretKey = regexp.MustCompile(`\bS[OAU][A-Z2-7]{56}\b|\beyJ[A-Za-z0-9_-]{20,}`)

// From an empty folder to a tenant's user, over TLS, until it is revoked; no secret is
// printed.
func TestAccess(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "access")
	do := func(code int, args ...string) string {
		t.Helper()
		o := run(t, nil, "", append(args, "--access", dir)...)
		if o.code != code {
			t.Fatalf("skein %s: exit %d: %s%s", strings.Join(args, " "), o.code, o.out, o.err)
		}
		if found := secretKey.FindString(o.out + o.err); found != "" {
			t.Errorf("skein %s prints a secret: %.12s...", strings.Join(args, " "), found)
		}
		return o.out + o.err
	}
	do(1, "access", "list")
	var made struct{ Conf, Creds, Account, TLSCa string }
	decode(t, do(0, "access", "init", "--host", "127.0.0.1", "--json"), &made)
	do(1, "access", "init")
	var tenant struct {
		Tenant, Account string
		Reload          bool
	}
	decode(t, do(0, "access", "tenant", "early", "--json"), &tenant)
	if !tenant.Reload || tenant.Tenant != "early" || !strings.HasPrefix(tenant.Account, "A") {
		t.Errorf("%+v", tenant)
	}
	if again := do(0, "access", "tenant", "early"); !strings.Contains(again, tenant.Account) || strings.Contains(again, "reload") {
		t.Errorf("the same tenant: %s", again)
	}
	do(2, "access", "tenant", "a.b")
	do(2, "access", "tenant")
	var user struct {
		Creds, Inbox string
		Reload       bool
	}
	decode(t, do(0, "access", "user", "--tenant", "acme", "--role", "publisher", "--role", "subscriber", "--name", "app", "--expires", "1h", "--json"), &user)
	if !user.Reload || user.Inbox != "_INBOX.app" {
		t.Errorf("%+v", user)
	}
	if info, err := os.Stat(user.Creds); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	do(0, "access", "user", "--role", "auditor", "--name", "eye")
	do(2, "access", "user", "--tenant", "acme", "--role", "king", "--name", "x")
	do(2, "access", "user", "--role", "publisher", "--name", "x")
	do(1, "access", "user", "--tenant", "acme", "--role", "publisher", "--name", "app")
	do(1, "access", "revoke", "--tenant", "acme", "--name", "nobody")

	s := start(t, t.TempDir(), "--access", dir)
	ca := filepath.Join(dir, "tls", "ca.pem")
	env := []string{"SKEIN_SERVER=" + s.NATS, "SKEIN_TENANT=acme", "SKEIN_CREDS=" + user.Creds, "SKEIN_TLS_CA=" + ca}
	first := user
	decode(t, do(0, "access", "user", "--tenant", "early", "--role", "publisher", "--name", "first", "--json"), &first)
	if o := run(t, []string{"SKEIN_SERVER=" + s.NATS, "SKEIN_TENANT=early", "SKEIN_CREDS=" + first.Creds, "SKEIN_TLS_CA=" + ca}, "", "thread", "create"); first.Reload || o.code != 0 {
		t.Errorf("the first user of a tenant that the server knows: %+v: %s", first, o.err)
	}
	as := func(env []string, code int, args ...string) outcome {
		t.Helper()
		o := run(t, env, "", args...)
		if o.code != code {
			t.Fatalf("skein %s: exit %d: %s", strings.Join(args, " "), o.code, o.err)
		}
		return o
	}
	var thread reply
	decode(t, as(env, 0, "thread", "create", "--title", "an order", "--json").out, &thread)
	if o := as(env, 0, "tail", "--follow=false", "--json"); !strings.Contains(o.out, "thread.created") {
		t.Error(o.out)
	}
	other := append([]string{"SKEIN_TENANT=globex"}, env[0], env[2], env[3])
	if o := as(other, 1, "thread", "list"); !strings.HasPrefix(o.err, "skein: forbidden: ") {
		t.Error(o.err)
	}
	auditor := []string{env[0], env[1], env[3], "SKEIN_CREDS=" + filepath.Join(dir, "creds", "auditor.eye.creds")}
	as(auditor, 0, "audit", "verify", "--all-tenants", "--js-domain", "skein")
	as([]string{env[0], env[1], env[3]}, 1, "thread", "list")

	do(0, "access", "revoke", "--tenant", "acme", "--name", "app")
	if list := do(0, "access", "list"); !strings.Contains(list, "revoked") || !strings.Contains(list, "eye") {
		t.Error(list)
	}
	revokeWhileServing(t, dir, s)
	s.stop()
}

// revokeWhileServing adds a user while the server runs, checks that it can connect,
// revokes it, and waits until the server applied that.
func revokeWhileServing(t *testing.T, dir string, s *server) {
	t.Helper()
	path := filepath.Join(dir, "creds", "tenant.acme.late.creds")
	if o := run(t, nil, "", "access", "user", "--access", dir, "--tenant", "acme", "--role", "publisher", "--name", "late"); o.code != 0 {
		t.Fatal(o.err)
	}
	body, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	kept := filepath.Join(t.TempDir(), "kept.creds")
	if err := os.WriteFile(kept, body, 0o600); err != nil {
		t.Fatal(err)
	}
	env := []string{"SKEIN_SERVER=" + s.NATS, "SKEIN_TENANT=acme", "SKEIN_CREDS=" + kept, "SKEIN_TLS_CA=" + filepath.Join(dir, "tls", "ca.pem")}
	if o := run(t, env, "", "thread", "list"); o.code != 0 {
		t.Fatalf("a user of a known tenant needs no reload: %s", o.err)
	}
	if o := run(t, nil, "", "access", "revoke", "--access", dir, "--tenant", "acme", "--name", "late"); o.code != 0 {
		t.Fatal(o.err)
	}
	if err := s.cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(5 * time.Minute); ; {
		o := run(t, env, "", "thread", "list")
		if o.code == 1 && strings.HasPrefix(o.err, "skein: unauthorized: ") {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("the revoked user: exit %d, %s", o.code, o.err)
		}
	}
}

// The key that a server is asked with is printed once, as JSON with the names of the
// contract, and lists have no secret.
func TestAccessKey_CreateListRevoke(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "access")
	runs := func(want int, args ...string) string {
		t.Helper()
		o := run(t, nil, "", args...)
		if o.code != want {
			t.Fatalf("%v: %d, %s%s", args, o.code, o.out, o.err)
		}
		return o.out
	}
	runs(0, "access", "init", "--access", dir)
	var made struct{ ID, Key, Tenant, ExpiresAt string }
	decode(t, runs(0, "access", "key", "create", "--access", dir, "--tenant", "acme", "--role", "publisher,subscriber", "--expires", "90d", "--json"), &made)
	if !strings.HasPrefix(made.Key, "skein_"+made.ID+"_") || made.Tenant != "acme" || made.ExpiresAt == "" {
		t.Errorf("%+v", made)
	}
	for _, wrong := range [][]string{
		{"--role", "publisher"}, {"--tenant", "acme"}, {"--tenant", "acme", "--role", "auditor"}, {"--tenant", "acme", "--role", "publisher", "--expires", "-1d"},
		{"--tenant", "acme", "--role", "publisher", "--can", "everything"}, {"--tenant", "acme", "--role", "publisher", "--thread", "key:x"},
	} {
		runs(2, append([]string{"access", "key", "create", "--access", dir}, wrong...)...)
	}
	if list := runs(0, "access", "key", "list", "--access", dir); !strings.Contains(list, made.ID) || strings.Contains(list, made.Key) {
		t.Errorf("%s", list)
	}
	runs(0, "access", "key", "revoke", "--access", dir, made.ID)
	if list := runs(0, "access", "key", "list", "--access", dir); !strings.Contains(list, "revoked") {
		t.Errorf("%s", list)
	}
	runs(1, "access", "key", "revoke", "--access", dir, made.ID)
}
