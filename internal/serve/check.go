package serve

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// checkServer reports what is wrong with how the server is reached.
func (c Config) checkServer() []error {
	var errs []error
	if c.NATS != "" && c.Access != "" {
		errs = append(errs, errors.New("--access is for the embedded server; start the one of --nats with nats.conf in that folder, and pass its creds/skein.creds as --creds"))
	}
	if c.HTTPKeys != "" && c.NATS == "" {
		errs = append(errs, errors.New("--http-keys is for --nats; with the embedded server, --access has the keys"))
	}
	return errs
}

// checkHTTP reports what is wrong with the options of HTTP. Those of requests are in effect without
// a listener, too: a program may serve Server.Handler itself.
func (c Config) checkHTTP() error {
	o := c.listen()
	if c.HTTPListen != NoListen {
		return o.Validate(c.keysFolder() != "")
	}
	if o.Cert != "" || o.Key != "" {
		return errors.New("--tls-cert and --tls-key are for --http-listen, which is none")
	}
	o.Address = DefaultHTTPListen
	return o.Validate(c.keysFolder() != "")
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
