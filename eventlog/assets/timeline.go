package assets

import (
	"context"
	"slices"
	"strings"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/skein-threads/skein/eventlog/streams"
	"github.com/skein-threads/skein/events"
)

// The stream of the timeline takes the events of each entity on a subject of its own, and
// not everything below skein.timeline: chunks are republished there, and must not be stored
// a second time.

// TimelineMark is the type of the message with which a rebuild takes the timeline over. It
// is no event.
const TimelineMark = "timeline.rebuilt"

// timelineSubjects lists the subjects of the catalog's entities, and of the mark of a
// rebuild.
func timelineSubjects(n events.Names) []string {
	out := []string{timelineSubject(n, TimelineMark)}
	for _, r := range events.Catalog() {
		if s := timelineSubject(n, r.Type); !r.Transient && !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	slices.Sort(out)
	return out
}

// timelineSubject returns the subject of the stream that takes events of a type.
func timelineSubject(n events.Names, t events.Type) string {
	if entity := t.Entity(); entity != string(t) && entity != events.ChunkEmittedType.Entity() {
		t = events.Type(entity + ".>")
	}
	return n.Timeline("*", "*", t)
}

// ownsOnTimeline reports whether a subject is one that some version of Skein has given to the
// timeline: everything below it, as it once was, or the subject of some events.
func (s settings) ownsOnTimeline(subject string) bool {
	n := s.names
	t, ok := strings.CutPrefix(subject, n.Timeline("*", "*", ""))
	one := strings.TrimSuffix(t, ".>")
	plain := one != "" && !strings.ContainsAny(one, "*> \t\r\n")
	return ok && (subject == wholeTimeline(n) || plain && timelineSubject(n, events.Type(one+".x")) == subject ||
		plain && timelineSubject(n, events.Type(one)) == subject)
}

// wholeTimeline returns the subject of all events. It is not ">": asked for the last message
// of that, the server looks at the last sequence only, which may be deleted.
func wholeTimeline(n events.Names) string { return n.Timeline("*", "*", ">") }

// widened returns the subjects that the timeline is to take: the catalog's, and those that a
// newer Skein has given it.
func (s settings) widened(have, want []string) []string {
	out := slices.Clone(want)
	for _, subject := range have {
		if s.ownsOnTimeline(subject) && subject != wholeTimeline(s.names) && !slices.Contains(out, subject) {
			out = append(out, subject)
		}
	}
	slices.Sort(out)
	return out
}

// AdmitToTimeline makes the timeline's stream take the events of a commit whose entities the
// catalog does not know: a newer Skein has written them, and otherwise nothing would store
// them.
func AdmitToTimeline(ctx context.Context, conn *streams.Conn, c *events.Commit) error {
	names := conn.Config().Names
	for i := range c.Events {
		subject := timelineSubject(names, c.Events[i].Type)
		if _, known := events.Lookup(c.Events[i].Type); known || slices.Contains(timelineSubjects(names), subject) {
			continue
		}
		name := names.Stream(TimelineStream)
		stream, err := conn.JetStream().Stream(ctx, name)
		if err != nil {
			return streams.AssetFailed(name, err)
		}
		if err := widenTimeline(ctx, conn, stream.CachedInfo().Config, subject); err != nil {
			return streams.AssetFailed(name, err)
		}
	}
	return nil
}

// widenTimeline adds a subject to those that the timeline's stream takes.
func widenTimeline(ctx context.Context, conn *streams.Conn, config jetstream.StreamConfig, subject string) error {
	if slices.Contains(config.Subjects, subject) || slices.Contains(config.Subjects, wholeTimeline(conn.Config().Names)) {
		return nil
	}
	config.Subjects = append(config.Subjects, subject)
	slices.Sort(config.Subjects)
	_, err := conn.JetStream().UpdateStream(ctx, config)
	return err
}
