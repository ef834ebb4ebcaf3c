package bench

import (
	"errors"
	"fmt"
	"os"
	"runtime/pprof"
)

// profile starts the requested profile if this is the last case. Call stop at the end.
func (b *bench) profile(last bool) (stop func() error, err error) {
	if b.o.Profile == "" || !last || b.o.Interval > 0 {
		return func() error { return nil }, nil
	}
	return startProfile(b.o.Profile)
}

// startProfile writes a processor profile to a file until stop is called.
func startProfile(name string) (stop func() error, err error) {
	file, err := os.Create(name)
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

// heapProfile writes what is in use of this process's heap to a file, with more at the end of its
// name, if it has a name.
func heapProfile(name, more string) error {
	if name == "" {
		return nil
	}
	file, err := os.Create(name + more)
	if err != nil {
		return fmt.Errorf("the profile: %w", err)
	}
	return errors.Join(pprof.Lookup("heap").WriteTo(file, 0), file.Close())
}
