package user

import (
	"context"
	"io"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/cmd/skein/cli"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/suggest"
)

// rawCommand sends any command of the contract, so that a script can send commands that
// have no subcommand of their own.
func (a *app) rawCommand() *cobra.Command {
	var r client.Request
	var version int64
	var data events.JSON
	cmd := remoteCommand("cmd NOUN.VERB [JSON]", "Send any command and print its reply as JSON", cobra.RangeArgs(1, 2),
		func(ctx context.Context, _ *cli.Remote, c *client.Client, args []string) error {
			r.Data = data
			reply, err := c.Do(ctx, args[0], r)
			if err != nil {
				return err
			}
			return a.PrintJSON(reply)
		})
	cmd.Long = "Send any command and print its reply as JSON. JSON is the body of the command, {} if absent;\n" +
		"- reads it from standard input. docs/commands.md lists the commands."
	known := names(events.Commands(), func(c events.Command) string { return c.Name })
	f := cmd.Flags()
	cmd.PreRunE = func(_ *cobra.Command, args []string) (err error) {
		r.ExpectedVersion = ifGiven(f.Changed("expected-version"), version)
		if err = knownName("command", args[0], known); err == nil {
			data, err = a.rawData(args[1:])
		}
		if err == nil && namesThread(data) {
			err = cli.WrongUsage("JSON: the body of a command has no threadId; name the thread with --thread")
		}
		return err
	}
	cmd.ValidArgs = known
	f.StringVar(&r.ThreadID, "thread", "", "the thread: an id, or key: and its key")
	f.StringVar(&r.CommandID, "command-id", "", "makes retries safe: the same id within 24 hours returns the first reply again")
	f.StringVar(&r.Actor, "actor", "", "who acts, for the audit")
	f.StringVar(&r.WriterToken, "writer-token", "", "the token of writer.claim, if you hold the thread")
	f.Int64Var(&version, "expected-version", 0, "the version that the thread must have; 0: it must not exist; default any")
	return cmd
}

// rawQuery sends any query of the contract.
func (a *app) rawQuery() *cobra.Command {
	var data events.JSON
	cmd := remoteCommand("query NOUN.VERB [JSON]", "Send any query and print its answer as JSON", cobra.RangeArgs(1, 2),
		func(ctx context.Context, _ *cli.Remote, c *client.Client, args []string) error {
			answer, err := c.Query(ctx, args[0], data)
			if err != nil {
				return err
			}
			return a.PrintJSON(events.JSON(answer))
		})
	cmd.Long = "Send any query and print its answer as JSON. JSON is the body of the query, {} if absent;\n" +
		"- reads it from standard input. docs/queries.md lists the queries.\n\n" +
		"A query reads the read models; minSeq or minVersion in JSON sets how recent they must be."
	known := names(events.Queries(), func(q events.Query) string { return q.Name })
	cmd.PreRunE = func(_ *cobra.Command, args []string) (err error) {
		if err = knownName("query", args[0], known); err == nil {
			data, err = a.rawData(args[1:])
		}
		return err
	}
	cmd.ValidArgs = known
	return cmd
}

// rawData parses the JSON object of a raw request.
func (a *app) rawData(args []string) (events.JSON, error) {
	if len(args) == 0 {
		return events.JSON("{}"), nil
	}
	text := args[0]
	if text == "-" {
		raw, err := io.ReadAll(io.LimitReader(a.In, events.MaxPayload+1))
		if err != nil {
			return nil, err
		}
		text = string(raw)
	}
	data := events.JSON(text)
	if !jsontext.Value(data).IsValid() || jsontext.Value(data).Kind() != '{' {
		return nil, cli.WrongUsage("JSON: %.40q is not a JSON object", strings.TrimSpace(text))
	}
	return data, nil
}

// namesThread reports whether the body of a command names a thread, which no command takes there.
func namesThread(body events.JSON) bool {
	var fields map[string]events.JSON
	_ = json.Unmarshal(body, &fields) // the service says what is wrong with it
	_, there := fields["threadId"]
	return there
}

func names[T any](rows []T, name func(T) string) []string {
	out := make([]string, 0, len(rows))
	for _, row := range rows {
		out = append(out, name(row))
	}
	slices.Sort(out)
	return out
}

// knownName refuses a name that is not in the contract of this build.
func knownName(kind, name string, known []string) error {
	if slices.Contains(known, name) {
		return nil
	}
	if near := suggest.Nearest(name, known); near != "" {
		return cli.WrongUsage("unknown %s %.80q; did you mean %s?", kind, name, near)
	}
	return cli.WrongUsage("unknown %s %.80q; docs list them, and so does shell completion", kind, name)
}
