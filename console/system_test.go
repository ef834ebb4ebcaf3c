package console_test

import (
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/skein-threads/skein"
	"github.com/skein-threads/skein/api/keys"
	"github.com/skein-threads/skein/internal/access"
	"github.com/skein-threads/skein/skeintest"
)

// What a process tells of itself and of all tenants together is for those who operate it: a key
// of a tenant has no such page, and its navigation does not name it.
func TestSystem_IsForOperators(t *testing.T) {
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
	has(t, page, "SKEIN_LOG", "SKEIN_TIMELINE", "thread_threads", "read models", "this process", "for ever", "Faults that were met", "Retention policies are applied", `href="/console/system"`, "not", "acme")
}
