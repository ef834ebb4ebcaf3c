package main

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"github.com/skein-threads/skein/internal/suggest"
)

// app is one run of the program, with its input and output.
type app struct {
	in       io.Reader
	out, err io.Writer
	env      func(string) (string, bool)
	// isTerminal reports whether a stream is a terminal.
	isTerminal func(any) bool

	begun bool         // flags and arguments were valid: later errors are not wrong usage
	ended func() error // why the command's context has ended, nil if it has not
}

func onTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// execute runs one command and returns the exit code.
func (a *app) execute(ctx context.Context, args []string) int {
	root := a.root()
	root.SetArgs(args)
	return a.exit(root.ExecuteContext(ctx))
}

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "skein",
		Short: "Event-sourced threads of AI agents on NATS JetStream",
		Long: "Skein keeps the conversations of AI agents as event-sourced threads on NATS JetStream.\n\n" +
			"Every flag has an environment variable: SKEIN_ and its name, such as SKEIN_TENANT for --tenant.\n" +
			"Exit codes: 0 done, 1 failed, 2 wrong usage, 3 a verification found something.",
		SilenceUsage: true, SilenceErrors: true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			if err := a.fromEnvironment(cmd); err != nil {
				return err
			}
			if err := cmd.ValidateFlagGroups(); err != nil {
				return wrongUsage("%v; see %s --help", err, cmd.CommandPath())
			}
			a.begun = true
			a.ending(cmd)
			return nil
		},
	}
	root.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return nil
		}
		return unknownCommand(cmd, args)
	}
	root.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	root.SetFlagErrorFunc(unknownFlag)
	root.SetIn(a.in)
	root.SetOut(a.out)
	root.SetErr(a.err)
	root.AddCommand(
		a.serveCommand(), a.gatewayCommand(), a.demoCommand(), a.importCommand(), a.threadCommand(), a.itemCommand(), a.messageCommand(), a.filesCommand(),
		a.runCommand(), a.queueCommand(), a.skillCommand(), a.stateCommand(), a.sessionCommand(), a.kvCommand(), a.approvalCommand(), a.applyCommand(), a.definitionCommand(), a.workerCommand(),
		a.rawCommand(), a.rawQuery(), a.mcpCommand(), a.effectCommand(), a.healthCommand(),
		a.tailCommand(), a.replayCommand(), a.auditCommand(), a.operationCommand(), a.backupCommand(), a.restoreCommand(), a.storeCommand(), a.accessCommand(),
		a.sizeCommand(), a.archiveCommand(), a.benchCommand(), a.versionCommand(),
	)
	addExamples(root)
	nameArguments(root)
	return root
}

// variable returns the name of a flag's environment variable.
func variable(flag string) string {
	return "SKEIN_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// fromEnvironment sets flags that are not on the command line from their variables.
func (a *app) fromEnvironment(cmd *cobra.Command) error {
	var errs []error
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		value, ok := a.env(variable(f.Name))
		if f.Changed || !ok || f.Name == "help" {
			return
		}
		err := cmd.Flags().Set(f.Name, value)
		if err == nil {
			err = cmd.Flags().SetAnnotation(f.Name, fromVariable, nil)
		}
		if err != nil {
			errs = append(errs, wrongUsage("%s: %v", variable(f.Name), err))
		}
	})
	return errors.Join(errs...)
}

// fromVariable annotates a flag that was set from its variable.
const fromVariable = "from variable"

// given reports whether a flag is on the command line: a variable is for many commands, and is
// no mistake where another flag makes it pointless.
func given(cmd *cobra.Command, flag string) bool {
	f := cmd.Flags().Lookup(flag)
	_, variable := f.Annotations[fromVariable]
	return f.Changed && !variable
}

// group returns a command that only has subcommands.
func group(use, short string, commands ...*cobra.Command) *cobra.Command {
	g := &cobra.Command{Use: use, Short: short, Args: unknownCommand, RunE: unknownCommand}
	g.AddCommand(commands...)
	return g
}

// printJSON writes one document as one line.
func (a *app) printJSON(v any) error {
	b, err := json.Marshal(v, json.Deterministic(true))
	if err != nil {
		return err
	}
	_, err = a.out.Write(append(b, '\n'))
	return err
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
