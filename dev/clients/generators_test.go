package clients_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/skein-threads/skein/api/rest"
	"github.com/skein-threads/skein/dev/repository"
)

// What five released generators of clients, of different makers, write from /api/openapi.json
// compiles, and the parser of AsyncAPI reads docs/asyncapi.yaml from outside the checkout.
func TestGenerators(t *testing.T) {
	dir, node := installFrom(t, "generators/package.json", "generators/asyncapi.mjs", filepath.Join(repository.Root(), "docs", "asyncapi.yaml"))
	document := filepath.Join(dir, "openapi.json")
	raw, err := rest.OpenAPI()
	if err == nil {
		err = os.WriteFile(document, raw, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Run("typescript", func(t *testing.T) {
		t.Parallel()
		script := func(name string, args ...string) {
			t.Helper()
			runIn(t, dir, append([]string{node, filepath.Join("node_modules", filepath.FromSlash(name))}, args...)...)
		}
		script("openapi-typescript/bin/cli.js", "openapi.json", "-o", "openapi-typescript.ts")
		script("orval/dist/bin/orval.js", "--input", "openapi.json", "--output", "orval.ts", "--client", "fetch")
		script("swagger-typescript-api/dist/cli.js", "generate", "-p", "openapi.json", "-o", ".", "-n", "swagger-typescript-api.ts")
		script("typed-openapi/bin.js", "openapi.json", "-o", "typed-openapi.ts")
		script("typescript/bin/tsc", "--noEmit", "--strict", "--target", "es2022", "--module", "esnext", "--moduleResolution", "bundler", "--types", "node",
			"openapi-typescript.ts", "orval.ts", "swagger-typescript-api.ts", "typed-openapi.ts")
	})
	t.Run("oapi-codegen", func(t *testing.T) {
		t.Parallel()
		compileGoClient(t, document)
	})
	t.Run("asyncapi", func(t *testing.T) {
		t.Parallel()
		runIn(t, dir, node, "asyncapi.mjs", "asyncapi.yaml")
	})
}

// compileGoClient compiles what oapi-codegen writes from an OpenAPI document, in a module of its own.
// It skips the test where the modules cannot be fetched.
func compileGoClient(t *testing.T, document string) {
	t.Helper()
	const generator = "github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen"
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "go.mod"), []byte("module generated\n\ngo 1.26\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	get := exec.CommandContext(t.Context(), "go", "get", "-tool", generator+"@v2.8.2")
	get.Dir = dir
	if out, err := get.CombinedOutput(); err != nil {
		t.Skipf("go cannot fetch oapi-codegen: %v: %.300s", err, out)
	}
	runIn(t, dir, "go", "get", "github.com/oapi-codegen/runtime@v1.9.0")
	runIn(t, dir, "go", "tool", "oapi-codegen", "-generate", "types,client", "-package", "generated", "-o", "generated.go", document)
	runIn(t, dir, "go", "build", "-mod=mod", ".")
}

// runIn runs a program in a folder.
func runIn(t *testing.T, dir string, command ...string) {
	t.Helper()
	c := exec.CommandContext(t.Context(), command[0], command[1:]...)
	c.Dir = dir
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%.4000s", strings.Join(command, " "), err, out)
	}
}
