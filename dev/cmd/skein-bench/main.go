// Command skein-bench measures Skein on this machine: commits, turns of agents, requests over HTTP,
// memory, long threads, and one tenant alongside a hostile one. Run it in the repository:
//
//	go run ./dev/cmd/skein-bench append
package main

import (
	"context"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/skein-threads/skein/cmd/skein/cli"
	"github.com/skein-threads/skein/commands"
	"github.com/skein-threads/skein/dev/bench"
	"github.com/skein-threads/skein/dev/bench/traffic"
	"github.com/skein-threads/skein/internal/heap"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	a := newApp()
	os.Exit(a.Execute(ctx, os.Args[1:], a.verbs()))
}

// app is a run of the program.
type app struct{ *cli.App }

func newApp() *app {
	a := &app{cli.New()}
	a.Program = cli.Program{
		Name: "skein-bench", Short: "Measure Skein on this machine",
		Long: "Measure Skein on this machine. Some figures have a goal, for a machine that does nothing else. One that is\n" +
			"missed is a result like any other, and marked: the exit code is 0.",
	}
	return a
}

func (a *app) verbs() cli.Verbs {
	return cli.Verbs{
		Groups: []cli.Commands{{List: []*cobra.Command{
			a.appends(), a.turns(), a.memory(), a.neighbour(), a.threads(), a.thread(), a.http(), a.load(), a.skein(),
		}}},
		Examples: examples,
	}
}

const examples = `
skein-bench append --clients 1,64 --seconds 2 --json
skein-bench react --at 16
skein-bench neighbour --seconds 6 --json
skein-bench memory --threads 1000,10000
skein-bench thread --events 10000,100000 --times 10
skein-bench threads --messages 1000 --times 50
skein-bench http --seconds 2 --clients 1,64
`

// load is the client process of a measurement: clients must not share the
// processor time of the server's process.
func (a *app) load() *cobra.Command {
	return &cobra.Command{
		Use: "load", Hidden: true, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			heap.Fit()
			return bench.RunLoad(cmd.Context())
		},
	}
}

func (a *app) turns() *cobra.Command {
	var o bench.ReactOptions
	var asJSON bool
	cmd := &cobra.Command{
		Use: "react", Short: "Measure how fast agents take their turns", Args: cobra.NoArgs,
		Long: "Measure turns of three steps and two calls of tools, of an agent and a tool that take no time themselves:\n" +
			"what is measured is Skein itself, with the disk of its store, a temporary folder.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.LoadArgs = []string{"load"}
			o.Log = func(line string) { a.Hint("%s", line) }
			heap.Fit()
			result, err := bench.React(cmd.Context(), o)
			if err != nil {
				return err
			}
			return a.print(result, asJSON)
		},
	}
	f := cmd.Flags()
	f.Float64Var(&o.Seconds, "seconds", 4, "duration of a case")
	f.IntSliceVar(&o.At, "at", []int{1, 16, 64}, "how many turns at a time, for each case")
	f.StringVar(&o.Dir, "dir", "", "folder in which the store is created; default the system's temporary folder")
	f.StringVar(&o.Profile, "profile", "", "file for a processor profile of the last case")
	f.BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func (a *app) appends() *cobra.Command {
	var o bench.Options
	var asJSON bool
	var cacheMiB int
	cmd := &cobra.Command{
		Use: "append", Short: "Measure how fast commits are written", Args: cobra.NoArgs,
		Long: "Measure how fast commits of twelve events are written: one by one, in batches, as fast as the server can,\n" +
			"and by Skein. The store is a temporary folder; its disk is part of what is measured.\n" +
			"With --peer postgres, a Postgres on the same disk stores the same bytes in turns with it: found on PATH or in\n" +
			"/usr/lib/postgresql, started for the run, and removed after it. With --peer sqlite, SQLite by way of python3.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			for _, p := range o.Peers {
				if !slices.Contains(bench.Peers(), p) {
					return cli.WrongUsage("--peer %q: use %s", p, strings.Join(bench.Peers(), " or "))
				}
			}
			o.ThreadCache = heap.Cache(cacheMiB, heap.Fit(), commands.DefaultCacheBytes)
			o.LoadArgs = []string{"load"}
			o.Log = func(line string) { a.Hint("%s", line) }
			result, err := bench.Append(cmd.Context(), o)
			if err != nil {
				return err
			}
			return a.print(result, asJSON)
		},
	}
	f := cmd.Flags()
	f.Float64Var(&o.Seconds, "seconds", 4, "duration of a case")
	f.IntVar(&o.Threads, "threads", 1000, "how many threads are written")
	f.IntSliceVar(&o.Clients, "clients", []int{1, 64, 256}, "how many clients, for each case")
	f.DurationVar(&o.Every, "every", 0, "time from one commit of a client to its next, such as 150ms, as people type; default 0: as fast as they are acknowledged")
	f.DurationVar(&o.Alongside, "alongside", 0, "another client commits to other threads meanwhile, this long from one commit to its next, such as 5ms; default 0: none does")
	f.IntVar(&o.Commits, "commits", 0, "commits per thread of a case, instead of a duration")
	f.BoolVar(&o.Skein, "skein-only", false, "measure Skein only, without the other ways to write to the server")
	f.StringSliceVar(&o.Peers, "peer", nil, "databases to measure, too, each if it is installed: "+strings.Join(bench.Peers(), ", "))
	f.StringVar(&o.Dir, "dir", "", "folder in which the store is created; default the system's temporary folder")
	f.StringVar(&o.Store, "store", "", "folder of the store, which is not removed, and may have threads, such as one that bench memory has kept; default one in --dir")
	f.IntVar(&cacheMiB, "thread-cache", 0, "MiB for the thread states that Skein caches in memory (default as in skein serve)")
	f.Float64Var(&o.Interval, "interval", 0, "seconds of a case for which figures of their own are printed; 0: none")
	f.StringVar(&o.Profile, "profile", "", "file for a processor profile of server and Skein in the last case; with --interval, one for each, ending in .1, .2, ...")
	f.BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func (a *app) neighbour() *cobra.Command {
	var o bench.NeighbourOptions
	var asJSON bool
	cmd := &cobra.Command{
		Use: "neighbour", Short: "Measure one tenant alongside a hostile one", Args: cobra.NoArgs,
		Long: "Measure the commands of one tenant: alone, and alongside another tenant that floods Skein with queries, commands and\n" +
			"submitted commands from raw connections, as fast as they are accepted, or whose clients ask for as much as one request\n" +
			"can: scans, long lists, large commits. Each has an account of its own. The store is a temporary folder; the flood, the\n" +
			"clients, and server with Skein are three processes, which share the processor. With --http, both use HTTP: the other\n" +
			"tenant sends bodies of nearly 4 MB, malformed and deep JSON, slow bodies and files, and opens streams that it never\n" +
			"reads, that show nothing, and that show a long thread whenever it changes.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			for _, name := range o.Cases {
				if known := bench.NeighbourCases(o.HTTP); !slices.Contains(known, name) {
					return cli.WrongUsage("--case %q: use %s", name, strings.Join(known, ", "))
				}
			}
			o.LoadArgs = []string{"load"}
			o.Log = func(line string) { a.Hint("%s", line) }
			heap.Fit()
			result, err := bench.Neighbour(cmd.Context(), o)
			if err != nil {
				return err
			}
			return a.print(result, asJSON)
		},
	}
	f := cmd.Flags()
	f.Float64Var(&o.Seconds, "seconds", 6, "duration of a case")
	f.BoolVar(&o.HTTP, "http", false, "over HTTP, instead of NATS")
	f.IntVar(&o.Conns, "connections", 0, "connections of the flood (default 4, and 64 over HTTP)")
	f.IntVar(&o.Clients, "clients", 16, "clients that send heavy requests")
	f.StringSliceVar(&o.Cases, "case", nil, "what the other tenant does; default everything")
	f.StringVar(&o.Dir, "dir", "", "folder in which the store is created; default the system's temporary folder")
	f.StringVar(&o.Profile, "profile", "", "file for a processor profile of the last case")
	f.BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func (a *app) memory() *cobra.Command {
	var o bench.MemoryOptions
	var asJSON bool
	var cacheMiB int64
	cmd := &cobra.Command{
		Use: "memory", Short: "Measure the memory that threads need", Args: cobra.NoArgs,
		Long: "Create threads with one turn each, and measure the memory of the server, and of Skein in a process of its own,\n" +
			"at each of the numbers of threads, when both are idle.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.LoadArgs, o.SkeinArgs = []string{"load"}, []string{"skein"}
			o.ThreadCache = cacheMiB << 20
			o.Log = func(line string) { a.Hint("%s", line) }
			heap.Fit()
			result, err := bench.Memory(cmd.Context(), o)
			if err != nil {
				return err
			}
			return a.print(result, asJSON)
		},
	}
	f := cmd.Flags()
	f.IntSliceVar(&o.Threads, "threads", []int{1000, 10_000, 100_000, 200_000}, "at which numbers of threads")
	f.BoolVar(&o.Cold, "cold", false, "freeze all threads before each measurement, and measure a start on them at the end")
	f.StringVar(&o.Profile, "profile", "", "file for a heap profile of the server at the last number; Skein's has .skein at its end")
	f.BoolVar(&o.Message, "message", false, "create each thread with one message, in one commit, instead of a turn")
	f.StringVar(&o.Store, "store", "", "folder of the store, which is not removed, and whose threads count if it has any; default one in --dir")
	f.Int64Var(&cacheMiB, "thread-cache", 0, "MiB for the thread states that Skein caches in memory (default 256)")
	f.StringVar(&o.Dir, "dir", "", "folder in which the store is created; default the system's temporary folder")
	f.BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func (a *app) threads() *cobra.Command {
	var o bench.ThreadsOptions
	var asJSON bool
	cmd := &cobra.Command{
		Use: "threads", Short: "Measure documents, forks, lists, states and observers of threads", Args: cobra.NoArgs,
		Long: "Measure one operation after the other, of a client in the same process: a thread as a document, a fork, summaries,\n" +
			"state.merge, and the way from a write to an observer. The store is a temporary folder, whose disk is measured too.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.Log = func(line string) { a.Hint("%s", line) }
			heap.Fit()
			result, err := bench.Threads(cmd.Context(), o)
			if err != nil {
				return err
			}
			return a.print(result, asJSON)
		},
	}
	f := cmd.Flags()
	f.IntVar(&o.Messages, "messages", 1000, "messages of the thread that is read and forked")
	f.IntVar(&o.Threads, "threads", 1000, "threads among which summaries are listed")
	f.IntVar(&o.Times, "times", 50, "how often each is done")
	f.StringVar(&o.Dir, "dir", "", "folder in which the store is created; default the system's temporary folder")
	f.BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func (a *app) thread() *cobra.Command {
	var o bench.LongOptions
	var asJSON bool
	cmd := &cobra.Command{
		Use: "thread", Short: "Measure one long thread", Args: cobra.NoArgs,
		Long: "Measure one thread of messages at several lengths, one operation after the other, of a client in the same process:\n" +
			"appends, pages, time travel, forks, an audit, and the first command after a restart.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if least := slices.Min(o.Events); least < 100 {
				return cli.WrongUsage("--events: %d; use numbers from 100 on", least)
			}
			o.Log = func(line string) { a.Hint("%s", line) }
			heap.Fit()
			result, err := bench.Long(cmd.Context(), o)
			if err != nil {
				return err
			}
			return a.print(result, asJSON)
		},
	}
	f := cmd.Flags()
	f.IntSliceVar(&o.Events, "events", []int{10_000, 100_000, 1_000_000}, "at which numbers of events")
	f.IntVar(&o.Times, "times", 20, "how often each is done, but for slow ones")
	f.StringVar(&o.Dir, "dir", "", "folder in which the store is created; default the system's temporary folder")
	f.BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func (a *app) http() *cobra.Command {
	var o bench.HTTPOptions
	var asJSON bool
	cmd := &cobra.Command{
		Use: "http", Short: "Measure HTTP next to NATS", Args: cobra.NoArgs,
		Long: "Measure commands, pages, responses and streams of events over HTTP, and the same over NATS in turns with them. Clients\n" +
			"and readers are another process on this machine. The store is a temporary folder, whose disk is measured too.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			for _, name := range o.Cases {
				if !slices.Contains(traffic.Cases(), name) {
					return cli.WrongUsage("--case %q: use %s", name, strings.Join(traffic.Cases(), ", "))
				}
			}
			o.LoadArgs = []string{"load"}
			o.Log = func(line string) { a.Hint("%s", line) }
			heap.Fit()
			result, err := bench.HTTP(cmd.Context(), o)
			if err != nil {
				return err
			}
			return a.print(result, asJSON)
		},
	}
	f := cmd.Flags()
	f.Float64Var(&o.Seconds, "seconds", 4, "duration of a case")
	f.StringSliceVar(&o.Cases, "case", traffic.Cases(), "what to measure")
	f.IntSliceVar(&o.Clients, "clients", []int{1, 64}, "how many clients, for each case")
	f.IntSliceVar(&o.Readers, "readers", []int{1, 100, 1000}, "how many readers of one thread's events, for each case")
	f.IntVar(&o.Events, "events", 100, "how many events they read")
	f.StringVar(&o.Dir, "dir", "", "folder in which the store is created; default the system's temporary folder")
	f.StringVar(&o.Profile, "profile", "", "file for a processor profile of the server in the last case over HTTP")
	f.BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// skein is the process of the Skein whose memory is measured.
func (a *app) skein() *cobra.Command {
	return &cobra.Command{
		Use: "skein", Hidden: true, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			heap.Fit()
			return bench.RunSkein(cmd.Context())
		},
	}
}

// print prints a result, as a table or as JSON.
func (a *app) print(result interface{ Write(io.Writer) error }, asJSON bool) error {
	if asJSON {
		return a.PrintJSON(result)
	}
	return result.Write(a.Out)
}
