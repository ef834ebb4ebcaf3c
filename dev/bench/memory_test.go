package bench

import (
	"bytes"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
)

// What a thread costs is told from the first point to the last, of each process.
func TestMemoryOfAThread(t *testing.T) {
	var r MemoryResult
	r.add(MemoryPoint{Threads: 1000, Server: Usage{HeapMB: 50}, Skein: Usage{HeapMB: 20}})
	if r.ServerBytes != 0 || r.SkeinBytes != 0 {
		t.Errorf("one point tells %v and %v", r.ServerBytes, r.SkeinBytes)
	}
	r.add(MemoryPoint{Threads: 10_000, Server: Usage{HeapMB: 70}, Skein: Usage{HeapMB: 21}})
	r.add(MemoryPoint{Threads: 101_000, Server: Usage{HeapMB: 150}, Skein: Usage{HeapMB: 30}})
	for _, c := range []struct{ got, want float64 }{{r.ServerBytes, 100}, {r.SkeinBytes, 10}} {
		if want := c.want * (1 << 20) / 100_000; math.Abs(c.got-want) > 0.01 {
			t.Errorf("%v bytes a thread, want %v", c.got, want)
		}
	}
}

// Server and Skein are two processes, and both are measured.
func TestMemory(t *testing.T) {
	r, err := Memory(t.Context(), MemoryOptions{
		Threads: []int{20, 10}, ThreadCache: 1 << 20, Idle: 50 * time.Millisecond, Dir: t.TempDir(),
		LoadArgs: []string{"load"}, SkeinArgs: []string{"skein"}, Log: func(s string) { t.Log(s) },
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Points) != 2 || r.Points[0].Threads != 10 || r.Points[1].Threads != 20 {
		t.Fatalf("the points are %+v", r.Points)
	}
	for _, p := range r.Points {
		if p.Server.HeapMB <= 0 || p.Skein.HeapMB <= 0 || p.Server.HeapMB == p.Skein.HeapMB {
			t.Errorf("at %d threads: %+v", p.Threads, p)
		}
	}
	var table bytes.Buffer
	if err := r.Write(&table); err != nil || !strings.Contains(table.String(), "a thread with one turn costs") {
		t.Errorf("%s, %v", table.String(), err)
	}
}

// With cold threads, what is left of them is measured, and how long a start takes.
func TestMemory_Cold(t *testing.T) {
	r, err := Memory(t.Context(), MemoryOptions{
		Threads: []int{20, 10}, Cold: true, ThreadCache: 1 << 20, Idle: 50 * time.Millisecond, Dir: t.TempDir(),
		LoadArgs: []string{"load"}, SkeinArgs: []string{"skein"}, Log: func(s string) { t.Log(s) },
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Points) != 2 || r.Start == nil || r.Start.Server <= 0 || r.Start.Commands <= 0 || r.Start.Lists < r.Start.Commands {
		t.Fatalf("%+v", r)
	}
	var table bytes.Buffer
	if err := r.Write(&table); err != nil || !strings.Contains(table.String(), "all threads are cold") {
		t.Errorf("%s, %v", table.String(), err)
	}
}

// With one number of cold threads, what they cost is told from the empty store on, with what is
// promised by name; without cold threads, nothing is said of them.
func TestMemory_OneNumberOfColdThreads(t *testing.T) {
	o := MemoryOptions{
		Threads: []int{500}, Cold: true, Message: true, ThreadCache: 1 << 20, Idle: 50 * time.Millisecond, Dir: t.TempDir(),
		LoadArgs: []string{"load"}, SkeinArgs: []string{"skein"}, Log: func(s string) { t.Log(s) },
	}
	r, err := Memory(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Points) != 2 || r.Points[0].Threads != 0 || r.Points[1].Threads != 500 {
		t.Errorf("the points are %+v", r.Points)
	}
	body, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	var told struct {
		Threads int
		Server  *float64 `json:"serverBytesPerColdThread"`
		Skein   *float64 `json:"skeinBytesPerColdThread"`
		Thaw    float64  `json:"thawP50Ms"`
		Ready   float64  `json:"readySeconds"`
	}
	if err := json.Unmarshal(body, &told, json.MatchCaseInsensitiveNames(true)); err != nil {
		t.Fatal(err)
	}
	if told.Threads != 500 || told.Server == nil || *told.Server == 0 || told.Skein == nil || *told.Skein == 0 || told.Thaw <= 0 || told.Ready <= 0 {
		t.Errorf("%s", body)
	}
	o.Threads, o.Cold = []int{10, 20}, false
	if r, err = Memory(t.Context(), o); err != nil || r.ColdThreads != nil {
		t.Errorf("%+v, %v", r, err)
	}
	if body, err = json.Marshal(r); err != nil || strings.Contains(string(body), "Cold") || strings.Contains(string(body), "thaw") {
		t.Errorf("%s, %v", body, err)
	}
}

// A Skein does not keep what it has done with: while its last caches fill, it
// grows by less than a third of what a thread's commits and documents take, and
// later by its place in lists, as `skein-bench memory` shows.
func TestSkeinDoesNotGrowWithThreads(t *testing.T) {
	if testing.Short() || raceDetector {
		t.Skip("it makes many threads, and measures memory: make test-long runs it")
	}
	r, err := Memory(t.Context(), MemoryOptions{
		Threads: []int{8000, 24_000}, ThreadCache: 4 << 20, Idle: 250 * time.Millisecond, Dir: t.TempDir(),
		LoadArgs: []string{"load"}, SkeinArgs: []string{"skein"},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%+v", *r)
	if r.SkeinBytes > 4000 {
		t.Errorf("a thread costs %.0f bytes of Skein's heap", r.SkeinBytes)
	}
}
