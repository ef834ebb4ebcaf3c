package main

import (
	"errors"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// nearest returns the known name that is nearest to a mistyped one, or "" if none is
// near.
func nearest(typed string, known []string) string {
	best, found := 1+max(1, len(typed)/3), ""
	for _, name := range known {
		d := distance(strings.ToLower(typed), strings.ToLower(name))
		if len(typed) > 2 && strings.HasPrefix(name, typed) {
			d = 1
		}
		if d < best {
			best, found = d, name
		}
	}
	return found
}

// distance returns the number of characters to insert, delete, replace or swap with a
// neighbour, to get from a to b.
func distance(a, b string) int {
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := range len(a) {
		row[0] = i + 1
		for j := range len(b) {
			replace := last[j]
			if a[i] != b[j] {
				replace++
			}
			row[j+1] = min(replace, last[j+1]+1, row[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}

// unknownCommand refuses an argument in the place of a subcommand.
func unknownCommand(cmd *cobra.Command, args []string) error {
	var known []string
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			known = append(known, c.Name())
		}
	}
	if len(args) == 0 {
		return wrongUsage("%s needs one of: %s", cmd.CommandPath(), strings.Join(known, ", "))
	}
	if near := nearest(args[0], known); near != "" {
		return wrongUsage("unknown command %.80q; did you mean %s %s?", args[0], cmd.CommandPath(), near)
	}
	return wrongUsage("unknown command %.80q; %s has: %s", args[0], cmd.CommandPath(), strings.Join(known, ", "))
}

// unknownFlag turns cobra's error for a flag into wrong usage, with the flag that was
// probably meant.
func unknownFlag(cmd *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	if !errors.As(err, &unknown) {
		return wrongUsage("%v", err)
	}
	var known []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) { known = append(known, f.Name) })
	if near := nearest(unknown.GetSpecifiedName(), known); near != "" {
		return wrongUsage("%s has no flag --%.80s; did you mean --%s?", cmd.CommandPath(), unknown.GetSpecifiedName(), near)
	}
	return wrongUsage("%s has no flag --%.80s; see %s --help", cmd.CommandPath(), unknown.GetSpecifiedName(), cmd.CommandPath())
}
