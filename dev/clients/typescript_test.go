package clients_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/skein-threads/skein"
	"github.com/skein-threads/skein/dev/repository"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/skeintest"
)

// mostGzipped is how many bytes the code of the TypeScript client has at most, compressed.
const mostGzipped = 15_000

// The TypeScript client is built, packed, checked by publint and arethetypeswrong, installed from its
// package into a fresh folder, compiled against with its README's example, and run.
func TestTypeScript_Client(t *testing.T) {
	node, npm := findNode(t)
	tree, sources := t.TempDir(), filepath.Join(repository.Root(), "clients", "typescript") // where it was built there is more
	for _, folder := range []string{"src", "test"} {
		if err := os.CopyFS(filepath.Join(tree, "client", folder), os.DirFS(filepath.Join(sources, "client", folder))); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"package.json", "client/package.json", "client/tsconfig.json", "client/README.md"} {
		copyFile(t, filepath.Join(sources, name), filepath.Join(tree, name))
	}
	npmInstall(t, npm, tree)
	run := func(dir, program string, args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), program, args...)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s %s: %v\n%s", filepath.Base(program), strings.Join(args, " "), err, out)
		}
		return string(out)
	}
	client, tools := filepath.Join(tree, "client"), filepath.Join(tree, "node_modules")
	fresh := t.TempDir()
	run(client, npm, "pack", "--pack-destination", fresh)
	packed, err := filepath.Glob(filepath.Join(fresh, "*.tgz"))
	if err != nil || len(packed) != 1 {
		t.Fatalf("packed %q, %v", packed, err)
	}
	run(client, node, filepath.Join(tools, "publint", "src", "cli.js"), "--strict")
	run(client, node, filepath.Join(tools, "@arethetypeswrong", "cli", "dist", "index.js"), packed[0], "--profile", "esm-only")
	if size := gzipped(t, filepath.Join(client, "dist")); size > mostGzipped {
		t.Errorf("the client has %d bytes compressed, want at most %d", size, mostGzipped)
	}

	manifest := `{"private":true,"type":"module","dependencies":{"@skein-threads/client":"file:` + packed[0] + `","typescript":"5.9.3","ws":"8.18.3"}}`
	if err := os.WriteFile(filepath.Join(fresh, "package.json"), []byte(manifest), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"client.test.mjs", "types.ts"} {
		copyFile(t, filepath.Join(client, "test", name), filepath.Join(fresh, name))
	}
	readme, err := os.ReadFile(filepath.Join(client, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, example, _ := strings.Cut(string(readme), "```ts\n")
	example, _, _ = strings.Cut(example, "```")
	if err := os.WriteFile(filepath.Join(fresh, "readme.ts"), []byte(example), 0o600); err != nil {
		t.Fatal(err)
	}
	npmInstall(t, npm, fresh)
	run(fresh, node, filepath.Join("node_modules", "typescript", "bin", "tsc"), "--noEmit", "--strict", "--target", "es2022", "--module", "nodenext", "types.ts", "readme.ts")

	s := skeintest.Start(t, func(o *skein.Options) { o.HTTPListen, o.Tenant = "127.0.0.1:0", "acme" })
	s.Must(s.Reactor("echo", func(_ context.Context, _ *skein.StepInput, out skein.Stream) (*skein.Reaction, error) {
		for _, digit := range "0123456789" {
			out.Chunk(skein.Chunk{Type: "text-delta", Data: []byte(`{"id":"t","delta":"` + string(digit) + `"}`)})
		}
		return skein.Answer("0123456789"), nil
	}))
	_, err = s.Client("acme").Send(t.Context(), "", events.ApplyDefinitions{Definitions: []events.NewDefinition{
		{Kind: events.AgentKind, Definition: []byte(`{"name":"echo","type":"ai_human","reactor":"echo"}`)},
	}})
	s.Must(err)
	cmd := exec.CommandContext(t.Context(), node, "--test", "--test-reporter=spec", "--test-timeout=300000", "client.test.mjs")
	cmd.Dir, cmd.Env = fresh, append(os.Environ(), "SKEIN_URL="+s.Addresses().HTTP)
	out, err := cmd.CombinedOutput()
	t.Logf("%s", out)
	if err != nil {
		t.Fatal(err)
	}
}

// gzipped returns how many bytes the scripts of a folder have together, compressed.
func gzipped(t *testing.T, dir string) int {
	t.Helper()
	var packed bytes.Buffer
	out, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err != nil {
		t.Fatal(err)
	}
	scripts, err := filepath.Glob(filepath.Join(dir, "*.js"))
	if err != nil || len(scripts) == 0 {
		t.Fatalf("no scripts in %s: %v", dir, err)
	}
	for _, path := range scripts {
		raw, err := os.ReadFile(path)
		if err == nil {
			_, err = out.Write(raw)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	return packed.Len()
}
