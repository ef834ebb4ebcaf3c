package console_test

import (
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/skein-threads/skein"
	"github.com/skein-threads/skein/api/keys"
	"github.com/skein-threads/skein/connect"
	"github.com/skein-threads/skein/eventlog"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/natstest"
	"github.com/skein-threads/skein/operator/access"
	"github.com/skein-threads/skein/server"
	"github.com/skein-threads/skein/skeintest"
)

// What a process tells of itself and of all tenants together is for those who operate it: a key
// of a tenant has no such page, and its navigation does not name it.
func TestSystem_IsForOperators(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "access")
	folder, err := access.Init(dir, access.InitOptions{})
	if err != nil {
		t.Fatal(err)
	}
	add := func(tenant string) (keys.Key, string) {
		made, key, err := folder.AddKey(keys.Key{Tenant: tenant, Roles: []string{"publisher", "subscriber"}})
		if err != nil {
			t.Fatal(err)
		}
		return made, key
	}
	_, tenants := add("acme")
	operator, operators := add("ops")
	s := skeintest.Start(t, func(o *skein.Options) {
		o.Access, o.HTTPListen, o.Operators = dir, "127.0.0.1:0", []string{operator.ID}
	})
	get := func(key, path string) (int, string) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.Addresses().HTTP+path, nil)
		s.Must(err)
		req.Header.Set("Authorization", "Bearer "+key)
		r, err := http.DefaultClient.Do(req)
		s.Must(err)
		defer r.Body.Close()
		raw, err := io.ReadAll(r.Body)
		s.Must(err)
		return r.StatusCode, string(raw)
	}
	if status, page := get(tenants, "/console/system"); status != http.StatusNotFound || strings.Contains(page, "SKEIN_LOG") || strings.Contains(page, `href="/console/system"`) {
		t.Errorf("a tenant's key sees %d %.300s", status, page)
	}
	if status, page := get(tenants, "/console/threads"); status != http.StatusOK || strings.Contains(page, `href="/console/system"`) {
		t.Errorf("its navigation: %d %.300s", status, page)
	}
	status, page := get(operators, "/console/system")
	if status != http.StatusOK {
		t.Fatalf("the operator's key: %d %.300s", status, page)
	}
	has(t, page, "SKEIN_LOG", "SKEIN_TIMELINE", "thread_threads", "read models", "this process", "for ever", "Faults that were met", "Retention policies are applied", "every 1 h", `href="/console/system"`, "not", "acme")
}

// Operators read what audits and backups reported, on the page and as JSON, as it was sent; to
// others none of it is told, whatever their roles. A page without reports says what to run.
func TestSystem_Operations(t *testing.T) {
	t.Parallel()
	folder, dir := newAccess(t)
	creds, _, err := folder.Add(access.User{Name: "root", Roles: []access.Role{access.Administrator}})
	if err != nil {
		t.Fatal(err)
	}
	_, tenants := addKey(t, folder, keys.Key{Tenant: "acme"})
	id, operators := addKey(t, folder, keys.Key{Tenant: "ops"})
	w := newWorld(t, dir, func(c *server.Config) { c.Operators, c.NATSListen = []string{id}, "127.0.0.1:0" })
	operator, tenant := w.visitor(), w.visitor()
	operator.post("/sign-in", "key", operators)
	tenant.post("/sign-in", "key", tenants)
	if _, page, _ := operator.get("/system"); !strings.Contains(page, "No audit of all tenants was reported yet") || !strings.Contains(page, "No backup was reported yet") ||
		!strings.Contains(page, "skein audit verify --all-tenants") || !strings.Contains(page, "skein backup DIR") {
		t.Errorf("without reports: %s", page)
	}

	opts, err := connect.Options{Creds: creds}.NATS("root")
	if err != nil {
		t.Fatal(err)
	}
	nc := natstest.Dial(t, w.nats, opts...)
	for _, o := range []events.Operation{
		{Kind: events.AuditOperation, Tenant: "globex", Threads: 1200, TookMs: 61_000, Findings: []events.OperationFault{{Kind: "chain", Count: 2}}},
		{Kind: events.BackupOperation, Failed: true},
	} {
		o.StartedAt = events.TimeOf(time.Now()).ISO()
		if err := eventlog.ReportOperation(t.Context(), nc, events.DefaultNames(), o); err != nil {
			t.Fatal(err)
		}
	}
	if status, page, _ := operator.get("/system"); status != http.StatusOK || !strings.Contains(page, "chain 2") || !strings.Contains(page, "1,200 threads") ||
		!strings.Contains(page, "tenant globex") || !strings.Contains(page, "1 min 1 s") || !strings.Contains(page, `<span class="status bad">failed</span>`) {
		t.Errorf("%d: %s", status, page)
	}
	list := func(key string) (int, string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, w.http+"/api/operations", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+key)
		status, body, _ := w.visitor().read(http.DefaultClient.Do(r))
		return status, body
	}
	if status, body := list(operators); status != http.StatusOK || !strings.HasPrefix(body, `{"operations":[{"failed":true,"kind":"backup",`) && !strings.HasPrefix(body, `{"operations":[{"kind":"backup",`) || !strings.Contains(body, `"findings":[{"kind":"chain","count":2}]`) {
		t.Errorf("the operator's list: %d %s", status, body)
	}
	if status, body := list(tenants); status != http.StatusForbidden || strings.Contains(body, "globex") || strings.Contains(body, "findings") {
		t.Errorf("a tenant's key lists %d %s", status, body)
	}
	if status, body := list("skein_x_y"); status != http.StatusUnauthorized || strings.Contains(body, "globex") {
		t.Errorf("no key lists %d %s", status, body)
	}
	if status, page, _ := tenant.get("/system"); status != http.StatusNotFound || strings.Contains(page, "globex") {
		t.Errorf("a tenant sees %d %s", status, page)
	}
}
