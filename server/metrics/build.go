package metrics

import (
	"github.com/nats-io/nats-server/v2/server"

	"github.com/skein-threads/skein/internal/build"
)

// noteBuild notes what this program was built from.
func noteBuild(c *catalog) {
	b := build.This()
	info := c.gauge("build_info", "1, with what this program was built from.", "version", "commit", "go", "nats_server")
	info.WithLabelValues(b.Version, b.Commit, b.Go, server.VERSION).Set(1)
}
