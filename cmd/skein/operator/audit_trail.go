package operator

import (
	"context"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"

	"github.com/skein-threads/skein/audit"
	"github.com/skein-threads/skein/cmd/skein/cli"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/eventtext"
)

func (a *app) auditTrail() *cobra.Command {
	r := &remote{}
	var o audit.TrailOptions
	var types []string
	cmd := &cobra.Command{
		Use: "trail THREAD", Short: "Show who did what to a thread, when and why, and what changed", Args: cobra.ExactArgs(1),
		Long: "Show each event of a thread with its actor, its command, its cause, and the state before and after it.\n" +
			"The log stores a command's id; its name is shown where its events imply it.",
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := r.NeedTenant(); err != nil {
				return err
			}
			for _, t := range types {
				o.Types = append(o.Types, events.Type(t))
			}
			return a.trail(cmd.Context(), r, args[0], o)
		},
	}
	r.logFlags(cmd)
	r.domainFlag(cmd)
	f := cmd.Flags()
	f.StringVar(&o.Actor, "actor", "", "only what this actor did")
	f.StringSliceVar(&types, "type", nil, "only these events: item.created, or item.* for all of an entity (repeatable)")
	f.StringVar(&o.Execution, "execution", "", "only events of this execution")
	f.Int64Var(&o.From, "from", 0, "only from this version of the thread on")
	f.Int64Var(&o.To, "to", 0, "only up to this version of the thread")
	return cmd
}

func (a *app) trail(ctx context.Context, r *remote, ref string, o audit.TrailOptions) error {
	log, closeLog, err := r.openLog()
	if err != nil {
		return err
	}
	defer closeLog()
	id, err := audit.ResolveThread(ctx, log, r.Tenant, ref)
	if err != nil {
		return err
	}
	return audit.Trail(ctx, log, r.Tenant, id, o, func(e audit.TrailEntry) error {
		if r.JSON {
			return a.PrintJSON(e)
		}
		_, err := fmt.Fprint(a.Out, trailText(e))
		return err
	})
}

// trailText formats an entry of a trail, on a few lines.
func trailText(e audit.TrailEntry) string {
	var b strings.Builder
	if e.Broken != "" {
		fmt.Fprintf(&b, "commit %d cannot be read: %s\n", e.Seq, eventtext.Printable(e.Broken, false))
		return b.String()
	}
	fmt.Fprintf(&b, "%d  %s  %s  %s\n", e.Version, cli.Local(e.Time), e.Type, eventtext.Line(e.Happened))
	line := func(name, text string) {
		if text != "" {
			fmt.Fprintf(&b, "    %-9s %s\n", name, eventtext.Printable(text, false))
		}
	}
	line("actor", e.Actor)
	if c := e.Command; c != nil {
		text := c.ID
		if c.Name != "" {
			text = c.Name + " " + text
		}
		if c.Index > 0 {
			text += fmt.Sprintf(", number %d of a thread.commit", c.Index)
		}
		line("command", text)
	}
	if c := e.Cause; c != nil {
		text := "event " + c.Event
		if c.Type != "" {
			text = fmt.Sprintf("%s, version %d", c.Type, c.Version)
		}
		line("cause", text)
	}
	line("execution", e.Execution)
	if e.Move != nil {
		line("moved", e.Move.Entity+": "+e.Move.From+" → "+e.Move.To)
		line("reason", e.Move.Reason)
	}
	for _, c := range e.Changes {
		changeText(&b, "    ", c)
	}
	return b.String()
}

// changeText formats the change of a document.
func changeText(b *strings.Builder, indent string, c audit.TrailChange) {
	name := strings.TrimSpace(c.Model + " " + c.ID)
	switch c.What {
	case audit.Added:
		fmt.Fprintf(b, "%s+ %s  %s\n", indent, name, eventtext.Brief(string(c.After), eventtext.Width))
	case audit.Removed:
		fmt.Fprintf(b, "%s- %s  %s\n", indent, name, eventtext.Brief(string(c.Before), eventtext.Width))
	}
	for _, f := range c.Fields {
		fmt.Fprintf(b, "%s~ %s %s  %s\n", indent, name, eventtext.Printable(f.Path, false), fieldText(f))
	}
}

// fieldText formats a field before and after: of an edited text, what was removed and
// inserted, with a little context.
func fieldText(f audit.TrailField) string {
	switch {
	case f.Before == nil:
		return "+ " + eventtext.Brief(eventtext.Plain(f.After), eventtext.Width)
	case f.After == nil:
		return "- " + eventtext.Brief(eventtext.Plain(f.Before), eventtext.Width)
	case jsontext.Value(f.Before).Kind() == '"' && jsontext.Value(f.After).Kind() == '"' && len(f.Before)+len(f.After) > eventtext.Width/2:
		return edited(f.Before, f.After)
	}
	return eventtext.Brief(eventtext.Plain(f.Before), eventtext.Width) + " → " + eventtext.Brief(eventtext.Plain(f.After), eventtext.Width)
}

// edited formats an edit of a text: …before [-removed-]{+inserted+} after…
func edited(before, after events.JSON) string {
	const around = 16
	was, is := []rune(eventtext.Plain(before)), []rune(eventtext.Plain(after))
	head := 0
	for head < min(len(was), len(is)) && was[head] == is[head] {
		head++
	}
	tail := 0
	for tail < min(len(was), len(is))-head && was[len(was)-1-tail] == is[len(is)-1-tail] {
		tail++
	}
	var b strings.Builder
	if head > around {
		b.WriteString("…")
	}
	b.WriteString(string(was[max(0, head-around):head]))
	if out := was[head : len(was)-tail]; len(out) > 0 {
		b.WriteString("[-" + eventtext.Brief(string(out), eventtext.Width) + "-]")
	}
	if in := is[head : len(is)-tail]; len(in) > 0 {
		b.WriteString("{+" + eventtext.Brief(string(in), eventtext.Width) + "+}")
	}
	rest := was[len(was)-tail:]
	b.WriteString(string(rest[:min(len(rest), around)]))
	if len(rest) > around {
		b.WriteString("…")
	}
	return eventtext.Printable(b.String(), false)
}
