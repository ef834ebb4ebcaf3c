package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// The folder in which Linux mounts control groups, and the period of a share, in microseconds: a
// group that has used up its part of one waits for the next.
const (
	controlGroups = "/sys/fs/cgroup"
	period        = 10_000
)

// share is a control group of Linux. The processes in it use at most so many processors together.
type share struct{ folder string }

// newShares creates n groups of cpus processors each, with version 2 or version 1 of control groups
// below root, and none if cpus is 0. After an error there are none. They stay until removeShares,
// and after a kill of this process until someone removes skein-measure-* there.
func newShares(root string, n int, cpus float64) (shares []share, err error) {
	if cpus == 0 {
		return nil, nil
	}
	if !(cpus >= 0.1 && cpus <= 1000) { // also NaN; the kernel refuses less than a millisecond of a period
		return nil, fmt.Errorf("-skein-cpu is %g: use 0 for no limit, or a number of processors from 0.1 to 1000", cpus)
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("-skein-cpu needs Linux, root and control groups with the controller cpu, writable below %s: %w",
				root, errors.Join(err, removeShares(shares)))
			shares = nil
		}
	}()
	parent, limits, err := limit(root, int(cpus*period))
	if err != nil {
		return nil, err
	}
	for range n {
		folder, err := os.MkdirTemp(parent, "skein-measure-")
		if err != nil {
			return shares, err
		}
		shares = append(shares, share{folder})
		for _, l := range limits {
			if err := write(folder, l.file, l.value); err != nil {
				return shares, err
			}
		}
	}
	return shares, nil
}

// setting is a file of a group and what is written there.
type setting struct{ file, value string }

// limit returns the parent of new groups, and the settings of a group that may use quota
// microseconds of processor time in each period.
func limit(root string, quota int) (parent string, settings []setting, err error) {
	controllers, err := os.ReadFile(filepath.Join(root, "cgroup.controllers"))
	if err == nil && slices.Contains(strings.Fields(string(controllers)), "cpu") {
		return root, []setting{{"cpu.max", fmt.Sprintf("%d %d", quota, period)}}, write(root, "cgroup.subtree_control", "+cpu")
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", nil, err
	}
	parent = filepath.Join(root, "cpu")
	_, err = os.Stat(filepath.Join(parent, "cpu.cfs_quota_us"))
	return parent, []setting{{"cpu.cfs_period_us", fmt.Sprint(period)}, {"cpu.cfs_quota_us", fmt.Sprint(quota)}}, err
}

func write(folder, file, value string) error {
	return os.WriteFile(filepath.Join(folder, file), []byte(value), 0o600)
}

// add moves a running process into the group, with all its threads.
func (s share) add(pid int) error { return write(s.folder, "cgroup.procs", fmt.Sprint(pid)) }

// removeShares removes groups whose processes have ended.
func removeShares(shares []share) error {
	var errs []error
	for _, s := range shares {
		errs = append(errs, os.Remove(s.folder))
	}
	return errors.Join(errs...)
}
