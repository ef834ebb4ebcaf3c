package build

import (
	"runtime/debug"
	"testing"
)

// What the go command notes differs by how the program was built: from a tag, from a commit
// without one, and in a checkout.
func TestRead(t *testing.T) {
	for version, want := range map[string]Info{
		"v0.1.0":                             {Version: "0.1.0"},
		"v0.1.0-rc.1":                        {Version: "0.1.0-rc.1"},
		"(devel)":                            {},
		"v0.0.0-20261129203302-3941ae94aabb": {Version: "0.0.0-20261129203302-3941ae94aabb", Commit: "3941ae94aabb", Date: "2026-11-29T20:33:02Z"},
		"v0.1.1-0.20261129203302-3941ae94aabb+dirty": {Version: "0.1.1-0.20261129203302-3941ae94aabb+dirty", Commit: "3941ae94aabb", Date: "2026-11-29T20:33:02Z"},
	} {
		var got Info
		got.read(&debug.BuildInfo{Main: debug.Module{Path: module, Version: version}})
		if got != want {
			t.Errorf("%s: %+v, want %+v", version, got, want)
		}
	}
	var got Info
	got.read(&debug.BuildInfo{GoVersion: "go1.26.8", Main: debug.Module{Path: module}, Settings: []debug.BuildSetting{{Key: "vcs.revision", Value: "3941ae94"}, {Key: "vcs.time", Value: "2026-11-29T20:33:02Z"}}})
	if want := (Info{Commit: "3941ae94", Date: "2026-11-29T20:33:02Z", Go: "go1.26.8"}); got != want {
		t.Errorf("of a checkout: %+v, want %+v", got, want)
	}
	got = Info{}
	got.read(&debug.BuildInfo{
		Main: debug.Module{Path: "example.com/app", Version: "v9.9.9"}, Deps: []*debug.Module{{Path: module, Version: "v0.1.0"}},
		Settings: []debug.BuildSetting{{Key: "vcs.revision", Value: "of the app"}},
	})
	if want := (Info{Version: "0.1.0"}); got != want {
		t.Errorf("inside another program: %+v, want %+v", got, want)
	}
}
