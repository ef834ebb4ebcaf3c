// Command measure runs a cluster of three nats-servers on loopback, and measures commits on it with
// one Skein and with two, and what clients see when the server that leads the log is killed. It is
// `make bench-cluster`.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/skein-threads/skein/dev/bench"
	"github.com/skein-threads/skein/dev/cluster"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	run := measure
	if len(os.Args) > 1 && os.Args[1] == "load" {
		run = bench.RunLoad
	}
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "measure:", err)
		os.Exit(1)
	}
}

// measure runs from the folder of the module.
func measure(ctx context.Context) (err error) {
	seconds := flag.Float64("seconds", 5, "duration of a case")
	threads := flag.Int("threads", 500, "how many threads are written")
	kills := flag.Int("kills", 3, "how often the leader is killed")
	dir := flag.String("dir", "", "folder in which the stores are created; default the system's temporary folder")
	cpus := flag.Float64("skein-cpu", 0, "how many processors each Skein may use, such as 0.3; 0: no limit")
	flag.Parse()
	skeins := []string{"skein-a", "skein-b"}
	shares, err := newShares(controlGroups, len(skeins), *cpus)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, removeShares(shares)) }()
	root, err := os.Getwd()
	if err != nil {
		return err
	}
	work, err := os.MkdirTemp(*dir, "skein-bench-cluster-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(work) }()
	programs, err := cluster.Build(ctx, root, work)
	if err != nil {
		return err
	}
	c, err := cluster.New(cluster.Config{Programs: programs, Conf: filepath.Join(root, "deploy", "cluster"), Dir: work})
	if err != nil {
		return err
	}
	defer c.Close()
	starting, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	if err := c.Start(starting); err != nil {
		return err
	}
	m := &measurement{c: c, o: bench.Options{
		Seconds: *seconds, Threads: *threads, LoadArgs: []string{"load"}, Log: func(line string) { fmt.Fprintln(os.Stderr, line) },
	}}
	for i, name := range skeins {
		p, err := c.Skein(starting, name, c.URL())
		if err != nil {
			return err
		}
		if shares != nil {
			if err := shares[i].add(p.PID()); err != nil {
				return err
			}
		}
		if err := m.commits(ctx, fmt.Sprintf("%d of Skein", len(c.Skeins))); err != nil {
			return err
		}
	}
	for range *kills {
		if err := m.kill(ctx); err != nil {
			return err
		}
	}
	return m.print()
}

// measurement is a run.
type measurement struct {
	c         *cluster.Cluster
	o         bench.Options
	cases     []bench.Case
	survivals []*bench.Survival
}

func (m *measurement) commits(ctx context.Context, name string) error {
	e, err := bench.Connect(m.c.URL(), m.o)
	if err != nil {
		return err
	}
	defer e.Close()
	got, err := e.Commits(ctx)
	for _, c := range got {
		c.Name = name
		m.cases = append(m.cases, c)
	}
	return err
}

// kill kills the server that leads the log while 64 clients commit, and starts it again.
func (m *measurement) kill(ctx context.Context) error {
	e, err := bench.Connect(m.c.URL(), m.o)
	if err != nil {
		return err
	}
	defer e.Close()
	leads := -1
	m.o.Log("the leader is killed")
	s, err := e.Survive(ctx, 64, func() error {
		name, err := e.Leader(ctx)
		if err != nil {
			return err
		}
		for i, server := range m.c.Servers {
			if server.Name == name {
				leads = i
			}
		}
		if leads < 0 {
			return fmt.Errorf("the leader is %q, which is no server of this cluster", name)
		}
		m.c.Servers[leads].Kill()
		return nil
	})
	if err != nil {
		return err
	}
	m.survivals = append(m.survivals, s)
	ready, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	return errors.Join(m.c.Servers[leads].Start(nil), m.c.Ready(ready, leads))
}

func (m *measurement) print() error {
	t := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(t, "three servers\tclients\tcommits/s\tevents/s\tp50 ms\tp99 ms\trefused\t\n")
	for _, c := range m.cases {
		fmt.Fprintf(t, "%s\t%d\t%.0f\t%.0f\t%.2f\t%.2f\t%d\t\n", c.Name, c.Clients, c.CommitsPerSecond, c.EventsPerSecond, c.P50Ms, c.P99Ms, c.Refused)
	}
	fmt.Fprintf(t, "\nleader killed, clients\tcommits\tcommits/s before\tat the end\tlongest pause s\tsent again\tlost\ttwice\t\n")
	var bad error
	for _, s := range m.survivals {
		fmt.Fprintf(t, "%d\t%d\t%.0f\t%.0f\t%.2f\t%d\t%d\t%d\t\n", s.Clients, s.Commits, s.Before, s.After, s.PauseSeconds, s.Repeated, s.Lost, s.Twice)
		if s.Lost+s.Twice > 0 {
			bad = fmt.Errorf("%d acknowledged commits are lost, %d are stored twice", s.Lost, s.Twice)
		}
	}
	return errors.Join(t.Flush(), bad)
}
