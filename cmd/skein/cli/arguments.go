package cli

import (
	"errors"
	"strings"

	"github.com/spf13/cobra"
)

// nameArguments makes cmd and the commands below it say which arguments they take, if they are
// called with fewer or more.
func nameArguments(cmd *cobra.Command) {
	for _, c := range cmd.Commands() {
		nameArguments(c)
	}
	check := cmd.Args
	if check == nil {
		return
	}
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		err := check(cmd, args)
		if err == nil || errors.As(err, new(*usageError)) {
			return err
		}
		_, takes, _ := strings.Cut(cmd.Use, " ")
		if takes == "" {
			takes = "no arguments"
		}
		return WrongUsage("%s takes %s, but got %s; see %s --help", cmd.CommandPath(), takes, Count(len(args), "argument"), cmd.CommandPath())
	}
}
