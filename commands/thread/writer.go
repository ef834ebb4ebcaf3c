package thread

import (
	"cmp"
	"crypto/subtle"

	"github.com/skein-threads/skein/events"
)

// writer is the exclusive writer of a thread, or its last one. A hold expires without an event.
// The zero value means that there was none.
type writer struct {
	Holder string      `json:"holder"`
	Digest string      `json:"digest"` // of its token
	TTL    int64       `json:"ttl"`    // microseconds
	Until  events.Time `json:"until"`
}

// holds reports whether the writer holds the thread at a time. The times of a thread's events only
// grow, so at each position of the log at most one writer holds the thread, even if the clocks of
// processes differ.
func (w writer) holds(at events.Time) bool { return at < w.Until }

// has reports whether the token is the writer's.
func (w writer) has(token string) bool {
	return w.Digest != "" && subtle.ConstantTimeCompare([]byte(w.Digest), []byte(events.WriterDigest(token))) == 1
}

// heldBy returns the refusal of another writer's command.
func (w writer) heldBy(thread string) error {
	return w.refuse("thread %s is held by %s until %s; retry when it is free", thread, w.Holder, w.Until)
}

// lost returns the refusal of a command with a token that is not the current writer's.
func (w writer) lost(thread string, at events.Time) error {
	if w.holds(at) {
		return w.heldBy(thread)
	}
	return (writer{}).refuse("the writer's token of thread %s is not valid: its hold has ended; claim the thread again and read it before you write", thread)
}

func (w writer) refuse(format string, args ...any) error {
	e := events.Errorf(events.Held, format, args...)
	if w.Holder != "" {
		e.Details = &events.ErrorDetails{Holder: w.Holder, Until: w.Until.String()}
	}
	return e
}

// admits checks that the command's writer may change the thread.
func (s *State) admits(c *Command, at events.Time) error {
	switch {
	case c.Inside || !s.Exists() || c.passes():
		return nil
	case c.Writer == "":
		if s.Writer.holds(at) {
			return s.Writer.heldBy(c.ThreadID)
		}
		return nil
	case s.Writer.holds(at) && s.Writer.has(c.Writer):
		return nil
	}
	return s.Writer.lost(c.ThreadID, at)
}

// passes reports whether the command is executed even if another writer holds the thread: it
// concerns the hold itself, changes nothing that readers of the thread see, or erases the thread.
func (c *Command) passes() bool {
	if len(c.Parts) != 1 || c.Batch {
		return false
	}
	switch d := c.Parts[0].Data.(type) {
	case events.ClaimWriter, events.RenewWriter, events.ReleaseWriter, events.ResolveThread, events.CommandRejected, events.TouchState, events.ReleaseState,
		events.StartSession, events.CompleteSession:
		return true
	case events.DeleteThread:
		return d.Purge
	}
	return false
}

// claimWriter makes the caller the exclusive writer. The dispatcher generates the token: see
// Command.Token.
func (m *decider) claimWriter(d events.ClaimWriter) error {
	w, id := m.state.Writer, m.command.ThreadID
	if w.holds(m.at) {
		return w.refuse("Thread %s already has an exclusive reader-writer: %s, until %s; retry when it is free", id, w.Holder, w.Until)
	}
	if m.command.Token == "" {
		return events.Invalid("", "writer.claim answers with a token: send it as a request of its own, which is not submitted")
	}
	ttl := cmp.Or(d.TTLMs, events.DefaultWriterMs)
	m.emit(events.WriterClaimedType, id, "", events.WriterClaimed{
		Holder: d.Holder, TokenDigest: events.WriterDigest(m.command.Token), TTLMs: ttl, Until: (m.at + events.Time(ttl*1000)).String(),
	})
	return nil
}

// renewWriter extends the hold. Early renewals change nothing, so a hold costs at most three
// events per TTL, no matter how often its holder renews it.
func (m *decider) renewWriter(d events.RenewWriter) error {
	w, id := m.state.Writer, m.command.ThreadID
	switch {
	case !w.holds(m.at) || !w.has(d.Token):
		return w.lost(id, m.at)
	case int64(w.Until-m.at) > w.TTL*2/3:
		return nil
	}
	m.emit(events.WriterRenewedType, id, "", events.WriterRenewed{Until: (m.at + events.Time(w.TTL)).String()})
	return nil
}

// releaseWriter ends the hold; if it has ended, there is nothing to do.
func (m *decider) releaseWriter(d events.ReleaseWriter) error {
	w, id := m.state.Writer, m.command.ThreadID
	switch {
	case !w.holds(m.at):
		return nil
	case !w.has(d.Token):
		return w.heldBy(id)
	}
	m.emit(events.WriterReleasedType, id, "", events.WriterReleased{Holder: w.Holder})
	return nil
}

// Hold returns when the thread's hold ends, for the reply to its holder. It returns "" if the
// token does not belong to the last hold.
func (s *State) Hold(token string) (until string) {
	if !s.Writer.has(token) {
		return ""
	}
	return s.Writer.Until.String()
}

// evolveWriter applies an event of a writer.
func (s *State) evolveWriter(e *events.Event) {
	switch d := e.Data.(type) {
	case events.WriterClaimed:
		s.Writer = writer{Holder: d.Holder, Digest: d.TokenDigest, TTL: d.TTLMs * 1000, Until: timeOf(d.Until)}
	case events.WriterRenewed:
		s.Writer.Until = timeOf(d.Until)
	case events.WriterReleased:
		s.Writer = writer{}
	}
}

func (r preconditions) WriterClaimed(e *events.Event, d events.WriterClaimed) error {
	return firstFault(
		ofAggregate(e),
		unless(!r.state.Writer.holds(e.Time), "the thread is held by %.80q until %s", r.state.Writer.Holder, r.state.Writer.Until),
		unless(timeOf(d.Until) == e.Time+events.Time(d.TTLMs*1000), "it ends at %.40q, and not after %d ms", d.Until, d.TTLMs),
	)
}

func (r preconditions) WriterRenewed(e *events.Event, d events.WriterRenewed) error {
	w := r.state.Writer
	return firstFault(
		ofAggregate(e),
		unless(w.holds(e.Time), "nobody holds the thread"),
		unless(timeOf(d.Until) == e.Time+events.Time(w.TTL), "it ends at %.40q, and not after the time of the claim", d.Until),
	)
}

func (r preconditions) WriterReleased(e *events.Event, d events.WriterReleased) error {
	w := r.state.Writer
	return firstFault(
		ofAggregate(e),
		unless(w.holds(e.Time), "nobody holds the thread"),
		unless(d.Holder == w.Holder, "the thread is held by %.80q, and not by %.80q", w.Holder, d.Holder),
	)
}
