package audit

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/skein-threads/skein/eventlog/streams"
	"github.com/skein-threads/skein/events"
)

// expectedHeader is the condition under which a commit was written: the sequence of the
// previous commit in the log, 0 if there was none. The server has checked it.
const expectedHeader = "Nats-Expected-Last-Subject-Sequence"

// knownHeader reports whether a message of the log may have a header: those of a commit, those
// that the appender sends to the server, and those with which the server replies to a read.
func knownHeader(name string) bool {
	switch name {
	case events.HeaderVersion, events.HeaderChain, events.HeaderType, expectedHeader,
		"Nats-Batch-Id", "Nats-Batch-Sequence", "Nats-Batch-Commit",
		nats.JSStream, nats.JSSequence, nats.JSTimeStamp, nats.JSSubject, nats.JSLastSequence, "Nats-Num-Pending", "Nats-UpTo-Sequence":
		return true
	}
	return false
}

// clockAhead is how far the clock of a process may be ahead of the server's before the audit
// reports it.
const clockAhead = 24 * time.Hour

// message checks the parts of a message of the log other than the events of its commit.
func (v *verifier) message(ctx context.Context, m streams.Message, c *events.Commit, first bool) error {
	for _, name := range slices.Sorted(maps.Keys(m.Header)) {
		switch values := m.Header[name]; {
		case !knownHeader(name):
			v.find(v.judge.place(KindHeader, m.Seq, fmt.Sprintf("it has the header %.80q, which Skein does not write", name)))
		case len(values) != 1:
			v.find(v.judge.place(KindHeader, m.Seq, fmt.Sprintf("it has the header %s %d times", name, len(values))))
		}
	}
	if text := m.Header.Get(events.HeaderVersion); text != strconv.FormatInt(c.Version, 10) {
		v.find(v.judge.place(KindHeader, m.Seq, fmt.Sprintf("its header %s is %.40q; Skein writes %d", events.HeaderVersion, text, c.Version)))
	}
	if text := m.Header.Get(events.HeaderType); text != events.BatchContentType {
		v.find(v.judge.place(KindHeader, m.Seq, fmt.Sprintf("its header %s is %.80q, not %s", events.HeaderType, text, events.BatchContentType)))
	}
	v.ahead(m, c)
	if first && c.First() > 0 && tombstone(c) {
		return v.erasedBefore(ctx, m)
	}
	return nil
}

// ahead reports the first event of a thread whose time is after the log stored it. Later
// events continue from that time.
func (v *verifier) ahead(m streams.Message, c *events.Commit) {
	stored, err := time.Parse(time.RFC3339Nano, m.Header.Get(nats.JSTimeStamp))
	if err != nil {
		return
	}
	for i := range c.Events {
		e := &c.Events[i]
		if !e.Time.Go().After(stored.Add(clockAhead)) || v.judge.ahead {
			continue
		}
		v.judge.ahead = true
		f := v.judge.place(KindTime, m.Seq, fmt.Sprintf("it claims to have happened at %s, but the log stored it at %s", e.Time, stored.UTC().Format(time.RFC3339)))
		f.Event = e.ID
		v.find(f)
	}
}

// erasedBefore checks a tombstone with nothing before it: the commit on condition of which it
// was written must be erased. An imported one was written on condition that there was none.
func (v *verifier) erasedBefore(ctx context.Context, m streams.Message) error {
	before, err := strconv.ParseUint(m.Header.Get(expectedHeader), 10, 64)
	switch {
	case err != nil || before >= m.Seq:
		v.find(v.judge.place(KindLink, m.Seq, "it is the tombstone of a thread of which the log never held anything"))
		return nil
	case before == 0:
		return nil
	}
	for other, err := range v.log.Stored(ctx, v.log.Config().Names.Log("*", "*"), before) {
		if err != nil {
			return fmt.Errorf("read commit %d: %w", before, err)
		}
		if other.Seq == before {
			v.find(v.judge.place(KindLink, m.Seq, fmt.Sprintf("it is the tombstone of a thread whose last commit was %d, which is one of another thread", before)))
		}
		break
	}
	return nil
}
