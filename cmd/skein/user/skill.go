package user

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/cmd/skein/cli"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/eventtext"
)

func (a *app) skillCommand() *cobra.Command {
	return cli.Group("skill", "Show skills, and activate them on threads", a.skillList(), a.skillActivate())
}

func (a *app) skillList() *cobra.Command {
	return remoteCommand("list [THREAD]", "List the tenant's skills, or those that are active on a thread", cobra.MaximumNArgs(1),
		func(ctx context.Context, r *cli.Remote, c *client.Client, args []string) error {
			if len(args) == 1 {
				return a.activeSkills(ctx, r, c, args[0])
			}
			t := a.table()
			row := func(d *events.Definition) {
				value, _ := events.DecodeDefinition(d.Kind, d.Definition)
				skill, _ := value.(events.SkillDefinition)
				t.Row(d.Name, eventtext.Brief(skill.Description, eventtext.Width))
			}
			return printPages(a, r, 0, t, row, "", func(n int64, cursor string) ([]events.Definition, string, error) {
				list, err := client.Read(ctx, c, events.ListDefinitions{Kind: events.SkillKind, Limit: &n, Cursor: cursor})
				if err != nil {
					return nil, "", err
				}
				return list.Definitions, list.NextCursor, nil
			})
		})
}

// activeSkills prints the skills that are active on a thread.
func (a *app) activeSkills(ctx context.Context, r *cli.Remote, c *client.Client, thread string) error {
	doc, err := client.Read(ctx, c, events.GetThread{ThreadID: thread})
	if err != nil {
		return err
	}
	t := a.table()
	for i := range doc.ActivatedSkills {
		s := &doc.ActivatedSkills[i]
		if r.JSON {
			if err := a.PrintJSON(s); err != nil {
				return err
			}
			continue
		}
		t.Row(s.Name, eventtext.Brief(string(s.Arguments), eventtext.Width))
	}
	return t.Flush()
}

func (a *app) skillActivate() *cobra.Command {
	var arguments jsonFlag
	cmd := a.sending("activate THREAD NAME", "Activate a skill on a thread", cobra.ExactArgs(2), func(args []string) (any, error) {
		return events.ActivateSkill{Name: args[1], Arguments: arguments.value()}, nil
	})
	cmd.Flags().Var(&arguments, "arguments", "what the skill is activated for: a JSON object")
	return cmd
}
