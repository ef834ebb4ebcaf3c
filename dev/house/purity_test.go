package house

import (
	"fmt"
	"go/ast"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"
)

// purePackages have no I/O, no clock and no randomness, and neither have the
// packages below them. The same input has the same output today, in a replay
// and in an audit.
func purePackages() []string {
	return []string{"events", "events/openresponses", "runview", "schema", "commands/thread", "internal/compact", "internal/lru", "projections/documents", "internal/excerpt", "internal/pattern", "internal/jsonplan"}
}

// impureImports are refused with all that is below them.
func impureImports() map[string]string {
	const (
		io     = "it reads or writes the world; hand the bytes in as an argument"
		random = "it is random; ids and random values come in with the command"
		logger = "a pure function says what it has to say in its result; log where it is called"
		broker = "the broker is for eventlog, commands and projections; take plain values"
	)
	return map[string]string{
		"context":               "a context is for work that waits, and pure code never waits; take plain values",
		"os":                    io,
		"io/ioutil":             io,
		"net":                   io,
		"syscall":               io,
		"database/sql":          io,
		"log":                   logger,
		"github.com/rs/zerolog": logger,
		"math/rand":             random,
		"crypto/rand":           random,
		"github.com/nats-io":    broker,
		"github.com/prometheus": logger,
		"go.opentelemetry.io":   logger,
		"github.com/spf13":      "the command line is for cmd/skein",
		"embed":                 "files baked into the binary belong to schema alone",
	}
}

// pureAllowed are the exceptions to impureImports: "package import" and why.
func pureAllowed() map[string]string {
	return map[string]string{
		"schema embed": "the schemas are fixed when the binary is built",
		"* net/url":    "it parses text and opens nothing",
		"* net/netip":  "it parses text and opens nothing",
	}
}

// impureNames are refused names of packages that are otherwise welcome.
func impureNames() map[string]map[string]string {
	const (
		clock = "it reads the clock, and a replay would differ from the original; the time comes in with the command or the event"
		waits = "it waits for the clock; pure code never waits"
		fresh = "it makes a new id each time, and a replay would differ from the original; ids come in with the command (uuid.NewSHA1 derives one)"
	)
	return map[string]map[string]string{
		"time": {
			"Now": clock, "Since": clock, "Until": clock,
			"Sleep": waits, "After": waits, "AfterFunc": waits, "Tick": waits, "NewTimer": waits, "NewTicker": waits,
			"Local": "it is the zone of the machine; times inside are UTC", "LoadLocation": "it reads the zone files of the machine; times inside are UTC",
		},
		"github.com/google/uuid": {
			"New": fresh, "NewString": fresh, "NewRandom": fresh, "NewRandomFromReader": fresh, "NewUUID": fresh, "NewV6": fresh, "NewV7": fresh, "NewV7FromReader": fresh,
			"NewDCEGroup": fresh, "NewDCEPerson": fresh, "NewDCESecurity": fresh,
			"Must":    "it panics on what it is given; use uuid.Parse and return the error, or uuid.MustParse for a constant",
			"SetRand": "it changes every id of the process", "EnableRandPool": "it changes every id of the process", "DisableRandPool": "it changes every id of the process",
		},
	}
}

func TestPurePackagesArePure(t *testing.T) {
	for _, f := range tree(t) {
		report(t, checkPurity(f))
	}
}

func checkPurity(f sourceFile) []finding {
	if f.inTest || !isPure(f.dir()) {
		return nil
	}
	var found []finding
	names := map[string]string{} // Name in this file to import path.
	imports := f.importPaths()
	for _, importPath := range slices.Sorted(maps.Keys(imports)) {
		spec := imports[importPath]
		name := path.Base(importPath)
		if spec.Name != nil {
			name = spec.Name.Name
		}
		names[name] = importPath
		if name == "." {
			found = append(found, f.at(spec, fmt.Sprintf("%s imports %s with a dot", f.dir(), importPath), "import it by name, so that what is used can be seen"))
		}
		if to, local := localImport(importPath); local && !isPure(to) {
			found = append(found, f.at(spec, fmt.Sprintf("%s is pure and imports %s, which is not", f.dir(), to),
				"take what it needs as an argument; or, if that package is pure, add it to purePackages()"))
		}
		if reason, refused := impureImport(f.dir(), importPath); refused {
			found = append(found, f.at(spec, fmt.Sprintf("%s is pure and imports %s", f.dir(), importPath), reason))
		}
	}
	ast.Inspect(f.ast, func(node ast.Node) bool {
		switch n := node.(type) {
		case *ast.GoStmt:
			found = append(found, f.at(n, f.dir()+" is pure and starts a goroutine", "the order of goroutines is not the same twice; do the work in line"))
		case *ast.SelectorExpr:
			pkg, ok := n.X.(*ast.Ident)
			if !ok {
				break
			}
			if reason, refused := impureNames()[names[pkg.Name]][n.Sel.Name]; refused {
				found = append(found, f.at(n, fmt.Sprintf("%s is pure and uses %s.%s", f.dir(), pkg.Name, n.Sel.Name), reason))
			}
		}
		return true
	})
	return found
}

// isPure tells whether a folder is in or below a pure package.
func isPure(dir string) bool {
	return slices.ContainsFunc(purePackages(), func(pure string) bool { return isOrBelow(dir, pure) })
}

func isOrBelow(name, parent string) bool {
	return name == parent || strings.HasPrefix(name, parent+"/")
}

// impureImport returns the reason why the package may not import the path.
func impureImport(dir, importPath string) (string, bool) {
	allowed := pureAllowed()
	if _, ok := allowed["* "+importPath]; ok {
		return "", false
	}
	if _, ok := allowed[room(dir)+" "+importPath]; ok {
		return "", false
	}
	for refused, reason := range impureImports() {
		if isOrBelow(importPath, refused) {
			return reason, true
		}
	}
	return "", false
}

func TestPurityRulesBite(t *testing.T) {
	cases := []struct {
		name, file, body string
		want             int
	}{
		{"clean", "events/a.go", `import "time"; func f(now time.Time) time.Time { return now.UTC().Add(time.Second) }`, 0},
		{"clock", "events/a.go", `import "time"; func f() time.Time { return time.Now() }`, 1},
		{"clock, not called", "events/a.go", `import "time"; func f() any { return time.Now }`, 1},
		{"clock by another name", "events/a.go", `import t "time"; func f() any { return t.Since(t.Time{}) }`, 1},
		{"dot", "events/a.go", `import . "time"; func f() any { return Now() }`, 1},
		{"goroutine", "commands/thread/a.go", `func f() { go f() }`, 1},
		{"fresh id", "commands/thread/a.go", `import "github.com/google/uuid"; func f() any { return uuid.Must(uuid.NewV7()) }`, 2},
		{"derived id", "events/a.go", `import "github.com/google/uuid"; func f() any { return uuid.NewSHA1(uuid.NameSpaceURL, nil) }`, 0},
		{"context", "projections/documents/a.go", `import _ "context"`, 1},
		{"os and below", "schema/a.go", `import (_ "os"; _ "os/exec")`, 2},
		{"net and below", "schema/a.go", `import (_ "net"; _ "net/http"; _ "net/url")`, 2},
		{"random", "schema/a.go", `import (_ "math/rand/v2"; _ "crypto/rand")`, 2},
		{"nats", "events/below/a.go", `import (_ "github.com/nats-io/nats.go"; _ "github.com/nats-io/nats-server/v2/server")`, 2},
		{"loggers", "events/a.go", `import (_ "log/slog"; _ "github.com/rs/zerolog")`, 2},
		{"files in schema", "schema/a.go", `import _ "embed"`, 0},
		{"files in events", "events/a.go", `import _ "embed"`, 1},
		{"impure sister", "commands/thread/a.go", `import _ "` + module + `/commands"`, 1},
		{"pure sister", "projections/documents/a.go", `import _ "` + module + `/commands/thread"`, 0},
		{"tests are free", "events/a_test.go", `import _ "os"`, 0},
		{"others are free", "eventlog/a.go", `import _ "os"`, 0},
		{"not below", "eventsource/a.go", `import _ "os"`, 0},
	}
	for _, c := range cases {
		if got := checkPurity(parseSource(t, c.file, []byte("package p; "+c.body))); len(got) != c.want {
			t.Errorf("%s: %d findings, want %d: %v", c.name, len(got), c.want, got)
		}
	}
}
