package main

import (
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestShares_Files(t *testing.T) {
	for name, version := range map[string]struct {
		root   map[string]string // files that are there before
		parent string
		want   map[string]string // files of a group
		after  map[string]string // files of the root afterwards
	}{
		"version 1": {
			root: map[string]string{"cpu/cpu.cfs_quota_us": "-1"}, parent: "cpu",
			want: map[string]string{"cpu.cfs_period_us": "10000", "cpu.cfs_quota_us": "3000", "cgroup.procs": "123"},
		},
		"version 2": {
			root: map[string]string{"cgroup.controllers": "cpuset cpu io\n", "cgroup.subtree_control": ""}, parent: ".",
			want:  map[string]string{"cpu.max": "3000 10000", "cgroup.procs": "123"},
			after: map[string]string{"cgroup.subtree_control": "+cpu"},
		},
		"version 2 without the controller, which version 1 has": {
			root: map[string]string{"cgroup.controllers": "cpuset io\n", "cpu/cpu.cfs_quota_us": "-1"}, parent: "cpu",
			want: map[string]string{"cpu.cfs_period_us": "10000", "cpu.cfs_quota_us": "3000", "cgroup.procs": "123"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			root := fakeRoot(t, version.root)
			shares, err := newShares(root, 2, 0.3)
			if err != nil || len(shares) != 2 || shares[0] == shares[1] {
				t.Fatalf("%v, %v", shares, err)
			}
			for _, s := range shares {
				if got := filepath.Dir(s.folder); got != filepath.Join(root, version.parent) {
					t.Errorf("the group is in %s", got)
				}
				if err := s.add(123); err != nil {
					t.Error(err)
				}
				holds(t, s.folder, version.want)
				for file := range version.want { // the kernel's files do not keep a group from being removed
					_ = os.Remove(filepath.Join(s.folder, file))
				}
			}
			holds(t, root, version.after)
			if err := removeShares(shares); err != nil {
				t.Error(err)
			}
			noneLeft(t, root)
		})
	}
}

func TestShares_Refused(t *testing.T) {
	version1 := map[string]string{"cpu/cpu.cfs_quota_us": "-1"}
	for _, cpus := range []float64{-1, 0.05, 1e18, math.NaN(), math.Inf(1), math.Inf(-1)} {
		root := fakeRoot(t, version1)
		if _, err := newShares(root, 2, cpus); err == nil || !strings.Contains(err.Error(), "from 0.1 to 1000") {
			t.Errorf("%g: %v", cpus, err)
		}
		noneLeft(t, root)
	}
	for name, root := range map[string]string{
		"no control groups": filepath.Join(t.TempDir(), "none"),
		"no controller":     fakeRoot(t, map[string]string{"cgroup.controllers": "cpuset io\n"}),
	} {
		if shares, err := newShares(root, 2, 0.3); err == nil || shares != nil || !strings.Contains(err.Error(), "needs Linux, root and control groups") {
			t.Errorf("%s: %v, %v", name, shares, err)
		}
	}
	if shares, err := newShares("none", 2, 0); err != nil || shares != nil {
		t.Errorf("without a limit: %v, %v", shares, err)
	}
}

// A process that never waits uses what its group may, and no more. It ends when it has used a
// second of processor time, so a slow machine makes only the test slower.
func TestShares_LimitAProcess(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root creates control groups")
	}
	const cpus = 0.4
	shares, err := newShares(controlGroups, 1, cpus)
	if err != nil {
		t.Skipf("no control groups: %v", err)
	}
	t.Cleanup(func() {
		if err := removeShares(shares); err != nil {
			t.Error(err)
		}
	})
	busy := exec.CommandContext(t.Context(), "sh", "-c", "ulimit -t 1; read line; while :; do :; done")
	input, err := busy.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := busy.Start(); err != nil {
		t.Fatal(err)
	}
	if err := shares[0].add(busy.Process.Pid); err != nil {
		t.Error(err)
	}
	begun := time.Now()
	if _, err := input.Write([]byte("go\n")); err != nil {
		t.Error(err)
	}
	_ = busy.Wait() // the limit kills it
	took := time.Since(begun)
	used := busy.ProcessState.UserTime() + busy.ProcessState.SystemTime()
	if share := used.Seconds() / took.Seconds(); used < 100*time.Millisecond || share > 1.2*cpus {
		t.Errorf("it used %v of a processor in %v: %.2f processors, of %.2f", used, took, share, cpus)
	}
}

func fakeRoot(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for file, body := range files {
		file = filepath.Join(root, file)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(body), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func holds(t *testing.T, folder string, files map[string]string) {
	t.Helper()
	for file, want := range files {
		if got, err := os.ReadFile(filepath.Join(folder, file)); err != nil || string(got) != want {
			t.Errorf("%s has %q, %v; want %q", file, got, err, want)
		}
	}
}

func noneLeft(t *testing.T, root string) {
	t.Helper()
	for _, pattern := range []string{"skein-measure-*", "cpu/skein-measure-*"} {
		if left, err := filepath.Glob(filepath.Join(root, pattern)); err != nil || len(left) > 0 {
			t.Errorf("left: %v, %v", left, err)
		}
	}
}
