// Package build says what this program was built from.
//
// A release names itself by the linker:
//
//	go build -ldflags "-X github.com/skein-threads/skein/internal/build.version=0.1.0 ..." ./cmd/skein
//
// Any other build knows what the go command noted in it: the version of the module if it was
// installed by one, and the commit of the checkout that it was built in.
package build

import (
	_ "embed"
	"fmt"
	"regexp"
	"runtime/debug"
	"strings"
	"time"
)

// The linker sets these in a release.
var version, commit, date string

// contract is the version of the contract, which dev/generate writes from docs/contract.json.
//
//go:embed contract
var contract string

// unknown stands for what the program was not told.
const unknown = "unknown"

// Info is the build information of a program.
type Info struct {
	Version  string // as 0.1.0; devel if it was built from a checkout
	Commit   string // of the repository; unknown outside of one
	Date     string // of the commit, in RFC 3339; unknown outside of a repository
	Contract string // version of what Skein receives and sends
	Go       string
}

// This returns what the running program was built from.
func This() Info {
	b := Info{Version: "devel", Commit: unknown, Date: unknown, Contract: strings.TrimSpace(contract), Go: unknown}
	if noted, ok := debug.ReadBuildInfo(); ok {
		b.read(noted)
	}
	for _, set := range []struct {
		to   *string
		from string
	}{{&b.Version, version}, {&b.Commit, commit}, {&b.Date, date}} {
		if set.from != "" {
			*set.to = set.from
		}
	}
	return b
}

// Metadata returns what tells the version from others, by name, for a NATS service.
func (b Info) Metadata() map[string]string {
	return map[string]string{"commit": b.Commit, "date": b.Date, "contract": b.Contract}
}

// String returns the version with what else tells it from others, in one line.
func (b Info) String() string {
	return fmt.Sprintf("%s (commit %s, %s, contract %s)", b.Version, b.Commit, b.Date, b.Contract)
}

// pseudo matches the version of a commit without a tag, which names both.
var pseudo = regexp.MustCompile(`[-.](\d{14})-([0-9a-f]{12})(?:\+|$)`)

// module is the module of Skein.
const module = "github.com/skein-threads/skein"

// read takes what the go command noted of Skein's module: the program's own, or one that it has
// inside.
func (b *Info) read(noted *debug.BuildInfo) {
	b.Go = noted.GoVersion
	if noted.Main.Path != module {
		for _, m := range noted.Deps {
			if m.Path == module && m.Replace == nil {
				b.readVersion(m.Version)
			}
		}
		return
	}
	b.readVersion(noted.Main.Version)
	for _, s := range noted.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Commit = s.Value
		case "vcs.time":
			b.Date = s.Value
		}
	}
}

// readVersion takes the version of the module.
func (b *Info) readVersion(v string) {
	if v == "" || v == "(devel)" {
		return
	}
	b.Version = strings.TrimPrefix(v, "v")
	parts := pseudo.FindStringSubmatch(v)
	if parts == nil {
		return
	}
	b.Commit = parts[2]
	if at, err := time.Parse("20060102150405", parts[1]); err == nil {
		b.Date = at.Format(time.RFC3339)
	}
}
