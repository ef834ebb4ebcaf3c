package main

import (
	"errors"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/skein-threads/skein/internal/suggest"
)

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
	if near := suggest.Nearest(args[0], known); near != "" {
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
	if near := suggest.Nearest(unknown.GetSpecifiedName(), known); near != "" {
		return wrongUsage("%s has no flag --%.80s; did you mean --%s?", cmd.CommandPath(), unknown.GetSpecifiedName(), near)
	}
	return wrongUsage("%s has no flag --%.80s; see %s --help", cmd.CommandPath(), unknown.GetSpecifiedName(), cmd.CommandPath())
}
