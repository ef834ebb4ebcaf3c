package sim

import (
	"fmt"
	"maps"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/skein-threads/skein/projections/documents"
	"github.com/skein-threads/skein/schema"
)

// Variables of the environment.
const (
	seedVariable  = "SKEIN_SIM_SEED"  // a seed to be run alone, telling all that happens in it
	firstVariable = "SKEIN_SIM_FIRST" // the seed to begin with, so that others than the usual ones are met; default 1
	seedsVariable = "SKEIN_SIM_SEEDS" // how many to run; default 8000, 200 under the race detector, 1000 with -short
)

func TestMain(m *testing.M) {
	debug.SetGCPercent(400)
	os.Exit(m.Run())
}

// One goroutine at a time: what several could do at once would be chosen by the
// machine, and not by the seed. It is set for each test, because -cpu sets it too.
func shared(t testing.TB) *Shared {
	t.Helper()
	before := runtime.GOMAXPROCS(1)
	t.Cleanup(func() { runtime.GOMAXPROCS(before) })
	validator, err := schema.New()
	if err != nil {
		t.Fatal(err)
	}
	return &Shared{Validator: validator, Models: documents.NewModels(), Wait: synctest.Wait}
}

// do does the run of a seed in a time of its own.
func do(t *testing.T, s *Shared, seed uint64, prepare func(*Run)) (r *Run, err error) {
	synctest.Test(t, func(*testing.T) {
		r = NewRun(s, seed)
		if prepare != nil {
			prepare(r)
		}
		err = r.Do()
	})
	return r, err
}

// Whatever the scheduler chooses, whatever is lost, late or dead: see doc.go for
// what must hold.
func TestSeeds(t *testing.T) {
	s := shared(t)
	if os.Getenv(seedVariable) != "" {
		tell(t, s, nil)
		return
	}
	usual := uint64(8000)
	switch {
	case testing.Short():
		usual = few
	case raced: // a race is found in few seeds; the run without the detector looks at many
		usual = 200
	}
	runSeeds(t, s, setting(t, firstVariable, few+1), setting(t, seedsVariable, usual))
}

// tell runs the seed of the environment, and logs all that happens in it.
func tell(t *testing.T, s *Shared, prepare func(*Run)) {
	t.Helper()
	seed := setting(t, seedVariable, 0)
	var text interface{ String() string }
	r, err := do(t, s, seed, func(r *Run) {
		if text = r.Trace(); prepare != nil {
			prepare(r)
		}
	})
	t.Logf("%+v\n%s", r.shape, text)
	for _, a := range r.history {
		t.Logf("%d to %d: %s %s: %+v %v", a.begun, a.end, a.name, a.body, a.reply, a.refusal)
	}
	if err != nil {
		t.Fatalf("seed %d: %v", seed, err)
	}
}

// few seeds are what a change needs: nearly every mistake that docs/testing.md counts is
// found within them.
const few = 500

// The seeds before those of TestSeeds, and those that each found a mistake once.
func TestSeeds_Few(t *testing.T) {
	if raced {
		t.Skip("TestSeeds looks at more of them: make test runs it")
	}
	s := shared(t)
	for _, seed := range []uint64{9642, 17193, 26292, 31913} {
		runSeeds(t, s, seed, 1)
	}
	runSeeds(t, s, 1, few)
}

// Forks, mentions, truncations and deletions of several clients on two processes leave no half
// relationship, whatever is lost, late or dead (AM-41, AM-45).
func TestFamilies(t *testing.T) {
	usual := uint64(10_000)
	switch {
	case testing.Short():
		usual = few
	case raced:
		usual = 200
	}
	runFamilies(t, setting(t, firstVariable, few+1), setting(t, seedsVariable, usual))
}

// The seeds before those of TestFamilies.
func TestFamilies_Few(t *testing.T) {
	if raced {
		t.Skip("TestFamilies looks at more of them: make test runs it")
	}
	runFamilies(t, 1, few)
}

func runFamilies(t *testing.T, first, count uint64) {
	t.Helper()
	s := shared(t)
	if os.Getenv(seedVariable) != "" {
		tell(t, s, withFamilies)
		return
	}
	runShapedSeeds(t, s, first, count, withFamilies)
}

// withFamilies has the clients of a run fork, mention and truncate threads.
func withFamilies(r *Run) {
	r.shape.families = true
	r.shape.threads = 1 + int(r.seed%3)
	r.shape.commands += 8
}

func runSeeds(t *testing.T, s *Shared, first, count uint64) {
	t.Helper()
	runShapedSeeds(t, s, first, count, nil)
}

func runShapedSeeds(t *testing.T, s *Shared, first, count uint64, prepare func(*Run)) {
	t.Helper()
	begun, steps, commits, failed := time.Now(), int64(0), uint64(0), 0
	done := map[string]int{} // commands that changed something
	for seed := first; seed < first+count && failed < 5; seed++ {
		r, err := do(t, s, seed, prepare)
		for _, a := range r.history {
			if overSeveral(a.name) && a.reply != nil && !a.idle() {
				done[a.name]++
			}
		}
		steps, commits = steps+r.Steps(), commits+r.server.streams["SKEIN_LOG"].last()
		if err != nil {
			failed++
			t.Errorf("%s=%d repeats this: %v\n%+v", seedVariable, seed, err, r.shape)
		}
	}
	t.Logf("%d seeds from %d, %d steps, %d commits, of %v, in %v", count, first, steps, commits, done, time.Since(begun).Round(time.Millisecond))
}

// setting reads a number from the environment.
func setting(t *testing.T, variable string, usual uint64) uint64 {
	t.Helper()
	given := os.Getenv(variable)
	if given == "" {
		return usual
	}
	n, err := strconv.ParseUint(given, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", variable, err)
	}
	return n
}

// A seed does the same every time, so that a failure can be looked at. On a busy machine the
// system may hold up a run for so long that Go puts another goroutine in its place: one run of
// many may therefore differ, but no two in the same way.
func TestASeedRepeats(t *testing.T) {
	if raced {
		t.Skip("the race detector chooses among goroutines at random: make test runs it")
	}
	s := shared(t)
	for seed := range uint64(450) {
		traces, runs := map[uint64]string{}, map[uint64]int{}
		for most := 0; most < 3; {
			var text interface{ String() string }
			r, err := do(t, s, seed, func(r *Run) {
				if text = r.Trace(); seed >= 300 {
					withFamilies(r)
				}
			})
			if err != nil {
				t.Fatalf("%s=%d repeats this: %v", seedVariable, seed, err)
			}
			digest := r.Digest()
			traces[digest] = text.String()
			runs[digest]++
			most = max(most, runs[digest])
			if repeated := slices.DeleteFunc(slices.Collect(maps.Values(runs)), func(n int) bool { return n < 2 }); len(repeated) > 1 || len(runs) > 3 {
				t.Errorf("seed %d did %d different things:%s", seed, len(runs), parting(slices.Collect(maps.Values(traces))))
				break
			}
		}
	}
}

// parting returns the place where two traces diverge.
func parting(traces []string) string {
	a, b := strings.Split(traces[0], "\n"), strings.Split(traces[1], "\n")
	for i := range a {
		if i >= len(b) || a[i] != b[i] {
			return fmt.Sprintf("\n%s\n-%s\n+%s", strings.Join(a[max(i-8, 0):i], "\n"), a[i], b[min(i, len(b)-1)])
		}
	}
	return ""
}
