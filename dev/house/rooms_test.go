package house

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

// rooms is the order of the house: a room imports only rooms before it.
// A new room gets its place here.
func rooms() []string {
	return []string{"connect", "events", "runview", "schema", "quota", "service", "eventlog", "commands", "projections", "archive", "files", "runtime", "audit", "client", "threads", "state", "console", "api", "operator", "server", ".", "skeintest"}
}

// closedTo lists, for rooms that are stricter than their place, all they may import:
// rooms, and packages of others.
func closedTo() map[string][]string {
	return map[string][]string{
		// A program that uses the client must not link the server.
		"client": {"connect", "events", "internal/retry"},
		// A library on the client, for programs that link no server.
		"threads": {"client", "events", "schema/arguments", "internal/excerpt", "internal/form", "internal/retry", "internal/rpcline"},
		"state":   {"client", "events", "schema/arguments", "internal/excerpt", "internal/pattern", "internal/retry"},
		// The HTTP edge is a client, wherever it runs.
		"api": {"client", "events", "runview", "schema", "console", "internal/attachment", "internal/build", "internal/excerpt", "internal/form", "internal/rpcline", "internal/suggest", "threads/threadmcp", "threads/threadtools", "schema/arguments", "quota"},
		// Pages on the edge, which serves them.
		"console": {"client", "events", "runview", "api/edge", "api/stream", "internal/eventtext"},
		// What serves every kind of request knows none of them.
		"service": {"events", "internal/retry", "quota"},
		// It counts names, whatever they are of.
		"quota": {},
	}
}

// apart lists, for rooms, those before them that their product files may not import.
func apart() map[string][]string {
	return map[string][]string{
		// The read side does not depend on the write side: it knows the log alone.
		"projections": {"commands"},
	}
}

// narrow lists, for packages that are stricter than their room, all packages that their product
// files may import.
func narrow() map[string][]string {
	return map[string][]string{
		// What programs with a client's credentials do: they reach nothing but the client.
		"threads/threadtools": {"client", "events", "internal/excerpt"},
		"threads/threadmcp":   {"client", "events", "internal/form", "internal/rpcline", "threads/threadtools", "schema/arguments"},
		"api/natsagents":      {"client", "events", "quota", "runview", "api/runstream", "internal/attachment", "internal/form"},
		"api/acp":             {"client", "events", "runview", "api/runstream", "internal/attachment", "internal/form", "internal/rpcline"},
		"cmd/skein/cli":       {"client", "connect", "events", "internal/build", "internal/eventtext", "internal/openaichat", "internal/suggest", "schema"},
		"cmd/skein/user": {"cmd/skein/cli", "client", "events", "schema", "threads",
			"api/acp", "internal/eventtext", "internal/suggest", "threads/threadmcp"},
	}
}

// layers lists, for packages of rooms that have several layers, all packages of their
// room that their product files may import.
func layers() map[string][]string {
	return map[string][]string{
		"projections/documents": {},
		"projections/buckets":   {"projections/documents"},
		"projections/query":     {"projections/documents", "projections/buckets"},
		"projections/rebuild":   {"projections/documents", "projections/buckets"},
		"projections/cleanup":   {"projections/documents", "projections/buckets"},
		"projections":           {"projections/documents", "projections/buckets", "projections/rebuild", "projections/cleanup"},
	}
}

// testHelpers may be imported by _test.go files only.
func testHelpers() []string {
	return []string{"internal/natstest", "internal/logtest", "internal/readtest", "internal/readtest/running", "internal/openaichat/chattest", "internal/modeltest", "internal/protocoltest"}
}

func TestRoomsImportUpwards(t *testing.T) { report(t, checkRooms(tree(t))) }

// internal has leaves: what uses more rooms than these is of a room itself.
func TestInternal_IsLeaves(t *testing.T) {
	files := tree(t)
	for dir, reached := range internalReach(files) {
		if slices.Contains(testHelpers(), dir) {
			continue
		}
		for _, to := range reached {
			if at := room(to); at != "internal" && at != "events" && at != "connect" {
				t.Errorf("%s reaches %s; move it into a room: %s", dir, to, strings.Join(rooms(), ", "))
			}
		}
	}
}

func checkRooms(files []sourceFile) []finding {
	var found []finding
	reach := internalReach(files)
	for _, f := range files {
		from := room(f.dir())
		if f.ast.Name.Name != "main" && !f.inTest && from != "internal" && from != "cmd" && from != "dev" && !slices.Contains(rooms(), from) {
			found = append(found, f.at(f.ast.Name, fmt.Sprintf("%s is not a room of the house", from),
				"move the package into a room, or give the new room its place in rooms() and in docs/architecture.md"))
			continue
		}
		imports := f.importPaths()
		for _, importPath := range slices.Sorted(maps.Keys(imports)) {
			spec := imports[importPath]
			to, local := localImport(importPath)
			if !local {
				continue
			}
			if room(to) == "dev" && from != "dev" { // in tests too: the module of the product does not name it
				found = append(found, f.at(spec, fmt.Sprintf("%s imports %s, which only developers have", f.dir(), to), "move it below dev, or what it needs of that into internal"))
				continue
			}
			if !f.inTest && slices.Contains(testHelpers(), to) && !slices.Contains(testHelpers(), f.dir()) {
				found = append(found, f.at(spec, to+" is for tests", "import it from _test.go files only, and embed the server with internal/embedded"))
			}
			// An external test package may look at the house from outside.
			if f.inTest && strings.HasSuffix(f.ast.Name.Name, "_test") {
				continue
			}
			if below, layered := layers()[f.dir()]; layered && !f.inTest && room(to) == from && !slices.Contains(below, to) {
				found = append(found, f.at(spec, fmt.Sprintf("%s imports %s, which is not below it", f.dir(), to),
					"move what is shared into a lower package of the room"))
			}
			if allowed, strict := narrow()[f.dir()]; strict && !f.inTest && !slices.Contains(allowed, to) {
				found = append(found, f.at(spec, fmt.Sprintf("%s imports %s; it may import only %s", f.dir(), to, strings.Join(allowed, ", ")),
					"ask the client for it"))
			}
			// What an internal package imports, its importer imports.
			for _, target := range append([]string{to}, reach[to]...) {
				ok, why := mayImport(from, target)
				if ok && !f.inTest && slices.Contains(apart()[from], room(target)) {
					ok, why = false, from+" does not depend on "+room(target)
				}
				if allowed, closed := closedTo()[from]; closed && !f.inTest && room(target) == "internal" {
					ok, why = slices.Contains(allowed, target), from+" may import only "+strings.Join(allowed, ", ")
				}
				if !ok {
					found = append(found, f.at(spec, fmt.Sprintf("%s imports %s: %s", f.dir(), target, why),
						"move what is shared into the higher room, or turn the dependency round with an interface"))
				}
			}
		}
	}
	return found
}

// mayImport reports whether a room may import a package, or why not. internal has no place of its
// own.
func mayImport(from, target string) (bool, string) {
	to := room(target)
	if from == "examples" { // programs of users
		return to != "internal" && to != "cmd" && to != "dev", "an example imports only what its reader can import"
	}
	if from == "cmd" || from == "dev" || from == "internal" || from == to || to == "internal" {
		return true, ""
	}
	if to == "cmd" {
		return false, "nothing imports the binary"
	}
	order := rooms()
	if !slices.Contains(order, to) {
		return false, to + " is not a room"
	}
	if allowed, closed := closedTo()[from]; closed {
		return slices.Contains(allowed, to) || slices.Contains(allowed, target), from + " may import only " + strings.Join(allowed, ", ")
	}
	if slices.Index(order, to) < slices.Index(order, from) {
		return true, ""
	}
	return false, fmt.Sprintf("a room imports only rooms before it in %s", strings.Join(order, ", "))
}

// room is the first folder of a package.
func room(dir string) string {
	first, _, _ := strings.Cut(dir, "/")
	return first
}

// internalReach tells, for each internal package, every package of the module
// that it imports, also through other internal packages. Without it a room
// could reach a lower one by way of internal.
func internalReach(files []sourceFile) map[string][]string {
	direct := map[string][]string{}
	for _, f := range files {
		if room(f.dir()) != "internal" || f.inTest {
			continue
		}
		for importPath := range f.importPaths() {
			if to, local := localImport(importPath); local {
				direct[f.dir()] = append(direct[f.dir()], to)
			}
		}
	}
	reach := map[string][]string{}
	for dir := range direct {
		seen := map[string]bool{}
		next := direct[dir]
		for len(next) > 0 {
			to := next[0]
			next = next[1:]
			if !seen[to] {
				seen[to] = true
				next = append(slices.Clone(next), direct[to]...)
			}
		}
		reach[dir] = slices.Sorted(maps.Keys(seen))
	}
	return reach
}

func TestRoomRulesBite(t *testing.T) {
	source := func(name, pkg string, imports ...string) sourceFile {
		text := "package " + pkg + "\n"
		for _, i := range imports {
			text += fmt.Sprintf("import _ %q\n", module+"/"+i)
		}
		return parseSource(t, name, []byte(text))
	}
	cases := []struct {
		name  string
		files []sourceFile
		want  int
	}{
		{"up is fine", []sourceFile{source("commands/a.go", "commands", "events", "schema", "eventlog")}, 0},
		{"down", []sourceFile{source("events/a.go", "events", "schema")}, 1},
		{"down from a folder below", []sourceFile{source("commands/thread/a.go", "thread", "projections/documents")}, 1},
		{"within a room", []sourceFile{source("commands/a.go", "commands", "commands/thread")}, 0},
		{"client takes events", []sourceFile{source("client/a.go", "client", "events")}, 0},
		{"the read side takes the write side", []sourceFile{source("projections/a.go", "projections", "commands/thread")}, 1},
		{"the read side takes the write side in a test", []sourceFile{source("projections/a_test.go", "projections", "commands")}, 0},
		{"queries take the runner", []sourceFile{source("projections/query/a.go", "query", "projections")}, 1},
		{"queries take the store of buckets", []sourceFile{source("projections/query/a.go", "query", "projections/buckets")}, 0},
		{"a rebuild takes the cleanup", []sourceFile{source("projections/rebuild/a.go", "rebuild", "projections/cleanup")}, 1},
		{"service takes more than events", []sourceFile{source("service/a.go", "service", "schema")}, 1},
		{"client takes connect and the pauses", []sourceFile{source("client/a.go", "client", "connect", "internal/retry")}, 0},
		{"client takes another internal package", []sourceFile{source("client/a.go", "client", "internal/embedded")}, 1},
		{"client takes another internal package in a test", []sourceFile{source("client/a_test.go", "client", "internal/natstest")}, 0},
		{"client takes more", []sourceFile{source("client/a.go", "client", "schema")}, 1},
		{"the binary takes everything", []sourceFile{source("cmd/skein/a.go", "main", "client", "audit", "internal/embedded")}, 0},
		{"the binary is taken", []sourceFile{source("audit/a.go", "audit", "cmd/skein")}, 1},
		{"test helper in a test", []sourceFile{source("eventlog/a_test.go", "eventlog", "internal/natstest")}, 0},
		{"test helper in the product", []sourceFile{source("eventlog/a.go", "eventlog", "internal/natstest")}, 1},
		{"down in a test of the package", []sourceFile{source("events/a_test.go", "events", "schema")}, 1},
		{"down in a test from outside", []sourceFile{source("events/a_test.go", "events_test", "schema")}, 0},
		{"threads for models take the client", []sourceFile{source("threads/threadtools/a.go", "threadtools", "client")}, 0},
		{"threads for models take more", []sourceFile{source("threads/threadtools/a.go", "threadtools", "schema/arguments")}, 1},
		{"commands of users take the client", []sourceFile{source("cmd/skein/user/a.go", "user", "client", "cmd/skein/cli")}, 0},
		{"commands of users take the log", []sourceFile{source("cmd/skein/user/a.go", "user", "eventlog")}, 1},
		{"commands of users take those of operators", []sourceFile{source("cmd/skein/user/a.go", "user", "cmd/skein/operator")}, 1},
		{"unknown room", []sourceFile{source("attic/a.go", "attic")}, 1},
		{"a test of the product takes the bench", []sourceFile{source("server/a_test.go", "server_test", "dev/bench")}, 1},
		{"the bench takes the product and the command line", []sourceFile{source("dev/bench/a.go", "bench", "commands", "cmd/skein/cli")}, 0},
		{"an example", []sourceFile{source("examples/hello/main.go", "main")}, 0},
		{"an example takes a library", []sourceFile{source("examples/hello/main.go", "main", "client", "state")}, 0},
		{"an example takes an internal package", []sourceFile{source("examples/hello/main.go", "main", "internal/retry")}, 1},
		{"down by way of internal", []sourceFile{
			source("events/a.go", "events", "internal/one"),
			source("internal/one/a.go", "one", "internal/two"),
			source("internal/two/a.go", "two", "commands"),
		}, 1},
	}
	for _, c := range cases {
		if got := checkRooms(c.files); len(got) != c.want {
			t.Errorf("%s: %d findings, want %d: %v", c.name, len(got), c.want, got)
		}
	}
}
