package clients_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/skein-threads/skein"
	"github.com/skein-threads/skein/dev/repository"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/skeintest"
)

// mostGzipped is how many bytes the code of an entry of a TypeScript package has at most, compressed.
const mostGzipped = 15_000

// typescriptPackages returns the packages of clients/typescript, each after those that it needs.
func typescriptPackages() []string { return []string{"client", "langgraph", "react", "ai-sdk"} }

// The TypeScript packages are built, packed, checked by publint and arethetypeswrong, installed from
// what was packed into fresh folders, compiled against with the examples of their READMEs, and run
// against one Skein.
func TestTypeScript(t *testing.T) {
	node, npm := findNode(t)
	w := typescript{node: node, tree: t.TempDir(), fresh: t.TempDir(), older: t.TempDir()}
	w.copySources(t)
	npmInstall(t, npm, w.tree)
	w.run(t, w.tree, npm, "run", "build", "--workspaces")
	packed := map[string]string{}
	for _, name := range typescriptPackages() {
		packed["@skein-threads/"+name] = "file:" + w.pack(t, npm, name)
	}
	w.install(t, npm, packed)
	t.Run("compile", w.compile)

	say := make(script)
	s := refunds(t, say)
	echo(t, s)
	control := httptest.NewServer(say)
	t.Cleanup(control.Close)
	env := []string{"SKEIN_URL=" + s.Addresses().HTTP, "CONTROL_URL=" + control.URL}
	t.Run("start", func(t *testing.T) { w.start(t, s.Addresses().HTTP) })
	t.Run("client", func(t *testing.T) { runScript(t, node, w.fresh, "client.test.mjs", env...) })
	t.Run("README over NATS", func(t *testing.T) { w.overNATS(t, s.Addresses().NATS) })
	t.Run("client over NATS", func(t *testing.T) { runScript(t, node, w.fresh, "nats.test.mjs", startNATS(t)...) })
	t.Run("client on Deno", func(t *testing.T) {
		w.elsewhere(t, env, "deno", "test", "--allow-all", "--no-check", "client.test.mjs")
	})
	t.Run("client on Bun", func(t *testing.T) {
		w.elsewhere(t, env, "bun", "test", "--timeout=300000", "./client.test.mjs")
	})
	t.Run("react 19", func(t *testing.T) { runScript(t, node, w.fresh, "react.test.mjs", append(env, "REACT=19")...) })
	t.Run("react 18", func(t *testing.T) { runScript(t, node, w.older, "react.test.mjs", append(env, "REACT=18")...) })
	t.Run("ai 7", func(t *testing.T) { runScript(t, node, w.fresh, "ai-sdk.test.mjs", env...) })
	t.Run("ai 6", func(t *testing.T) { runScript(t, node, w.older, "ai-sdk.test.mjs", env...) })
	t.Run("langgraph", func(t *testing.T) {
		cmd := exec.CommandContext(t.Context(), node, filepath.Join("node_modules", "vitest", "vitest.mjs"), "run", "--globals", "--reporter=json", "saver.spec.mjs", "--testTimeout=300000", "--hookTimeout=300000")
		cmd.Dir, cmd.Env = w.fresh, append(os.Environ(), env...)
		out, err := cmd.Output()
		var report struct{ NumPassedTests, NumTotalTests int }
		_ = json.Unmarshal(out[max(0, bytes.IndexByte(out, '{')):], &report) // what is not a report has no tests
		if err != nil || report.NumPassedTests != report.NumTotalTests || report.NumPassedTests < 720 {
			t.Errorf("%d of %d tests pass: %v\n%.3000s", report.NumPassedTests, report.NumTotalTests, err, out)
		}
	})
}

// typescript is where the packages are built, and where they are installed.
type typescript struct{ node, tree, fresh, older string }

// copySources copies the sources: where they were built there is more.
func (w typescript) copySources(t *testing.T) {
	t.Helper()
	sources := filepath.Join(repository.Root(), "clients", "typescript")
	names := []string{"package.json", "package-lock.json", ".npmrc", "tsconfig.base.json"}
	for _, p := range typescriptPackages() {
		for _, folder := range []string{"src", "test"} {
			if err := os.CopyFS(filepath.Join(w.tree, p, folder), os.DirFS(filepath.Join(sources, p, folder))); err != nil {
				t.Fatal(err)
			}
		}
		for _, name := range []string{"package.json", "tsconfig.json", "README.md"} {
			names = append(names, filepath.Join(p, name))
		}
	}
	for _, name := range names {
		copyFile(t, filepath.Join(sources, name), filepath.Join(w.tree, name))
	}
}

func (w typescript) run(t *testing.T, dir, program string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", filepath.Base(program), strings.Join(args, " "), err, out)
	}
	return string(out)
}

// pack packs a package that is built, and checks what it has.
func (w typescript) pack(t *testing.T, npm, name string) (path string) {
	t.Helper()
	dir, tools := filepath.Join(w.tree, name), filepath.Join(w.tree, "node_modules")
	out := strings.Fields(w.run(t, dir, npm, "pack", "--silent", "--ignore-scripts", "--pack-destination", w.fresh))
	path = filepath.Join(w.fresh, out[len(out)-1])
	w.run(t, dir, w.node, filepath.Join(tools, "publint", "src", "cli.js"), "--strict")
	w.run(t, dir, w.node, filepath.Join(tools, "@arethetypeswrong", "cli", "dist", "index.js"), path, "--profile", "esm-only")
	for entry, size := range gzipped(t, filepath.Join(dir, "dist")) {
		if t.Logf("%s%s: %d bytes compressed", name, entry, size); size > mostGzipped {
			t.Errorf("%s%s has %d bytes compressed, want at most %d", name, entry, size, mostGzipped)
		}
	}
	return path
}

// install installs what was packed, and the tests, next to the newest versions of what it is for, and
// next to the oldest.
func (w typescript) install(t *testing.T, npm string, packed map[string]string) {
	t.Helper()
	write := func(dir string, needs map[string]string, tests ...string) {
		for name, path := range packed {
			needs[name] = path
		}
		raw, err := json.Marshal(map[string]any{"private": true, "type": "module", "dependencies": needs})
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, "package.json"), raw, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, test := range tests {
			copyFile(t, filepath.Join(w.tree, filepath.FromSlash(test)), filepath.Join(dir, filepath.Base(test)))
		}
	}
	write(w.fresh, map[string]string{
		"@nats-io/transport-node": "3.4.0",
		"@langchain/core":         "1.4.0", "@langchain/langgraph": "1.7.3", "@langchain/langgraph-checkpoint": "1.2.2", "@langchain/langgraph-checkpoint-validation": "1.1.1",
		"@types/node": "22.20.5", "@types/react": "19.3.3", "ai": "7.0.173", "bun": "1.4.5", "deno": "2.9.6", "jsdom": "26.1.0", "react": "19.3.1", "react-dom": "19.3.1", "typescript": "5.9.3", "ws": "8.18.3",
	}, "client/test/client.test.mjs", "client/test/nats.test.mjs", "client/test/types.ts", "react/test/react.test.mjs", "ai-sdk/test/ai-sdk.test.mjs", "langgraph/test/saver.spec.mjs")
	write(w.older, map[string]string{
		"@langchain/core": "1.4.0", "@langchain/langgraph-checkpoint": "1.2.2", "ai": "6.0.326", "jsdom": "26.1.0", "react": "18.3.1", "react-dom": "18.3.1",
	}, "react/test/react.test.mjs", "ai-sdk/test/ai-sdk.test.mjs")
	npmInstall(t, npm, w.fresh)
	npmInstall(t, npm, w.older)
}

// compile compiles the examples of the READMEs, and what the client's types promise.
func (w typescript) compile(t *testing.T) {
	files := []string{"types.ts"}
	for _, name := range typescriptPackages() {
		readme, err := os.ReadFile(filepath.Join(w.tree, name, "README.md"))
		if err != nil {
			t.Fatal(err)
		}
		for n, example := range strings.Split(string(readme), "```ts")[1:] {
			kind, example, _ := strings.Cut(example, "\n")
			example, _, _ = strings.Cut(example, "```")
			file := fmt.Sprintf("readme-%s-%d.ts%s", name, n, kind)
			if err := os.WriteFile(filepath.Join(w.fresh, file), []byte(example), 0o600); err != nil {
				t.Fatal(err)
			}
			files = append(files, file)
		}
	}
	args := []string{filepath.Join("node_modules", "typescript", "bin", "tsc"), "--noEmit", "--strict", "--skipLibCheck", "--jsx", "react-jsx", "--target", "es2022", "--module", "nodenext"}
	w.run(t, w.fresh, w.node, append(args, files...)...)
}

// start compiles and runs the program of docs/start/typescript.md.
func (w typescript) start(t *testing.T, url string) {
	page, err := os.ReadFile(filepath.Join(repository.Root(), "docs", "start", "typescript.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, program, _ := strings.Cut(string(page), "```ts\n")
	program, _, _ = strings.Cut(program, "```")
	program = strings.ReplaceAll(program, "http://127.0.0.1:8420", url)
	w.program(t, "start", program)
	if out := w.run(t, w.fresh, w.node, "start.js"); out != "It is on its way.\ncompleted\n2 items\n" {
		t.Errorf("the program of docs/start/typescript.md prints %q", out)
	}
	for name, args := range map[string][]string{"deno": {"run", "--allow-net", "--no-prompt", "start.ts"}, "bun": {"start.ts"}} {
		if out := w.run(t, w.fresh, w.runtime(t, name), args...); out != "It is on its way.\ncompleted\n2 items\n" {
			t.Errorf("the program of docs/start/typescript.md prints %q with %s", out, name)
		}
	}
}

// program compiles a program as its readers do.
func (w typescript) program(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(w.fresh, name+".ts"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	w.run(t, w.fresh, w.node, filepath.Join("node_modules", "typescript", "bin", "tsc"), "--strict", "--skipLibCheck", "--target", "es2022", "--module", "nodenext", name+".ts")
}

// overNATS compiles and runs the program for NATS of the client's README.
func (w typescript) overNATS(t *testing.T, url string) {
	readme, err := os.ReadFile(filepath.Join(w.tree, "client", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, program, _ := strings.Cut(string(readme), "## Over NATS")
	_, program, _ = strings.Cut(program, "```ts\n")
	program, _, _ = strings.Cut(program, "```")
	w.program(t, "over-nats", strings.ReplaceAll(program, "nats://127.0.0.1:4222", url))
	if out := w.run(t, w.fresh, w.node, "over-nats.js"); out != "thread.created\ncontext.created\n" {
		t.Errorf("the program for NATS of the client's README prints %q", out)
	}
}

// runtime returns a program that runs JavaScript, which npm has installed for this machine.
func (w typescript) runtime(t *testing.T, name string) string {
	t.Helper()
	pattern := map[string]string{"deno": "@deno/*/deno", "bun": "@oven/*/bin/bun"}[name]
	found, err := filepath.Glob(filepath.Join(w.fresh, "node_modules", filepath.FromSlash(pattern)))
	if err != nil || len(found) == 0 {
		t.Fatalf("npm installed no %s for this machine (%v)", name, err)
	}
	return found[0]
}

// elsewhere runs the client's tests with another runtime than Node.
func (w typescript) elsewhere(t *testing.T, env []string, name string, args ...string) {
	cmd := exec.CommandContext(t.Context(), w.runtime(t, name), args...)
	cmd.Dir, cmd.Env = w.fresh, append(append(os.Environ(), "NO_COLOR=1"), env...)
	out, err := cmd.CombinedOutput()
	if t.Logf("%s", out); err != nil {
		t.Errorf("the client's tests with %s: %v", name, err)
	}
}

// echo adds the agent echo, which answers in ten pieces.
func echo(t *testing.T, s *skeintest.Server) {
	t.Helper()
	s.Must(s.Reactor("echo", echoes))
	_, err := s.Client("acme").Send(t.Context(), "", events.ApplyDefinitions{Definitions: []events.NewDefinition{
		{Kind: events.AgentKind, Definition: []byte(`{"name":"echo","type":"ai_human","reactor":"echo"}`)},
	}})
	s.Must(err)
}

// echoes is a reactor that answers in ten pieces.
func echoes(_ context.Context, _ *skein.StepInput, out skein.Stream) (*skein.Reaction, error) {
	for _, digit := range "0123456789" {
		out.Chunk(skein.Chunk{Type: "text-delta", Data: []byte(`{"id":"t","delta":"` + string(digit) + `"}`)})
	}
	return skein.Answer("0123456789"), nil
}

// The command is packed for this machine, installed from what was packed, and serves until it is told
// to stop.
func TestTypeScript_Command(t *testing.T) {
	node, npm := findNode(t)
	w := typescript{node: node, tree: t.TempDir(), fresh: t.TempDir()}
	binary := filepath.Join(t.TempDir(), "skein")
	w.run(t, ".", "go", "build", "-ldflags=-w", "-o", binary, "github.com/skein-threads/skein/cmd/skein")
	platform := strings.TrimSpace(w.run(t, ".", node, "-p", "`${process.platform}-${process.arch}`"))
	w.run(t, ".", node, filepath.Join(repository.Root(), "clients", "typescript", "skein", "package.mjs"), "0.1.0", w.tree, platform+"="+binary)
	needs := map[string]string{}
	for _, name := range []string{"skein", "skein-" + platform} {
		out := strings.Fields(w.run(t, filepath.Join(w.tree, name), npm, "pack", "--silent", "--pack-destination", w.fresh))
		needs[map[bool]string{true: "skein", false: "@skein-threads/" + name}[name == "skein"]] = "file:" + out[len(out)-1]
	}
	raw, err := json.Marshal(map[string]any{"private": true, "dependencies": needs})
	if err == nil {
		err = os.WriteFile(filepath.Join(w.fresh, "package.json"), raw, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	npmInstall(t, npm, w.fresh)
	if out := w.run(t, w.fresh, npm, "exec", "--offline", "--", "skein", "--help"); !strings.Contains(out, "serve") {
		t.Errorf("skein --help prints %q", out)
	}

	cmd := exec.CommandContext(t.Context(), filepath.Join(w.fresh, "node_modules", ".bin", "skein"), "serve", "--store", t.TempDir(), "--http-listen", "127.0.0.1:0", "--nats-listen", "none")
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	_, address, _ := strings.Cut(strings.TrimSpace(line), "http ")
	if err != nil || address == "" {
		t.Fatalf("skein serve prints %q: %v", line, err)
	}
	answer, err := http.Get(address + "/healthz")
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close()
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("skein serve ended with %v", err)
	}
	if again, err := http.Get(address + "/healthz"); err == nil {
		_ = again.Body.Close()
		t.Error("the binary still serves")
	}
}

// gzipped returns how many bytes the scripts of a folder have together, compressed: those of the package,
// and those that only its entry for NATS needs.
func gzipped(t *testing.T, dir string) map[string]int {
	t.Helper()
	scripts, err := filepath.Glob(filepath.Join(dir, "*.js"))
	if err != nil || len(scripts) == 0 {
		t.Fatalf("no scripts in %s: %v", dir, err)
	}
	entries := map[string][]byte{}
	for _, path := range scripts {
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		entry := map[bool]string{true: "/nats"}[strings.HasPrefix(filepath.Base(path), "nats")]
		entries[entry] = append(entries[entry], raw...)
	}
	sizes := map[string]int{}
	for entry, raw := range entries {
		var packed bytes.Buffer
		out, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
		if err == nil {
			_, err = out.Write(raw)
		}
		if err == nil {
			err = out.Close()
		}
		if err != nil {
			t.Fatal(err)
		}
		sizes[entry] = packed.Len()
	}
	return sizes
}
