package main

import (
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// plan returns the arguments of the runs of go test that together do what one run with arguments
// does. The packages with the most tests begin first: one that begins last would run alone. If
// folder is not empty, the runs keep the test programs in it.
func plan(dir, folder string, arguments []string) ([][]string, error) {
	first := slices.IndexFunc(arguments, func(a string) bool { return strings.HasPrefix(a, ".") || strings.HasPrefix(a, "/") })
	if first < 0 {
		return nil, fmt.Errorf("no packages in %q: end the arguments with ./... or the folders of some", arguments)
	}
	list := exec.Command("go", append([]string{"list", "-e", "-f", "{{.ImportPath}} {{len .TestGoFiles}} {{len .XTestGoFiles}}"}, arguments[first:]...)...)
	list.Dir = dir
	out, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("list the packages: %w", err)
	}
	flags, packages := arguments[:first:first], longestFirst(string(out))
	switch {
	case len(packages) == 0:
		return [][]string{arguments}, nil // go test says that there is none
	case folder == "":
		return [][]string{append(flags, packages...)}, nil
	}
	return keepPrograms(folder, flags, packages)
}

// longestFirst returns the packages of a list, each with its numbers of files with tests, those
// with the most first.
func longestFirst(list string) (packages []string) {
	tests := map[string]int{}
	for line := range strings.Lines(list) {
		fields := strings.Fields(line)
		packages = append(packages, fields[0])
		for _, n := range fields[1:] {
			files, _ := strconv.Atoi(n) // go list writes numbers
			tests[fields[0]] += files
		}
	}
	slices.SortStableFunc(packages, func(a, b string) int { return tests[b] - tests[a] })
	return packages
}

// keepPrograms returns runs of go test that keep the test programs in folder. Go links a test
// program each time unless it is told where to keep it; then it links again what has changed.
//
// Go names a program after the last element of its package's path, and refuses two of one
// name in a run: such packages are in different runs, each with its own folder in folder.
func keepPrograms(folder string, flags, packages []string) (runs [][]string, err error) {
	for i, some := range apart(packages) {
		to, err := filepath.Abs(filepath.Join(folder, strconv.Itoa(i)))
		if err == nil {
			err = os.MkdirAll(to, 0o750)
		}
		if err != nil {
			return nil, fmt.Errorf("-programs: %w", err)
		}
		runs = append(runs, slices.Concat([]string{"-o", to}, flags, some))
	}
	return runs, nil
}

// apart divides packages so that no two of a part have the same last element.
func apart(packages []string) (parts [][]string) {
	seen := map[string]int{}
	for _, p := range packages {
		i := seen[path.Base(p)]
		seen[path.Base(p)]++
		if i == len(parts) {
			parts = append(parts, nil)
		}
		parts[i] = append(parts[i], p)
	}
	return parts
}
