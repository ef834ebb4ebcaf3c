package bench

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// The test's own program is the process of the clients, too.
func TestMain(m *testing.M) {
	parts := map[string]func(context.Context) error{"load": RunLoad, "skein": RunSkein}
	if len(os.Args) > 1 && parts[os.Args[1]] != nil {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
		defer stop()
		if err := parts[os.Args[1]](ctx); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// A short run measures every case, writes what it should, and leaves nothing
// behind. SKEIN_BENCH_SECONDS makes it longer.
func TestAppend(t *testing.T) {
	seconds := 0.3
	if s := os.Getenv("SKEIN_BENCH_SECONDS"); s != "" {
		var err error
		if seconds, err = strconv.ParseFloat(s, 64); err != nil {
			t.Fatal(err)
		}
	}
	dir, profile := t.TempDir(), filepath.Join(t.TempDir(), "cpu.prof")
	if flag.Lookup("test.cpuprofile").Value.String() != "" {
		profile = "" // there can be only one
	}
	got, err := Append(t.Context(), Options{Seconds: seconds, Threads: 300, Clients: []int{1, 16, 256}, Dir: dir, Profile: profile, LoadArgs: []string{"load"}, Log: func(s string) { t.Log(s) }})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"one-by-one 1", "batch 1", "ceiling 256", "skein 1", "skein 16", "skein 256"}
	for i, c := range got.Cases {
		if name := fmt.Sprintf("%s %d", c.Name, c.Clients); i >= len(want) || name != want[i] {
			t.Fatalf("case %d is %s, want %v", i, name, want)
		}
		if c.Commits == 0 || c.Refused > 0 || c.P50Ms <= 0 || c.P99Ms < c.P50Ms || c.EventsPerSecond < 11.9*c.CommitsPerSecond {
			t.Errorf("%+v", c)
		}
		if c.Name == "skein" && (processor() > 0) != (c.AckedMicros > 0) || c.TotalMicros < c.AckedMicros {
			t.Errorf("processor time: %+v", c)
		}
	}
	if len(got.Ratios) != 6 || got.PlainP50Ms <= 0 {
		t.Errorf("ratios %v, plain %v", got.Ratios, got.PlainP50Ms)
	}
	var table bytes.Buffer
	if err := got.Write(&table); err != nil {
		t.Fatal(err)
	}
	t.Log("\n" + table.String())
	for _, text := range []string{"one-by-one", "ceiling", "caught up", "cpu us/commit", "to catch up after 256 clients"} {
		if !strings.Contains(table.String(), text) {
			t.Errorf("the table does not say %q:\n%s", text, table.String())
		}
	}
	if written, err := os.Stat(profile); profile != "" && (err != nil || written.Size() == 0) {
		t.Errorf("the profile: %v, %v", written, err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v %v", left, err)
	}
}

// The workload is what it says: twelve events a commit, all of them legal, and
// about as large as those of a real turn.
func TestWorkload(t *testing.T) {
	c, err := readyMade()
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Events) != eventsPerCommit || c.First() != 2 {
		t.Errorf("%d events after version %d", len(c.Events), c.First())
	}
}

// A case that is watched has figures, and a profile, for each interval of it.
func TestAppend_Intervals(t *testing.T) {
	profile := filepath.Join(t.TempDir(), "cpu.prof")
	if flag.Lookup("test.cpuprofile").Value.String() != "" {
		profile = "" // there can be only one
	}
	got, err := Append(t.Context(), Options{Commits: 20, Interval: 0.1, Threads: 20, Clients: []int{4}, Skein: true, Dir: t.TempDir(), Profile: profile, LoadArgs: []string{"load"}})
	if err != nil {
		t.Fatal(err)
	}
	c := got.Cases[0]
	if len(c.Intervals) == 0 {
		t.Fatalf("no intervals: %+v", c)
	}
	stored := 0
	for _, i := range c.Intervals {
		stored += i.Commits
		if i.Commits > 0 && (i.CommitsPerSecond <= 0 || (processor() > 0) != (i.Micros > 0)) {
			t.Errorf("%+v", i)
		}
	}
	if stored != c.Commits || stored != 400 {
		t.Errorf("%d commits in intervals, %d in all", stored, c.Commits)
	}
	var table bytes.Buffer
	if err := got.Write(&table); err != nil || !strings.Contains(table.String(), "live heap MB") {
		t.Errorf("%v\n%s", err, table.String())
	}
	if first, err := os.Stat(profile + ".1"); profile != "" && (err != nil || first.Size() == 0) {
		t.Errorf("the profile of the first interval: %v, %v", first, err)
	}
}
