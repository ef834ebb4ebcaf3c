package bench

import (
	"errors"
	"fmt"
	"os"
	"runtime/pprof"
)

// profile starts the requested profile if this is the last case. Call stop at the end.
func (b *bench) profile(last bool) (stop func() error, err error) {
	if b.o.Profile == "" || !last {
		return func() error { return nil }, nil
	}
	file, err := os.Create(b.o.Profile)
	if err != nil {
		return nil, fmt.Errorf("the profile: %w", err)
	}
	if err := pprof.StartCPUProfile(file); err != nil {
		return nil, errors.Join(fmt.Errorf("the profile: %w", err), file.Close())
	}
	return func() error {
		pprof.StopCPUProfile()
		return file.Close()
	}, nil
}
