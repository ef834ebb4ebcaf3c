package main

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/skein-threads/skein/dev/repository"
)

// A store that each released version has written opens with this one, which finds in it what was
// written, and nothing that an audit objects to. Before the first release, that of this tree
// stands for it.
func testStoreOfRelease(t *testing.T, b *builder) {
	releases := map[string]string{"this tree": b.release(t)}
	for tag := range strings.FieldsSeq(output(t, repository.Root(), nil, "git", "tag", "--list", "v*")) {
		releases[tag] = ofTag(t, tag)
	}
	for name, program := range releases {
		store := t.TempDir()
		at := func(program string) (s served, say func(args ...string) string) {
			s = serve(t, exec.Command(program, "serve", "--store", store, "--nats-listen", "127.0.0.1:0", "--http-listen", "127.0.0.1:0"))
			return s, func(args ...string) string {
				t.Helper()
				return output(t, "", []string{"SKEIN_SERVER=" + s.NATS, "SKEIN_TENANT=acme", "SKEIN_TIMEOUT=" + patience.String()}, program, args...)
			}
		}
		s, say := at(program)
		say("thread", "create", "--key", "kept", "--title", "Kept")
		say("item", "add", "key:kept", "Plan my week.")
		before := say("thread", "get", "key:kept", "--json")
		s.stop()
		s, say = at(b.build(t, ""))
		if after := say("thread", "get", "key:kept", "--json"); after != before || !strings.Contains(after, "Kept") {
			t.Errorf("%s: written %s, read %s", name, before, after)
		}
		say("item", "add", "key:kept", "And the next.")
		say("audit", "verify", "--all-tenants")
		s.stop()
	}
}

// ofTag builds the program of a released version.
func ofTag(t *testing.T, tag string) string {
	t.Helper()
	dir, program := t.TempDir(), filepath.Join(t.TempDir(), "skein")
	archive := filepath.Join(dir, "tree.tar")
	output(t, repository.Root(), nil, "git", "archive", "--output", archive, tag)
	output(t, dir, nil, "tar", "-xf", archive)
	output(t, dir, []string{"GOWORK=off", "CGO_ENABLED=0"}, "go", "build", "-o", program, "./cmd/skein")
	return program
}
