package operator

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"time"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/cmd/skein/cli"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/server"
)

// samples are conversations written for this demo.
//
//go:embed samples/*.jsonl
var samples embed.FS

// demoTenant is the tenant of the demo, which is deleted with the demo's folder.
const demoTenant = "demo"

func (a *app) demoCommand() *cobra.Command {
	var o demoOptions
	cmd := &cobra.Command{
		Use: "demo", Short: "Run everything in one process and a temporary folder, on sample conversations", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.demo(cmd.Context(), o) },
	}
	cmd.Flags().BoolVar(&o.json, "json", false, "print only the summary of the import, as JSON")
	cmd.Flags().BoolVar(&o.serve, "serve", false, "stay until Ctrl-C, with an agent and conversations to look at in the console")
	cmd.Flags().StringVar(&o.listen, "http-listen", "127.0.0.1:0", "address of HTTP; port 0 for a free one")
	return cmd
}

// demoOptions are the flags of demo.
type demoOptions struct {
	json, serve bool
	listen      string
}

func (a *app) demo(ctx context.Context, o demoOptions) (err error) {
	store, err := os.MkdirTemp("", "skein-demo-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(store)) }()
	s, err := server.Start(ctx, server.Config{Store: store, NATSListen: "127.0.0.1:0", HTTPListen: o.listen, Tenant: demoTenant, Register: RegisterDemo}, zerolog.Nop())
	if err != nil {
		return err
	}
	defer func() {
		stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopWithin)
		defer cancel()
		err = errors.Join(err, s.Stop(stop))
	}()
	c, err := client.Connect(s.Addresses().NATS, client.Options{Tenant: demoTenant, Name: "skein-demo", Actor: "demo"})
	if err != nil {
		return err
	}
	defer c.Close()
	sources, err := sampleSources()
	if err != nil {
		return err
	}
	if o.json {
		sum, err := cli.ImportConversations(ctx, c, sources, cli.ImportOptions{})
		if err != nil {
			return err
		}
		return a.PrintJSON(sum)
	}
	if err := a.showDemo(ctx, c, s.Addresses(), sources); err != nil || !o.serve {
		return err
	}
	return a.stayDemo(ctx, c, s.Addresses())
}

// stayDemo makes conversations that are worth looking at, and serves them until ctx ends.
func (a *app) stayDemo(ctx context.Context, c *client.Client, at server.Addresses) error {
	if err := FillDemo(ctx, c); err != nil {
		return err
	}
	a.say("\nThe console: %s/console/\nThe agent there answers you: ask it for your order, or for a refund. Ctrl-C ends it.", at.HTTP)
	<-ctx.Done()
	return nil
}

func sampleSources() ([]cli.ImportSource, error) {
	entries, err := samples.ReadDir("samples")
	if err != nil {
		return nil, err
	}
	var out []cli.ImportSource
	for _, e := range entries {
		name := path.Join("samples", e.Name())
		out = append(out, cli.ImportSource{Name: name, Open: func() (io.ReadCloser, error) {
			raw, err := samples.ReadFile(name)
			return io.NopCloser(bytes.NewReader(raw)), err
		}})
	}
	return out, nil
}

// showDemo runs the steps of the demo.
func (a *app) showDemo(ctx context.Context, c *client.Client, at server.Addresses, sources []cli.ImportSource) error {
	a.say("A whole Skein runs in this process: NATS at %s, metrics at %s/metrics.", at.NATS, at.HTTP)
	a.say("Six conversations become threads. Their timelines, live:\n")
	sum, err := a.importAndTail(ctx, c, sources)
	if err != nil {
		return err
	}
	a.say("\nWhat was written: each turn one atomic commit, each commit on disk before it was acknowledged:\n")
	if err := a.PrintSummary(false, sum); err != nil {
		return err
	}
	c = c.WithMinSeq(sum.Seq) // read your writes
	list, err := a.demoThreads(ctx, c)
	if err != nil {
		return err
	}
	if err := a.demoTimeTravel(ctx, c, list); err != nil {
		return err
	}
	a.say("\nTo try next:\n" +
		"  skein serve                                    a persistent Skein, in ./skein-data\n" +
		"  export SKEIN_TENANT=acme\n" +
		"  skein thread create --key hello --title Hello\n" +
		"  skein item add key:hello 'Is anybody there?'\n" +
		"  skein tail --from start                        all events of all threads, past and new\n" +
		"  skein import FILE                              your own conversations, in the OpenAI chat format")
	return nil
}

// say prints a line. A write error shows when the output is flushed.
func (a *app) say(format string, args ...any) { _, _ = fmt.Fprintf(a.Out, format+"\n", args...) }

// demoLines limits how much of the timeline is printed.
const demoLines = 40

// importAndTail imports while it prints the timeline, and returns when the timeline has
// shown everything imported.
func (a *app) importAndTail(ctx context.Context, c *client.Client, sources []cli.ImportSource) (cli.ImportSummary, error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second) // a demo must end
	defer cancel()
	line, err := c.Timeline(ctx, client.SubscribeOptions{From: client.Now()})
	if err != nil {
		return cli.ImportSummary{}, err
	}
	defer line.Close()
	var sum cli.ImportSummary
	done := make(chan error, 1)
	go func() {
		var err error
		sum, err = cli.ImportConversations(ctx, c, sources, cli.ImportOptions{Parallel: 2})
		done <- err
	}()
	moving := make(chan events.Event)
	go func() {
		defer close(moving)
		for e, err := range line.All(ctx) {
			if err != nil {
				return
			}
			select {
			case moving <- e.Event:
			case <-ctx.Done():
				return
			}
		}
	}()
	colour, seen, imported := a.Colour(a.Out), 0, false
	for !imported || seen < sum.Events {
		select {
		case e, ok := <-moving:
			if !ok {
				return sum, context.Cause(ctx)
			}
			if seen++; seen <= demoLines {
				a.say("%s", cli.EventLine(&e, colour))
			}
		case err := <-done:
			if err != nil {
				return sum, err
			}
			imported = true
		}
	}
	if seen > demoLines {
		a.say("… and %d more events", seen-demoLines)
	}
	return sum, nil
}

// demoThreads lists the threads of the read model.
func (a *app) demoThreads(ctx context.Context, c *client.Client) (*events.ThreadList, error) {
	a.say("\nThe threads, from a read model that was folded from the log in the meantime:\n")
	list, err := client.Read(ctx, c, events.ListThreads{})
	if err != nil {
		return nil, err
	}
	t := a.Table("THREAD", "KEY", "STATUS", "VERSION", "ITEMS", "CHANGED")
	for i := range list.Threads {
		t.Thread(&list.Threads[i])
	}
	return list, t.Flush()
}

// demoTimeTravel shows the first listed thread at an early version.
func (a *app) demoTimeTravel(ctx context.Context, c *client.Client, list *events.ThreadList) error {
	if len(list.Threads) == 0 {
		return nil
	}
	now := &list.Threads[0]
	then, err := client.Read(ctx, c, events.GetThread{ThreadID: now.ID, At: &events.At{Version: new(max(1, now.Version/3))}})
	if err != nil {
		return err
	}
	a.say("\nTime travel: %s has %d items and is %s at version %d; at version %d it had %d and was %s.",
		cli.KeyOf(now), now.Items, now.Status, now.Version, then.Version, then.Items, then.Status)
	return nil
}
