package eventlog

import (
	"context"
	"slices"
	"strings"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/skein-threads/skein/eventlog/streams"
	"github.com/skein-threads/skein/events"
)

// The stream of the timeline takes the events of each entity on a subject of
// its own, and not all that is below skein.timeline: chunks are republished
// there, and are not to be stored a second time.

// timelineSubjects lists the subjects of the catalog's entities, and of the mark
// of a rebuilding.
func timelineSubjects(n events.Names) []string {
	out := []string{timelineSubject(n, markType)}
	for _, r := range events.Catalog() {
		if s := timelineSubject(n, r.Type); !r.Transient && !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	slices.Sort(out)
	return out
}

// timelineSubject gives the subject of the stream that takes events of a type.
func timelineSubject(n events.Names, t events.Type) string {
	if entity := t.Entity(); entity != string(t) && entity != events.ChunkEmittedType.Entity() {
		t = events.Type(entity + ".>")
	}
	return n.Timeline("*", "*", t)
}

// ofTimeline reports whether a subject is one that a Skein has given the
// timeline: all that is below it, as it once was, or those of some events.
func (l *Log) ofTimeline(subject string) bool {
	n := l.cfg.Names
	t, ok := strings.CutPrefix(subject, n.Timeline("*", "*", ""))
	one := strings.TrimSuffix(t, ".>")
	plain := one != "" && !strings.ContainsAny(one, "*> \t\r\n")
	return ok && (subject == allTimeline(n) || plain && timelineSubject(n, events.Type(one+".x")) == subject ||
		plain && timelineSubject(n, events.Type(one)) == subject)
}

func allTimeline(n events.Names) string { return n.Timeline("*", "*", ">") }

// widened gives the subjects that the timeline is to take: the catalog's, and
// those that a newer Skein has given it.
func (l *Log) widened(have, want []string) []string {
	out := slices.Clone(want)
	for _, s := range have {
		if l.ofTimeline(s) && s != allTimeline(l.cfg.Names) && !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	slices.Sort(out)
	return out
}

// admit makes the timeline take the events of a commit of which the catalog
// does not know the entity: a newer Skein has written them, and nothing would
// store them otherwise.
func (l *Log) admit(ctx context.Context, c *events.Commit) error {
	for i := range c.Events {
		subject := timelineSubject(l.cfg.Names, c.Events[i].Type)
		if _, known := events.Lookup(c.Events[i].Type); known || slices.Contains(timelineSubjects(l.cfg.Names), subject) {
			continue
		}
		name := l.cfg.Names.Stream(TimelineStream)
		stream, err := l.conn.JetStream().Stream(ctx, name)
		if err != nil {
			return streams.AssetFailed(name, err)
		}
		if err := l.widen(ctx, stream.CachedInfo().Config, subject); err != nil {
			return streams.AssetFailed(name, err)
		}
	}
	return nil
}

func (l *Log) widen(ctx context.Context, config jetstream.StreamConfig, subject string) error {
	if slices.Contains(config.Subjects, subject) || slices.Contains(config.Subjects, allTimeline(l.cfg.Names)) {
		return nil
	}
	config.Subjects = append(config.Subjects, subject)
	slices.Sort(config.Subjects)
	_, err := l.conn.JetStream().UpdateStream(ctx, config)
	return err
}
