package user

import (
	"context"
	"fmt"
	"io"
	"os"
	"sync/atomic"

	"github.com/skein-threads/skein/cmd/skein/cli"
	"github.com/skein-threads/skein/internal/eventtext"

	"github.com/spf13/cobra"

	"github.com/skein-threads/skein/client"
)

func (a *app) importCommand() *cobra.Command {
	var parallel int
	var ignore []string
	cmd := remoteCommand("import FILE...", "Import conversations in the OpenAI chat format", cobra.MinimumNArgs(1),
		func(ctx context.Context, r *cli.Remote, c *client.Client, args []string) error {
			if parallel < 1 || parallel > 256 {
				return cli.WrongUsage("--parallel: %d; use 1 to 256", parallel)
			}
			return a.importFiles(ctx, r, c, a.openFiles(args), parallel, ignore)
		})
	cmd.Long = "Import conversations in the OpenAI chat format: JSON Lines, or an array, of {\"id\",\"messages\"}; - is standard input.\n" +
		"Each becomes a thread with the key import:{id}, each user message a turn of it. A second run adds nothing;\n" +
		"a conversation that has grown gets its new turns. The table shows what was added.\n\n" +
		"A message has a role, content (a text, or parts of the types text, image_url, file and refusal), tool_calls,\n" +
		"tool_call_id, name and refusal. Its created_at, createdAt or timestamp (ISO 8601, or a number since 1970) becomes the\n" +
		"time of its item; a conversation's is for messages without one. A conversation may have a title and metadata.\n" +
		"Ids of messages are not kept. A field that holds anything else is an error of its conversation, of which nothing is\n" +
		"imported; --ignore names fields to leave out."
	cmd.Flags().IntVar(&parallel, "parallel", 8, "conversations imported concurrently")
	cmd.Flags().StringSliceVar(&ignore, "ignore", nil, "fields to leave out, such as reasoning_content,model")
	return cmd
}

// files holds the files of an import, and how much of them has been read.
type files struct {
	sources []cli.ImportSource
	bytes   int64 // of all of them; 0 if unknown
	read    atomic.Int64
}

func (a *app) openFiles(names []string) *files {
	f := &files{}
	known := true
	for _, name := range names {
		info, err := os.Stat(name)
		if known = known && err == nil && info.Mode().IsRegular(); known {
			f.bytes += info.Size()
		}
		f.sources = append(f.sources, cli.ImportSource{Name: name, Open: func() (io.ReadCloser, error) {
			if name == "-" {
				return io.NopCloser(a.In), nil
			}
			file, err := os.Open(name)
			return countingFile{file, &f.read}, err
		}})
	}
	if !known {
		f.bytes = 0
	}
	return f
}

// countingFile is a file whose read bytes are counted.
type countingFile struct {
	*os.File
	read *atomic.Int64
}

// Read reads, and counts the bytes.
func (c countingFile) Read(p []byte) (int, error) {
	n, err := c.File.Read(p)
	c.read.Add(int64(n))
	return n, err
}

// problemsShown limits the lines about problems; the rest is counted.
const problemsShown = 1000

// importFiles imports and prints the table.
func (a *app) importFiles(ctx context.Context, r *cli.Remote, c *client.Client, f *files, parallel int, ignore []string) error {
	bar := a.Progress()
	problems := 0
	sum, err := cli.ImportConversations(ctx, c, f.sources, cli.ImportOptions{
		Parallel: parallel, Ignore: ignore,
		Problem: func(p cli.ImportProblem) {
			if problems++; problems > problemsShown {
				return
			}
			bar.Clear()
			if p.Line == 0 {
				a.Hint("%s: %s", p.File, eventtext.Printable(p.Message, false))
				return
			}
			a.Hint("%s:%d: %s", p.File, p.Line, eventtext.Printable(p.Message, false))
		},
		Progress: func(s cli.ImportSummary) {
			bar.Bar(f.read.Load(), f.bytes, "%d conversations, %d turns, %d events", s.Conversations+s.Unchanged, s.Turns, s.Events)
		},
	})
	bar.Clear()
	if err != nil {
		return err
	}
	if err := a.PrintSummary(r.JSON, sum); err != nil {
		return err
	}
	if sum.Failed > 0 {
		return cli.Failed("import_incomplete", fmt.Sprintf("not imported: %d of the conversations and files; the others were", sum.Failed))
	}
	return nil
}
