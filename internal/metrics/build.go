package metrics

import (
	"runtime"
	"runtime/debug"

	"github.com/nats-io/nats-server/v2/server"
)

// build notes what this program was built from.
func build(c *catalog) {
	version, commit := "devel", "unknown"
	if b, ok := debug.ReadBuildInfo(); ok {
		if v := b.Main.Version; v != "" && v != "(devel)" {
			version = v
		}
		for _, s := range b.Settings {
			if s.Key == "vcs.revision" {
				commit = s.Value
			}
		}
	}
	info := c.gauge("build_info", "1, with what this program was built from.", "version", "commit", "go", "nats_server")
	info.WithLabelValues(version, commit, runtime.Version(), server.VERSION).Set(1)
}
