package serve

import (
	"github.com/skein-threads/skein/commands"
	"github.com/skein-threads/skein/files"
	"github.com/skein-threads/skein/internal/share"
	"github.com/skein-threads/skein/projections/cold"
	"github.com/skein-threads/skein/projections/query"
	"github.com/skein-threads/skein/runtime"
	"github.com/skein-threads/skein/runtime/webhooks"
)

// Kinds of places, as flags and metrics name them.
const (
	placesRuns     = "runs"
	placesUploads  = "uploads"
	placesSearches = "searches"
	placesImages   = "images"
	placesEffects  = "effects"
	placesForks    = "forks"
	placesCold     = "cold"
	placesPast     = "past"
	placesWebhooks = "webhooks"
)

// Default limits of a call, an upload and a tenant.
const (
	DefaultMaxToolTime      = runtime.DefaultMostToolTime
	DefaultMaxUploadTime    = files.DefaultUploadTime
	DefaultTenantEffectRate = runtime.DefaultEffectRate
)

// DefaultPlaces is how many places of each kind a process has, unless --places sets it.
// Those for runs are --workers.
func DefaultPlaces() map[string]int {
	return map[string]int{placesUploads: files.DefaultUploads, placesSearches: files.DefaultSearches, placesImages: files.DefaultImages, placesEffects: runtime.DefaultEffects, placesForks: commands.DefaultForks, placesCold: cold.DefaultPlaces, placesPast: query.DefaultPast, placesWebhooks: webhooks.DefaultPlaces}
}

// places returns the places of a kind.
func (s *Server) places(kind string, total int) *share.Pool {
	if total == 0 {
		total = s.cfg.Places[kind]
	}
	return share.New(kind, share.Limit{Total: total, Tenant: s.cfg.TenantPlaces[kind]}, s.metrics)
}
