package main

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
)

// choose adds to the arguments of go test which tests it runs. The lists are separated by commas.
func choose(only, without string, arguments []string) ([]string, error) {
	if only != "" && without != "" {
		return nil, errors.New("-only and -without exclude each other: give one of them")
	}
	if only+without == "" {
		return arguments, nil
	}
	var folders, names []string
	for _, file := range strings.Split(only+without, ",") {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("the list of tests: %w", err)
		}
		of, listed, err := parseList(string(text))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		folders, names = append(folders, of...), append(names, listed...)
	}
	slices.Sort(folders)
	pattern := "^(" + strings.Join(names, "|") + ")$"
	if only == "" {
		return append([]string{"-skip", pattern}, arguments...), nil
	}
	return append(append([]string{"-run", pattern}, arguments...), slices.Compact(folders)...), nil
}

// parseList reads a list of tests: lines of a folder and a test's name. What follows
// a # is a comment.
func parseList(text string) (folders, names []string, err error) {
	for n, row := range strings.Split(text, "\n") {
		row, _, _ = strings.Cut(row, "#")
		switch fields := strings.Fields(row); len(fields) {
		case 0:
		case 2:
			folders, names = append(folders, "./"+fields[0]), append(names, regexp.QuoteMeta(fields[1]))
		default:
			return nil, nil, fmt.Errorf("line %d is %q: write a folder and the name of a test", n+1, row)
		}
	}
	if len(names) == 0 {
		return nil, nil, errors.New("it lists no test")
	}
	return folders, names, nil
}
