package cli

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

// App is one run of the program, with its input and output.
type App struct {
	In       io.Reader
	Out, Err io.Writer
	// Env returns a variable of the environment.
	Env func(string) (string, bool)
	// IsTerminal reports whether a stream is a terminal.
	IsTerminal func(any) bool

	// Program is what the program is called, and what its help says first; default skein.
	Program Program

	begun bool         // flags and arguments were valid: later errors are not wrong usage
	ended func() error // why the command's context has ended, nil if it has not
	stop  func()       // ends the command's context
}

// Program names a program and describes it in its help.
type Program struct{ Name, Short, Long string }

// New returns a run of the program with the input, the output and the environment of this process.
func New() *App {
	return &App{In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Env: os.LookupEnv, IsTerminal: onTerminal}
}

// skein is the program of this command line.
func skein() Program {
	return Program{
		Name:  "skein",
		Short: "Event-sourced threads of AI agents on NATS JetStream",
		Long: "Skein keeps the conversations of AI agents as event-sourced threads on NATS JetStream.\n\n" +
			"Every flag has an environment variable: SKEIN_ and its name, such as SKEIN_TENANT for --tenant.\n" +
			"Exit codes: 0 done, 1 failed, 2 wrong usage, 3 a verification found something.",
	}
}

func onTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// Execute runs one command and returns the exit code.
func (a *App) Execute(ctx context.Context, args []string, verbs ...Verbs) int {
	root := a.Root(verbs...)
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(ctx)
	if a.stop != nil {
		defer a.stop()
	}
	return a.exit(cmd, err)
}

// Root returns the command of the program, with the commands of verbs.
func (a *App) Root(verbs ...Verbs) *cobra.Command {
	if a.Program.Name == "" {
		a.Program = skein()
	}
	root := &cobra.Command{
		Use: a.Program.Name, Short: a.Program.Short, Long: a.Program.Long,
		Version:      Version(),
		SilenceUsage: true, SilenceErrors: true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			if err := a.fromEnvironment(cmd); err != nil {
				return err
			}
			if err := checkNumbers(cmd); err != nil {
				return err
			}
			if err := cmd.ValidateFlagGroups(); err != nil {
				return WrongUsage("%v; see %s --help", err, cmd.CommandPath())
			}
			a.begun = true
			a.ending(cmd)
			return nil
		},
	}
	root.SetVersionTemplate(a.Program.Name + " {{.Version}}\n")
	root.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return nil
		}
		return unknownCommand(cmd, args)
	}
	root.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	root.SetFlagErrorFunc(unknownFlag)
	root.SetIn(a.In)
	root.SetOut(a.Out)
	root.SetErr(a.Err)
	add(root, verbs)
	strict(root)
	nameArguments(root)
	return root
}

// strict makes cobra's own commands refuse what they do not know: they print their help instead.
func strict(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	for _, c := range root.Commands() {
		switch c.Name() {
		case "completion":
			c.Args, c.RunE = unknownCommand, unknownCommand
		case "help":
			c.Args = func(_ *cobra.Command, args []string) error {
				if found, rest, err := root.Find(args); err == nil && len(rest) > 0 && found.HasSubCommands() {
					return unknownCommand(found, rest)
				}
				return nil
			}
		}
	}
}

// Variable returns the name of a flag's environment variable.
func Variable(flag string) string {
	return "SKEIN_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// Required returns what the help of a required flag ends with.
func Required(flag string) string { return " (required, here or as " + Variable(flag) + ")" }

// fromEnvironment sets flags that are not on the command line from their variables.
func (a *App) fromEnvironment(cmd *cobra.Command) error {
	var errs []error
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		value, ok := a.Env(Variable(f.Name))
		if f.Changed || !ok || f.Name == "help" {
			return
		}
		err := cmd.Flags().Set(f.Name, value)
		if err == nil {
			err = cmd.Flags().SetAnnotation(f.Name, fromVariable, nil)
		}
		if err != nil {
			errs = append(errs, WrongUsage("%s: %v", Variable(f.Name), err))
		}
	})
	return errors.Join(errs...)
}

// fromVariable annotates a flag that was set from its variable.
const fromVariable = "from variable"

// Given reports whether a flag is on the command line: a variable is for many commands, and is
// no mistake where another flag makes it pointless.
func Given(cmd *cobra.Command, flag string) bool {
	f := cmd.Flags().Lookup(flag)
	_, variable := f.Annotations[fromVariable]
	return f.Changed && !variable
}

// Group returns a command that only has subcommands.
func Group(use, short string, commands ...*cobra.Command) *cobra.Command {
	g := &cobra.Command{Use: use, Short: short, Args: unknownCommand, RunE: unknownCommand}
	g.AddCommand(commands...)
	return g
}

// PrintJSON writes one document as one line.
func (a *App) PrintJSON(v any) error {
	b, err := json.Marshal(v, json.Deterministic(true))
	if err != nil {
		return err
	}
	_, err = a.Out.Write(append(b, '\n'))
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
		return WrongUsage("%s needs one of: %s", cmd.CommandPath(), strings.Join(known, ", "))
	}
	if near := suggest.Nearest(args[0], known); near != "" {
		return WrongUsage("unknown command %.80q; did you mean %s %s?", args[0], cmd.CommandPath(), near)
	}
	return WrongUsage("unknown command %.80q; %s has: %s", args[0], cmd.CommandPath(), strings.Join(known, ", "))
}

// unknownFlag turns cobra's error for a flag into wrong usage, with the flag that was
// probably meant.
func unknownFlag(cmd *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	if !errors.As(err, &unknown) {
		return WrongUsage("%v", err)
	}
	var known []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) { known = append(known, f.Name) })
	if near := suggest.Nearest(unknown.GetSpecifiedName(), known); near != "" {
		return WrongUsage("%s has no flag --%.80s; did you mean --%s?", cmd.CommandPath(), unknown.GetSpecifiedName(), near)
	}
	return WrongUsage("%s has no flag --%.80s; see %s --help", cmd.CommandPath(), unknown.GetSpecifiedName(), cmd.CommandPath())
}
