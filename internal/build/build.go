// Package build says what this program was built from.
package build

import "runtime/debug"

// Info is what a program was built from.
type Info struct {
	Version string // devel if it was built from a checkout
	Commit  string // of the repository; unknown outside of one
	Go      string
}

// This returns what the running program was built from.
func This() Info {
	b := Info{Version: "devel", Commit: "unknown", Go: "unknown"}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	b.Go = info.GoVersion
	if v := info.Main.Version; v != "" && v != "(devel)" {
		b.Version = v
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			b.Commit = s.Value
		}
	}
	return b
}
