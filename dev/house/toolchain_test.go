package house

import (
	"go/version"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/skein-threads/skein/dev/repository"
)

// SECURITY.md asks for no newer Go than the module's toolchain, and names both versions of go.mod.
func TestSecurity_AsksForTheToolchain(t *testing.T) {
	find := func(file, pattern string) string {
		t.Helper()
		text, err := os.ReadFile(filepath.Join(repository.Root(), file))
		if err != nil {
			t.Fatal(err)
		}
		m := regexp.MustCompile(pattern).FindSubmatch(text)
		if m == nil {
			t.Fatalf("%s has no %s", file, pattern)
		}
		return "go" + string(m[1])
	}
	oldest, toolchain := find("go.mod", `(?m)^go (\S+)$`), find("go.mod", `(?m)^toolchain go(\S+)$`)
	asked := find("SECURITY.md", `\*\*Build with Go (\S+) or newer`)
	if version.Compare(asked, toolchain) > 0 {
		t.Errorf("SECURITY.md asks for %s, and go.mod builds with %s", asked, toolchain)
	}
	if names := find("SECURITY.md", "`go.mod` names (\\S+) as its toolchain"); names != toolchain {
		t.Errorf("SECURITY.md says that the toolchain is %s, and it is %s", names, toolchain)
	}
	if names := find("SECURITY.md", `(\S+)\s+is the oldest version that compiles`); names != oldest {
		t.Errorf("SECURITY.md says that the oldest version is %s, and it is %s", names, oldest)
	}
}
