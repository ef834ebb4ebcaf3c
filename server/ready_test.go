package server_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/natstest"
	"github.com/skein-threads/skein/runtime"
	"github.com/skein-threads/skein/server"
)

// A Skein whose cluster has lost its quorum is not ready, and names the log; with the
// quorum back it is ready again.
func TestReady_ClusterWithoutQuorum(t *testing.T) {
	servers := natstest.StartCluster(t)
	s := run(t, server.Config{NATS: servers.URL(), Replicas: 3, HTTPListen: "127.0.0.1:0"})
	c, err := client.Connect(servers.URL(), client.Options{Tenant: "acme", Timeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Send(t.Context(), "", events.CreateThread{}); err != nil {
		t.Fatal(err)
	}
	readyWithin(t, s)

	servers.Stop(1)
	servers.Stop(2)
	// Before the remaining server knows that it leads nothing any more, it may answer
	// as the leader.
	var failed *server.NotReadyError
	for begin := time.Now(); ; time.Sleep(100 * time.Millisecond) {
		asked := time.Now()
		err := s.Ready(t.Context())
		if took := time.Since(asked); took > 10*time.Second {
			t.Fatalf("the answer took %v", took)
		}
		if errors.As(err, &failed) && names(failed)["log"] {
			break
		}
		if time.Since(begin) > 5*time.Minute {
			t.Fatalf("two of three servers are dead, and Ready says: %v", err)
		}
	}
	servers.Start(1)
	servers.Start(2)
	readyWithin(t, s)
	if _, err := c.Send(t.Context(), "", events.CreateThread{}); err != nil {
		t.Error(err)
	}
}

func names(e *server.NotReadyError) map[string]bool {
	out := map[string]bool{}
	for _, c := range e.Failed {
		out[c.Name] = true
	}
	return out
}

func readyWithin(t *testing.T, s *server.Server) {
	t.Helper()
	for begin := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		err := s.Ready(t.Context())
		if err == nil {
			return
		}
		if time.Since(begin) > 5*time.Minute {
			t.Fatalf("not ready: %v", err)
		}
	}
}

// Each of two processes shows the lag of the timeline and the read models, though only
// one does the work; and exactly one holds each lease.
func TestMetrics_LagsInEveryProcess(t *testing.T) {
	url := natstest.Start(t).URL()
	cfg := server.Config{NATS: url, HTTPListen: "127.0.0.1:0"}
	both := []*server.Server{run(t, cfg), run(t, cfg)}
	c, err := client.Connect(url, client.Options{Tenant: "acme", Timeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	made, err := c.Send(t.Context(), "", events.CreateThread{})
	if err != nil {
		t.Fatal(err)
	}
	seq := made.Seq
	if _, err := client.Read(t.Context(), c, events.GetThread{ThreadID: made.ThreadID, Fresh: events.Fresh{MinSeq: &seq}}); err != nil {
		t.Fatal(err)
	}
	want := []string{
		fmt.Sprintf("skein_log_seq %d\n", made.Seq), fmt.Sprintf("skein_timeline_seq %d\n", made.Seq), "skein_timeline_lag_commits 0\n",
		fmt.Sprintf("skein_projection_seq{projection=\"threads\"} %d\n", made.Seq), "skein_projection_lag_commits{projection=\"parts\"} 0\n",
	}
	for begin := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		missing, held := "", map[string]int{}
		for _, s := range both {
			text := scrape(t, s.Addresses().HTTP)
			for _, line := range want {
				if !strings.Contains(text, line) {
					missing = line
				}
			}
			for _, lease := range []string{"timeline", "projections"} {
				held[lease] += strings.Count(text, fmt.Sprintf("skein_lease_held{lease=%q} 1\n", lease))
			}
		}
		if missing == "" && held["timeline"] == 1 && held["projections"] == 1 {
			break
		}
		if time.Since(begin) > 5*time.Minute {
			t.Fatalf("no %q; leases %v", missing, held)
		}
	}
}

func scrape(t *testing.T, at string) string {
	t.Helper()
	r, err := http.Get(at + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

// metric returns the value of one of a Skein's series, which must be there.
func metric(t *testing.T, s *server.Server, series string) (n int) {
	t.Helper()
	page := scrape(t, s.Addresses().HTTP)
	for line := range strings.Lines(page) {
		if value, ok := strings.CutPrefix(line, series+" "); ok {
			if _, err := fmt.Sscan(value, &n); err != nil {
				t.Fatal(err)
			}
			return n
		}
	}
	t.Fatalf("there is no %s in:\n%s", series, page)
	return 0
}

// Results of runs are counted and timed: one that completes, with a call, one that
// fails, and one that waits for an approval.
func TestMetrics_Runs(t *testing.T) {
	s := newStage(t)
	s.on("inner", func(context.Context, *runtime.ToolInput) (any, error) { return 1, nil })
	s.define(events.AgentDefinition{Name: "failing", Type: events.AIHuman, Reactor: "broken"})
	s.play(s.thread("script"), []one{probe("inner")})
	if x := s.end(s.begin(s.thread("failing"))); x.Status != events.ExecutionFailed {
		t.Fatalf("%+v", x)
	}
	s.begin(s.thread("script"), []one{{"manual", map[string]any{"act": "inner"}}})
	want := []string{
		`skein_runs_total{result="completed"} 1`, `skein_runs_total{result="failed"} 1`, `skein_runs_total{result="waits"} 1`,
		`skein_run_seconds_count{result="completed"} 1`, `skein_reactor_seconds_count{result="failed"} 1`, `skein_reactor_seconds_count{result="ok"} 3`,
		`skein_tool_seconds_count{result="ok"} 1`, `skein_tool_retries_total 0`, `skein_runs_places 256`, `skein_runs_queued 0`,
		`skein_runs_taken 0`, `skein_effects_due 0`, `skein_build_info{`,
	}
	for begin := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		missing, text := "", scrape(t, s.server.Addresses().HTTP)
		for _, line := range want {
			if !strings.Contains(text, line) {
				missing = line
			}
		}
		if missing == "" {
			break
		}
		if time.Since(begin) > 5*time.Minute {
			t.Fatalf("no %q in\n%s", missing, text)
		}
	}
}
