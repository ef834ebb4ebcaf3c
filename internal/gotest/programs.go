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

// keepPrograms returns the arguments of the runs of go test that together do what one run
// with arguments does, and keep the test programs in folder. Go links a test program each
// time unless it is told where to keep it; then it links again what has changed.
//
// Go names a program after the last element of its package's path, and refuses two of one
// name in a run: such packages are in different runs, each with its own folder in folder.
//
// The packages with the most tests begin first: one that begins last would run alone.
func keepPrograms(dir, folder string, arguments []string) ([][]string, error) {
	first := slices.IndexFunc(arguments, func(a string) bool { return strings.HasPrefix(a, ".") })
	if first < 0 {
		return nil, fmt.Errorf("-programs: no packages in %q: end it with a pattern such as ./... that begins with a point", arguments)
	}
	list := exec.Command("go", append([]string{"list", "-e", "-f", "{{.ImportPath}} {{len .TestGoFiles}} {{len .XTestGoFiles}}"}, arguments[first:]...)...)
	list.Dir = dir
	out, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("-programs: list the packages: %w", err)
	}
	var runs [][]string
	for i, packages := range apart(longestFirst(string(out))) {
		to, err := filepath.Abs(filepath.Join(folder, strconv.Itoa(i)))
		if err != nil {
			return nil, fmt.Errorf("-programs: %w", err)
		}
		if err := os.MkdirAll(to, 0o750); err != nil {
			return nil, fmt.Errorf("-programs: %w", err)
		}
		runs = append(runs, slices.Concat([]string{"-o", to}, arguments[:first], packages))
	}
	if len(runs) == 0 {
		return [][]string{arguments}, nil // go test says that there is none
	}
	return runs, nil
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
