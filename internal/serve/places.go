package serve

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/skein-threads/skein/files"
	"github.com/skein-threads/skein/internal/share"
	"github.com/skein-threads/skein/runtime"
)

// Kinds of places, as flags and metrics name them.
const (
	placesRuns     = "runs"
	placesUploads  = "uploads"
	placesSearches = "searches"
	placesImages   = "images"
	placesEffects  = "effects"
)

// Defaults of what one call, one upload and one tenant may take.
const (
	DefaultMaxToolTime      = runtime.DefaultMostToolTime
	DefaultMaxUploadTime    = files.DefaultUploadTime
	DefaultTenantEffectRate = runtime.DefaultEffectRate
)

// DefaultPlaces is how many places of each kind a process has, unless --places
// says otherwise. Those for runs are --workers.
func DefaultPlaces() map[string]int {
	return map[string]int{placesUploads: files.DefaultUploads, placesSearches: files.DefaultSearches, placesImages: files.DefaultImages, placesEffects: runtime.DefaultEffects}
}

// places makes the places of a kind.
func (s *Server) places(kind string, total int) *share.Pool {
	if total == 0 {
		total = s.cfg.Places[kind]
	}
	return share.New(kind, share.Limit{Total: total, Tenant: s.cfg.TenantPlaces[kind]}, s.metrics)
}

// checkPlaces says everything that is wrong with the numbers of places.
func (c Config) checkPlaces() []error {
	kinds := slices.Sorted(maps.Keys(DefaultPlaces()))
	var errs []error
	for kind, n := range c.Places {
		switch {
		case !slices.Contains(kinds, kind):
			errs = append(errs, fmt.Errorf("--places: there are none for %.40q; give some of %s; those for runs are --workers", kind, strings.Join(kinds, ", ")))
		case n < 1:
			errs = append(errs, fmt.Errorf("--places: %s=%d; give at least 1", kind, n))
		}
	}
	for kind := range c.TenantPlaces {
		if kind != placesRuns && !slices.Contains(kinds, kind) {
			errs = append(errs, fmt.Errorf("--tenant-places: there are none for %.40q; give some of runs, %s", kind, strings.Join(kinds, ", ")))
		}
	}
	for flag, d := range map[string]time.Duration{"--max-tool-time": c.MaxToolTime, "--max-upload-time": c.MaxUploadTime} {
		if d < 0 {
			errs = append(errs, fmt.Errorf("%s: %v; give a positive time", flag, d))
		}
	}
	return errs
}
