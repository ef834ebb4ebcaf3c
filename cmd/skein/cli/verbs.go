package cli

import (
	"strings"

	"github.com/spf13/cobra"
)

// Verbs are the commands of one package.
type Verbs struct {
	Groups []Commands
	// Below are commands that stand in a group of another package, by the group's name.
	Below map[string][]*cobra.Command
	// Examples are complete calls, one a line, which are shown in the help of the commands. They
	// omit --server and --tenant, which are in SKEIN_SERVER and SKEIN_TENANT.
	Examples string
}

// Commands are commands that stand together in the help.
type Commands struct {
	Title string // empty: they stand with those of cobra
	List  []*cobra.Command
}

// Verbs returns the commands of the program itself.
func (a *App) Verbs() Verbs {
	return Verbs{Groups: []Commands{{List: []*cobra.Command{a.versionCommand()}}}, Examples: "skein version --json"}
}

// add adds commands, with their examples, to root.
func add(root *cobra.Command, verbs []Verbs) {
	for _, v := range verbs {
		for _, g := range v.Groups {
			if g.Title != "" {
				root.AddGroup(&cobra.Group{ID: g.Title, Title: g.Title + ":"})
			}
			for _, c := range g.List {
				c.GroupID = g.Title
				root.AddCommand(c)
			}
		}
	}
	examples := map[string][]string{} // by the path of their command
	for _, v := range verbs {
		for _, g := range root.Commands() {
			g.AddCommand(v.Below[g.Name()]...)
		}
		for line := range strings.Lines(v.Examples) {
			if line = strings.TrimSpace(line); line == "" {
				continue
			}
			call := line[strings.LastIndex(line, "| ")+1:] // the last command of a pipe
			cmd, _, err := root.Find(strings.Fields(strings.TrimPrefix(strings.TrimSpace(call), root.Name()+" ")))
			if err == nil {
				examples[cmd.CommandPath()] = append(examples[cmd.CommandPath()], "  "+line) // as cobra's template is indented
			}
		}
	}
	show(root, examples)
}

// show sets the examples of cmd and of the commands below it.
func show(cmd *cobra.Command, examples map[string][]string) {
	cmd.Example = strings.Join(examples[cmd.CommandPath()], "\n")
	for _, c := range cmd.Commands() {
		show(c, examples)
	}
}
