package clients_test

import (
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/skein-threads/skein"
	"github.com/skein-threads/skein/skeintest"
)

// A TypeScript client that is generated from /api/openapi.json compiles, and works.
func TestREST_GeneratedClient(t *testing.T) {
	dir, node := install(t, "rest.ts")
	s := skeintest.Start(t, func(o *skein.Options) { o.HTTPListen, o.Tenant = "127.0.0.1:0", "acme" })
	url := s.Addresses().HTTP
	r, err := http.Get(url + "/api/openapi.json")
	s.Must(err)
	defer r.Body.Close()
	raw, err := io.ReadAll(r.Body)
	s.Must(err)
	s.Must(os.WriteFile(filepath.Join(dir, "openapi.json"), raw, 0o600))
	modules := filepath.Join(dir, "node_modules")
	for _, args := range [][]string{
		{filepath.Join(modules, "openapi-typescript", "bin", "cli.js"), "openapi.json", "-o", "api.d.ts"},
		{filepath.Join(modules, "typescript", "bin", "tsc"), "--strict", "--target", "es2022", "--module", "esnext", "--moduleResolution", "bundler", "--types", "node", "rest.ts"},
		{"--test", "--test-reporter=spec", "--test-timeout=300000", "rest.js"},
	} {
		cmd := exec.CommandContext(t.Context(), node, args...)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "SKEIN_URL="+url)
		out, err := cmd.CombinedOutput()
		t.Logf("%s", out)
		if err != nil {
			t.Fatalf("node %s: %v", args[0], err)
		}
	}
}
