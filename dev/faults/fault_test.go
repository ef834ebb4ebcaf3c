package faults_test

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/skein-threads/skein/dev/cluster"
)

// fault is something that can happen to a cluster. do starts it, waits, and repairs it.
type fault struct {
	name string
	do   func(w *world, ctx context.Context)
}

// anyTime waits as long as a fault lasts: longer than an election takes, or shorter.
func (w *world) anyTime(ctx context.Context) {
	sleep(ctx, time.Duration(500+w.rng.IntN(6000))*time.Millisecond)
}

func (w *world) anyServer() int { return w.rng.IntN(cluster.Servers) }

func (w *world) anySkein() *cluster.Process { return w.Skeins[w.rng.IntN(len(w.Skeins))] }

// leader returns the server that leads a stream, or any server if none says that it does.
func (w *world) leader(stream string) int {
	ctx, cancel := context.WithTimeout(w.t.Context(), 5*time.Second)
	defer cancel()
	if s, err := w.js.Stream(ctx, stream); err == nil && s.CachedInfo().Cluster != nil {
		for i, p := range w.Servers {
			if p.Name == s.CachedInfo().Cluster.Leader {
				return i
			}
		}
	}
	return w.anyServer()
}

// anyStream returns the name of a stream: the log as often as all others together.
func anyStream(rng *rand.Rand) string {
	others := []string{"SKEIN_TIMELINE", "SKEIN_COMMANDS", "KV_thread_threads", "KV_thread_items", "KV_thread_index", "KV_thread_leases"}
	if rng.IntN(2) == 0 {
		return "SKEIN_LOG"
	}
	return others[rng.IntN(len(others))]
}

// faults lists what can happen.
func faults() []fault {
	list := []fault{
		{"a server is killed", func(w *world, ctx context.Context) {
			i := w.anyServer()
			w.Servers[i].Kill()
			w.anyTime(ctx)
			w.restart(i)
		}},
		{"the server that leads the log is killed", func(w *world, ctx context.Context) {
			i := w.leader("SKEIN_LOG")
			w.Servers[i].Kill()
			w.anyTime(ctx)
			w.restart(i)
		}},
		{"a server hangs", func(w *world, ctx context.Context) {
			p := w.Servers[w.anyServer()]
			p.Pause()
			w.anyTime(ctx)
			p.Resume()
		}},
		{"the server that leads the log hangs", func(w *world, ctx context.Context) {
			p := w.Servers[w.leader("SKEIN_LOG")]
			p.Pause()
			sleep(ctx, 12*time.Second) // until the others have a leader
			p.Resume()
		}},
		{"two servers are killed: no quorum", func(w *world, ctx context.Context) {
			alive := w.anyServer()
			for i, p := range w.Servers {
				if i != alive {
					p.Kill()
				}
			}
			w.anyTime(ctx)
			for i := range w.Servers {
				if i != alive {
					must(w.t, w.Servers[i].Start(nil))
				}
			}
			for i := range w.Servers {
				must(w.t, w.Ready(w.soon(), i))
			}
		}},
		{"a Skein is killed", func(w *world, ctx context.Context) {
			p := w.anySkein()
			p.Kill()
			w.anyTime(ctx)
			must(w.t, w.Again(w.soon(), p))
		}},
		{"a Skein hangs", func(w *world, ctx context.Context) {
			p := w.anySkein()
			p.Pause()
			sleep(ctx, time.Duration(2+w.rng.IntN(8))*time.Second) // its leases may end
			p.Resume()
		}},
		{"streams are given to other leaders", func(w *world, ctx context.Context) {
			for range 1 + w.rng.IntN(6) {
				stream := anyStream(w.rng)
				_, _ = w.nc.Request("$JS.API.STREAM.LEADER.STEPDOWN."+stream, nil, 5*time.Second) // there may be none now
				sleep(ctx, time.Duration(w.rng.IntN(1500))*time.Millisecond)
			}
		}},
	}
	return list
}

// rolling is an upgrade: it stops and starts each process, one after the other.
func rolling() fault {
	return fault{"all are restarted, one after the other", func(w *world, _ context.Context) {
		for i, p := range w.Servers {
			p.Stop(20 * time.Second)
			w.restart(i)
		}
		for _, p := range w.Skeins {
			p.Stop(15 * time.Second)
			must(w.t, w.Again(w.soon(), p))
		}
	}}
}

// cuts are the faults that need a network of the servers' own.
func cuts() []fault {
	cut := func(name string, peers, clients bool, leader bool) fault {
		return fault{name, func(w *world, ctx context.Context) {
			i := w.anyServer()
			if leader {
				i = w.leader("SKEIN_LOG")
			}
			w.net.cut(i, peers, clients)
			sleep(ctx, time.Duration(3+w.rng.IntN(12))*time.Second)
			w.net.heal()
			must(w.t, w.Ready(w.soon(), i))
		}}
	}
	return []fault{
		cut("a server is cut off from everybody", true, true, false),
		cut("the server that leads the log is cut off from the others, not from its clients", true, false, true),
		cut("a server is cut off from its clients", false, true, false),
		cut("the server that leads the log is cut off from everybody", true, true, true),
	}
}

func (w *world) restart(i int) {
	must(w.t, w.Servers[i].Start(nil))
	must(w.t, w.Ready(w.soon(), i))
}

// suffer makes faults happen, drawn from the seed, with a pause after each.
func (w *world) suffer(ctx context.Context, list []fault, rounds int) {
	for range rounds {
		f := list[w.rng.IntN(len(list))]
		w.t.Logf("%s: %s", time.Now().Format("15:04:05.000"), f.name)
		f.do(w, ctx)
		sleep(ctx, time.Duration(500+w.rng.IntN(2000))*time.Millisecond)
	}
}
