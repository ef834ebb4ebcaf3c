package faults_test

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/skein-threads/skein/dev/cluster"
)

// long returns the number of rounds; without SKEIN_FAULTS it skips the test.
func long(t *testing.T) int {
	t.Helper()
	text := os.Getenv("SKEIN_FAULTS")
	if text == "" {
		t.Skip("it takes minutes: make test-faults runs it")
	}
	rounds, err := strconv.Atoi(text)
	must(t, err)
	return rounds
}

// A short run for make test-long: with slow disks and wrong clocks the leader of the log
// dies, a Skein dies, streams change their leaders, and a server hangs.
func TestFaults(t *testing.T) {
	if testing.Short() || os.Getenv("SKEIN_FAULTS") != "" {
		t.Skip("it takes a minute, and TestManyFaults does more: make test-long runs it")
	}
	w := beginWorld(t, nil)
	if w.machines() {
		w.disturbMachines()
	}
	w.during(func(ctx context.Context) {
		all := faults()
		for _, i := range []int{1, 5, 7, 2} {
			w.suffer(ctx, all[i:i+1], 1)
		}
	})
}

// Every fault of processes happens in a random order, and then an upgrade.
func TestManyFaults(t *testing.T) {
	rounds := long(t)
	w := beginWorld(t, nil)
	w.during(func(ctx context.Context) { w.suffer(ctx, append(faults(), machineFaults(w)...), rounds) })
	w.during(func(ctx context.Context) { w.suffer(ctx, []fault{rolling()}, 1) })
}

// Disks are slow and clocks jump, and processes die meanwhile.
func TestFaults_SlowDisksAndWrongClocks(t *testing.T) {
	rounds := long(t)
	w := beginWorld(t, nil)
	if !w.machines() {
		t.Skip("no machines here")
	}
	list := machineFaults(w)
	for _, f := range faults() {
		if strings.Contains(f.name, "killed") {
			list = append(list, f)
		}
	}
	w.during(func(ctx context.Context) { w.suffer(ctx, list, rounds) })
}

// Servers are cut off from each other, and from their clients.
func TestServersCutOff(t *testing.T) {
	rounds := long(t)
	net, places := ownNetwork(t)
	w := beginWorld(t, func(w *world) [cluster.Servers]cluster.Place {
		w.net = net
		return places
	})
	w.during(func(ctx context.Context) { w.suffer(ctx, cuts(), rounds) })
}

// A backup of a cluster is restored into one that has lost everything.
func TestRestoreACluster(t *testing.T) {
	long(t)
	w := beginWorld(t, nil)
	w.during(func(ctx context.Context) { sleep(ctx, 3*time.Second) })
	before := w.commits()
	dir := filepath.Join(w.dir, "backup")
	if out, err := w.skein(w.soon(), "backup", dir); err != nil {
		t.Fatalf("skein backup: %v\n%s", err, out)
	}
	for _, p := range w.Skeins {
		p.Stop(15 * time.Second)
	}
	for i, p := range w.Servers {
		p.Kill()
		must(t, os.RemoveAll(w.Store(i)))
	}
	must(t, w.Start(w.soon()))
	if out, err := w.skein(w.soon(), "restore", dir); err != nil {
		t.Fatalf("skein restore: %v\n%s", err, out)
	}
	w.heal()
	after := w.commits()
	if len(after) != len(before) {
		t.Fatalf("%d commits, and %d before", len(after), len(before))
	}
	for i := range after {
		if after[i].Seq != before[i].Seq || after[i].Chain != before[i].Chain {
			t.Errorf("commit %d is another one", before[i].Seq)
		}
	}
	w.during(func(ctx context.Context) { sleep(ctx, 3*time.Second) })
}
