package user

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/cmd/skein/cli"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/threads"
)

func (a *app) threadExport() *cobra.Command {
	var markdown bool
	cmd := reading("export THREAD", "Print a thread whole, with its messages: as one JSON document, or as Markdown for people", cobra.ExactArgs(1),
		func(ctx context.Context, _ *cli.Remote, c *client.Client, args []string) error {
			t, err := threads.New(c).Get(ctx, args[0])
			switch {
			case err != nil:
				return err
			case markdown:
				_, err = io.WriteString(a.Out, markdownOf(t))
				return err
			}
			return a.PrintJSON(t)
		})
	cmd.Flags().BoolVar(&markdown, "markdown", false, "print Markdown: without what the model thought, the queue, the draft and the relationships")
	return cmd
}

// markdownOf returns the conversation of a thread as Markdown.
func markdownOf(t *threads.Thread) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n\n%s, created %s\n", oneLine(cmp.Or(t.Title, t.ID)), t.ID, time.UnixMilli(t.Created).UTC().Format(time.RFC3339))
	calls := map[string]string{} // their tools, by id
	for i := range t.Messages {
		m := &t.Messages[i]
		fmt.Fprintf(&b, "\n## %s\n", m.Role)
		for n := range m.Content {
			block := &m.Content[n]
			switch block.Type {
			case events.TextBlock:
				fmt.Fprintf(&b, "\n%s\n", *block.Text)
			case events.ImageBlock:
				fmt.Fprintf(&b, "\n![%s](%s)\n", cmp.Or(block.Source.MediaType, "image"), cmp.Or(block.Source.URL, "not in this file"))
			case events.ToolUseBlock:
				calls[block.ID] = block.Name
				fmt.Fprintf(&b, "\nCalls %s:\n\n%s", oneLine(block.Name), fenced(string(block.Input)))
			case events.ToolResultBlock:
				name := oneLine(cmp.Or(calls[block.ToolUseID], block.ToolUseID))
				switch run := block.Run; {
				case run == nil:
					fmt.Fprintf(&b, "\nNo result of %s.\n", name)
				case run.Status == events.ToolError:
					fmt.Fprintf(&b, "\nError of %s:\n\n%s", name, fenced(run.Error))
				default:
					fmt.Fprintf(&b, "\nResult of %s:\n\n%s", name, fenced(string(run.Result)))
				}
			case events.PartBlock:
				fmt.Fprintf(&b, "\n%s", fenced(string(block.Part)))
			}
		}
	}
	return b.String()
}

// oneLine returns a text on one line.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// fenced returns a block of code that nothing in the text can end.
func fenced(text string) string {
	fence := "```"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	return fence + "\n" + strings.TrimSuffix(text, "\n") + "\n" + fence + "\n"
}
