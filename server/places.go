package server

import (
	"fmt"
	"maps"
	"math"
	goruntime "runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/skein-threads/skein/api/edge"
	"github.com/skein-threads/skein/commands"
	"github.com/skein-threads/skein/files"
	"github.com/skein-threads/skein/projections/query"
	"github.com/skein-threads/skein/quota"
	"github.com/skein-threads/skein/runtime"
	"github.com/skein-threads/skein/runtime/effects"
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
	placesReads    = "reads"
	placesWebhooks = "webhooks"
	placesBodies   = "bodies"
)

// Default limits of a call, an upload and a tenant.
const (
	DefaultMaxToolTime      = runtime.DefaultMostToolTime
	DefaultMaxUploadTime    = files.DefaultUploadTime
	DefaultTenantEffectRate = effects.DefaultRate
)

const (
	readsEach   = 2        // queries that read much and are answered at once, for each processor
	readMemory  = 64 << 20 // about what one of them has in memory
	fewestReads = 2
)

// DefaultPlaces is how many places of each kind a process has, unless --places sets it.
// Those for runs are --workers.
func DefaultPlaces() map[string]int {
	return map[string]int{placesUploads: files.DefaultUploads, placesSearches: files.DefaultSearches, placesImages: files.DefaultImages, placesEffects: effects.DefaultConcurrency, placesForks: commands.DefaultForks, placesCold: query.DefaultColdPlaces, placesPast: query.DefaultPast, placesReads: readsEach * goruntime.GOMAXPROCS(0), placesWebhooks: webhooks.DefaultPlaces, placesBodies: edge.DefaultBodies()}
}

// places returns the places of a kind.
func (s *Server) places(kind string, total int) *quota.Pool {
	if total == 0 {
		total = s.cfg.Places[kind]
	}
	return quota.NewPool(kind, quota.Places{Total: total, Tenant: s.cfg.TenantPlaces[kind]}, s.metrics)
}

// reads returns the places for queries that read much: no more than there is memory for.
func (s *Server) reads() *quota.Pool {
	return s.places(placesReads, readsWithin(s.cfg.Places[placesReads], debug.SetMemoryLimit(-1)))
}

// readsWithin returns how many queries that read much may be answered at once with a memory limit.
func readsWithin(places int, limit int64) int {
	return int(min(int64(places), max(fewestReads, limit/readMemory)))
}

// checkBounds reports limits that are negative although that does not mean that there is none.
func (c Config) checkBounds() []error {
	var errs []error
	if c.ThreadCache < 0 {
		errs = append(errs, fmt.Errorf("--thread-cache: %d bytes; it must not be negative", c.ThreadCache))
	}
	durations := map[string]time.Duration{"--max-tool-time": c.MaxToolTime, "--max-upload-time": c.MaxUploadTime, "ArchiveEvery": c.ArchiveEvery}
	for _, name := range slices.Sorted(maps.Keys(durations)) {
		if d := durations[name]; d < 0 {
			errs = append(errs, fmt.Errorf("%s: %v; use a positive duration", name, d))
		}
	}
	rates := map[string]float64{"--tenant-rate": c.TenantRate, "--tenant-fair-rate": c.TenantFairRate, "--tenant-effect-rate": c.TenantEffectRate}
	for _, name := range slices.Sorted(maps.Keys(rates)) {
		if r := rates[name]; math.IsNaN(r) || math.IsInf(r, 0) {
			errs = append(errs, fmt.Errorf("%s: %v; use a number, negative for no limit", name, r))
		}
	}
	return errs
}

// checkPlaces returns everything that is wrong with the numbers of places.
func (c Config) checkPlaces() []error {
	kinds := slices.Sorted(maps.Keys(DefaultPlaces()))
	var errs []error
	for kind, n := range c.Places {
		switch {
		case !slices.Contains(kinds, kind):
			errs = append(errs, fmt.Errorf("--places: %.40q is not a kind; use %s; places for runs are --workers", kind, strings.Join(kinds, ", ")))
		case n < 1:
			errs = append(errs, fmt.Errorf("--places: %s=%d; use at least 1", kind, n))
		}
	}
	for kind := range c.TenantPlaces {
		if kind != placesRuns && !slices.Contains(kinds, kind) {
			errs = append(errs, fmt.Errorf("--tenant-places: %.40q is not a kind; use runs, %s", kind, strings.Join(kinds, ", ")))
		}
	}
	return errs
}
