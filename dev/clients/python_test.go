package clients_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/skein-threads/skein/dev/repository"
)

// The Python package is built as a source distribution and a wheel, installed from the wheel, checked
// by mypy with the programs of its pages, and run against one Skein, with what Debian has. nats-py is not
// in Debian: a stand-in is used for it.
func TestPython(t *testing.T) {
	python := findPython(t)
	sources, tree, env := filepath.Join(repository.Root(), "clients", "python"), t.TempDir(), t.TempDir()
	for _, folder := range []string{"src", "tests"} {
		if err := os.CopyFS(filepath.Join(tree, folder), os.DirFS(filepath.Join(sources, folder))); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"pyproject.toml", "README.md"} {
		copyFile(t, filepath.Join(sources, name), filepath.Join(tree, name))
	}
	run := func(dir string, more []string, args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), python, args...)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), more...)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("python3 %s: %v\n%s", strings.Join(args, " "), err, out)
		}
		return string(out)
	}
	run(tree, nil, "-m", "build", "--no-isolation", "--outdir", env)
	wheels, err := filepath.Glob(filepath.Join(env, "skein_threads-*.whl"))
	archives, err2 := filepath.Glob(filepath.Join(env, "skein*threads-*.tar.gz"))
	if err != nil || err2 != nil || len(wheels) != 1 || len(archives) != 1 {
		t.Fatalf("built %q and %q", wheels, archives)
	}
	installed := filepath.Join(env, "installed")
	run(env, nil, "-m", "zipfile", "-e", wheels[0], installed) // a wheel without scripts is what it unpacks to
	s := refunds(t, make(script))
	echo(t, s)
	readme, err := os.ReadFile(filepath.Join(tree, "README.md"))
	s.Must(err)
	_, overNATS, _ := strings.Cut(string(readme), "## Over NATS")
	_, overNATS, _ = strings.Cut(overNATS, "```py\n")
	overNATS, _, _ = strings.Cut(overNATS, "```")
	overNATS = strings.ReplaceAll(overNATS, "nats://127.0.0.1:4222", s.Addresses().NATS)
	s.Must(os.WriteFile(filepath.Join(tree, "tests", "nats_readme.py"), []byte(overNATS), 0o600))
	for name, page := range map[string]string{"readme.py": filepath.Join(tree, "README.md"), "page.py": filepath.Join(repository.Root(), "docs", "python.md"), "start.py": filepath.Join(repository.Root(), "docs", "start", "python.md")} {
		text, err := os.ReadFile(page)
		s.Must(err)
		_, example, _ := strings.Cut(string(text), "```py\n")
		example, _, _ = strings.Cut(example, "```")
		example = strings.ReplaceAll(example, "http://127.0.0.1:8420", s.Addresses().HTTP)
		s.Must(os.WriteFile(filepath.Join(tree, "tests", name), []byte(example), 0o600))
	}
	with := []string{"PYTHONPATH=" + installed, "MYPYPATH=" + installed, "SKEIN_URL=" + s.Addresses().HTTP}
	run(filepath.Join(tree, "tests"), with, "-m", "mypy", "--strict", "-p", "skein")
	run(filepath.Join(tree, "tests"), with, "-m", "mypy", "--strict", "known.py", "readme.py", "page.py", "start.py", "test_client.py", "test_nats.py", "test_langgraph.py", "test_adk.py")
	for _, tests := range []string{"test_client.py", "test_langgraph.py", "test_adk.py"} {
		t.Logf("%s", run(filepath.Join(tree, "tests"), with, tests))
	}
	testdata, err := filepath.Abs(filepath.Join(repository.Root(), "dev", "examples", "testdata")) // has what stands in for nats-py
	s.Must(err)
	standIn := "PYTHONPATH=" + installed + string(filepath.ListSeparator) + testdata
	t.Logf("%s", run(filepath.Join(tree, "tests"), append(startNATSWithPasswords(t), standIn, "PYTHONDONTWRITEBYTECODE=1"), "test_nats.py"))
	if out := run(filepath.Join(tree, "tests"), []string{standIn, "PYTHONDONTWRITEBYTECODE=1"}, "nats_readme.py"); out != "thread.created\ncontext.created\n" {
		t.Errorf("the README's program for NATS prints %q", out)
	}
	if out := run(filepath.Join(tree, "tests"), with, "readme.py"); !strings.HasPrefix(out, "It is on its way.item.created") {
		t.Errorf("the README's program prints %q", out)
	}
	if out := run(filepath.Join(tree, "tests"), with, "page.py"); out != "user\n" {
		t.Errorf("the program of docs/python.md prints %q", out)
	}
	if out := run(filepath.Join(tree, "tests"), with, "start.py"); out != "It is on its way.\n2 items\n" {
		t.Errorf("the program of docs/start/python.md prints %q", out)
	}
}

// findPython returns Debian's Python, or skips the test where it or what it builds with is missing.
func findPython(t *testing.T) string {
	t.Helper()
	if os.Getenv("SKEIN_CLIENTS") == "" {
		t.Skip("it builds a package; make test-clients runs it")
	}
	python := "/usr/bin/python3"
	if out, err := exec.CommandContext(t.Context(), python, "-c", "import build, mypy, setuptools, wheel, sys; sys.exit(sys.version_info < (3, 11))").CombinedOutput(); err != nil {
		t.Skipf("install python3-build, python3-setuptools, python3-wheel and mypy: %v: %.300s", err, out)
	}
	return python
}
