package clients_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/skein-threads/skein/dev/clients"
	"github.com/skein-threads/skein/dev/repository"
)

// Every row of the table has a test of this package, and the version that the test uses. dev/generate
// checks that the page is the table's.
func TestRows_AreTested(t *testing.T) {
	var tests, module strings.Builder
	files, err := filepath.Glob("*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		raw, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		tests.Write(raw)
	}
	raw, err := os.ReadFile("../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	module.Write(raw)
	for _, r := range clients.Rows() {
		version, err := r.Version()
		if err != nil {
			t.Errorf("%s: %v", r.Client, err)
		}
		if strings.HasPrefix(r.Module, "github.com/") && !strings.Contains(module.String(), "\t"+r.Module+" "+version+"\n") {
			t.Errorf("dev/go.mod does not require %s %s", r.Module, version)
		}
		if manifest := ownManifest(r.Module); manifest != "" {
			raw, err := os.ReadFile(filepath.Join(repository.Root(), "clients", filepath.FromSlash(manifest)))
			if !regexp.MustCompile(`(?m)^ *"?version"?( =|:) "` + regexp.QuoteMeta(version) + `"`).Match(raw) {
				t.Errorf("clients/%s is not of version %s: %v", manifest, version, err)
			}
		}
		for name := range strings.FieldsSeq(r.Test) {
			if !strings.Contains(tests.String(), "\nfunc "+name+"(t *testing.T)") {
				t.Errorf("%s: there is no test %s", r.Client, name)
			}
		}
	}
}

// ownManifest returns where a package of Skein's own has its version, or nothing: that of the command
// is the release's.
func ownManifest(module string) string {
	if name, own := strings.CutPrefix(module, "@skein-threads/"); own {
		return "typescript/" + name + "/package.json"
	}
	return map[string]string{"skein-threads": "python/pyproject.toml"}[module]
}
