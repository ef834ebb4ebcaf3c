package eventlog

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go"

	"github.com/skein-threads/skein/events"
)

// Message is a message of a stream, as a direct get gives it.
type Message struct {
	Subject string
	Seq     uint64
	Header  nats.Header
	Data    []byte
	Pending uint64 // how many more match, of a range

	Archived bool // it comes from an object of archived commits
}

// getRequest is the body of a direct get.
type getRequest struct {
	Seq      uint64     `json:"seq,omitzero"`
	Next     string     `json:"next_by_subj,omitzero"`
	Last     string     `json:"last_by_subj,omitzero"`
	Multi    []string   `json:"multi_last,omitempty"`
	Start    *time.Time `json:"start_time,omitempty"` // in place of Seq
	Batch    int        `json:"batch,omitzero"`
	MaxBytes int        `json:"max_bytes,omitzero"`
}

// most gives how many answers it can have, with the one that ends them.
func (q getRequest) most() int {
	for _, subject := range q.Multi {
		if strings.ContainsAny(subject, "*>") {
			return inboxDepth
		}
	}
	return min(max(len(q.Multi), q.Batch, 1)+1, inboxDepth)
}

// ErrTooMany says that more keys match than one direct get can give (1,024).
var ErrTooMany = errors.New("more than 1,024 keys match")

// directTimeout bounds one direct get; the server answers some bad requests not
// at all.
const directTimeout = 5 * time.Second

// direct asks a stream for messages, in the order of their sequences.
func (l *Log) direct(ctx context.Context, stream string, q getRequest) ([]Message, error) {
	out, _, err := l.directUpTo(ctx, stream, q)
	return out, err
}

// directUpTo does the same, and gives how far the copy of the stream had got that
// answered, if it was asked for the last messages of subjects and has some. It asks
// again as [Config.Patience] says.
func (l *Log) directUpTo(ctx context.Context, stream string, q getRequest) (out []Message, upTo uint64, err error) {
	body, err := json.Marshal(q)
	if err != nil {
		return nil, 0, err
	}
	err = l.untilAnswered(ctx, stream, q.Seq, func(within time.Duration) (err error) {
		out, upTo, err = l.directOnce(ctx, stream, q, body, within)
		return err
	})
	return out, upTo, err
}

func (l *Log) directOnce(ctx context.Context, stream string, q getRequest, body []byte, within time.Duration) (out []Message, upTo uint64, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, within, &SilentError{Stream: stream, Seq: q.Seq, Waited: within})
	defer cancel()
	err = l.inbox.ask(ctx, l.cfg.API+".DIRECT.GET."+stream, body, q.most(), func(m *nats.Msg) (bool, error) {
		switch status := m.Header.Get("Status"); status {
		case "":
		case "204", "404":
			upTo, _ = strconv.ParseUint(m.Header.Get("Nats-UpTo-Sequence"), 10, 64)
			return true, nil
		case "413":
			return true, ErrTooMany
		case "503":
			return true, fmt.Errorf("stream %s: %w", stream, nats.ErrNoResponders)
		default:
			return true, fmt.Errorf("stream %s refused a read: %s %s", stream, status, m.Header.Get("Description"))
		}
		got, err := message(m)
		out = append(out, got)
		return err == nil && q.Batch <= 1 && len(q.Multi) == 0, err
	})
	return out, upTo, err
}

// UnreadableError says that the server cannot read what it has stored.
type UnreadableError struct {
	Stream string
	Seq    uint64 // from which on was read
	Cause  error
}

func (e *UnreadableError) Error() string {
	return fmt.Sprintf("reading stream %s from sequence %d on: %v", e.Stream, e.Seq, e.Cause)
}

func (e *UnreadableError) Unwrap() error { return e.Cause }

func message(m *nats.Msg) (Message, error) {
	seq, err := strconv.ParseUint(m.Header.Get("Nats-Sequence"), 10, 64)
	if err != nil {
		return Message{}, fmt.Errorf("an answer without a sequence: %w", err)
	}
	pending, _ := strconv.ParseUint(m.Header.Get("Nats-Num-Pending"), 10, 64)
	return Message{Subject: m.Header.Get("Nats-Subject"), Seq: seq, Header: m.Header, Data: m.Data, Pending: pending}, nil
}

// decode reads a message of the log. The error is a *events.BrokenError.
func (l *Log) decode(subject string, seq uint64, header nats.Header, data []byte) (*events.Commit, error) {
	tenant, aggregate, ok := l.cfg.Names.ParseLog(subject)
	version, err := strconv.ParseInt(header.Get(events.HeaderVersion), 10, 64)
	if !ok || err != nil {
		return nil, &events.BrokenError{Tenant: tenant, Thread: aggregate, Seq: seq, Cause: fmt.Errorf("subject %q, header %s %q",
			subject, events.HeaderVersion, header.Get(events.HeaderVersion))}
	}
	return events.DecodeCommit(tenant, aggregate, seq, version, header.Get(events.HeaderChain), data)
}

// Get reads the commit with that sequence. Nil if there is none (any more): the
// leader is asked before that is said.
func (l *Log) Get(ctx context.Context, seq uint64) (*events.Commit, error) {
	if seq == 0 {
		return nil, nil
	}
	got, err := l.direct(ctx, l.cfg.Names.Stream(LogStream), getRequest{Seq: seq})
	if err != nil {
		return nil, err
	}
	if len(got) == 0 || got[0].Seq != seq {
		c, err := l.ofLeader(ctx, getRequest{Seq: seq})
		if c == nil && err == nil { // the server says so too of what it cannot read
			if cause := l.cfg.Damage(l.cfg.Names.Stream(LogStream), seq, seq); cause != nil {
				return nil, &UnreadableError{Stream: l.cfg.Names.Stream(LogStream), Seq: seq, Cause: cause}
			}
		}
		return c, err
	}
	return l.decode(got[0].Subject, got[0].Seq, got[0].Header, got[0].Data)
}

// Last reads the last commit of an aggregate, on a cluster from the leader. Nil
// if it has none.
func (l *Log) Last(ctx context.Context, tenant, aggregate string) (*events.Commit, error) {
	several, err := l.replicated(ctx)
	switch {
	case err != nil:
		return nil, err
	case several:
		return l.Newest(ctx, tenant, aggregate)
	}
	got, err := l.direct(ctx, l.cfg.Names.Stream(LogStream), getRequest{Multi: []string{l.cfg.Names.Log(tenant, aggregate)}})
	if err != nil || len(got) == 0 {
		return nil, err
	}
	return l.decode(got[0].Subject, got[0].Seq, got[0].Header, got[0].Data)
}

// threadBatch bounds one read of a thread, so that a long thread is never held
// in memory whole.
const (
	threadBatch = 512
	threadBytes = 4 << 20
)

// Thread reads the commits of an aggregate from a sequence on, in order, those
// that are archived too. It ends at the last one. A commit that cannot be read is a
// *events.BrokenError, and commits that cannot be read from their archive are an
// *ArchiveError; what follows is still given.
func (l *Log) Thread(ctx context.Context, tenant, aggregate string, from uint64) iter.Seq2[*events.Commit, error] {
	return func(yield func(*events.Commit, error) bool) {
		for m, err := range l.through(ctx, tenant, aggregate, from) {
			if err == nil {
				if !yield(l.Decode(m)) {
					return
				}
			} else if !yield(nil, err) {
				return
			}
		}
	}
}

// Since reads the commits of an aggregate that were stored at a time or later, as
// Thread does.
func (l *Log) Since(ctx context.Context, tenant, aggregate string, at time.Time) iter.Seq2[*events.Commit, error] {
	return func(yield func(*events.Commit, error) bool) {
		first, err := l.ofLeader(ctx, getRequest{Next: l.cfg.Names.Log(tenant, aggregate), Start: &at})
		if err != nil {
			yield(nil, err)
		}
		if err != nil || first == nil {
			return
		}
		for c, err := range l.Thread(ctx, tenant, aggregate, first.Seq) {
			if !yield(c, err) {
				return
			}
		}
	}
}

// Raw reads the messages of the log that match a subject from a sequence on, as
// they are stored, those that are archived too: for whoever must see what cannot be
// decoded. The subject is of one aggregate, or names.Log with "*" for all of a
// tenant, or of all tenants.
func (l *Log) Raw(ctx context.Context, subject string, from uint64) iter.Seq2[Message, error] {
	tenant, aggregate, ok := l.cfg.Names.ParseLog(subject)
	switch {
	case !ok: // skein.log.>
		return l.merged(ctx, "*", from)
	case aggregate == "*":
		return l.merged(ctx, tenant, from)
	}
	return l.through(ctx, tenant, aggregate, from)
}

// Stored reads what Raw reads, but only what the log itself holds.
func (l *Log) Stored(ctx context.Context, subject string, from uint64) iter.Seq2[Message, error] {
	return l.stream(ctx, l.cfg.Names.Stream(LogStream), subject, from)
}

// Messages reads all that a stream has, in order, up to its present end.
func (l *Log) Messages(ctx context.Context, stream string) iter.Seq2[Message, error] {
	return l.stream(ctx, stream, ">", 1)
}

// ReadOnly reports whether the log is seen by way of another account, as auditors
// see it: then it can be read by direct gets, and no consumer can be made.
func (l *Log) ReadOnly() bool { return l.cfg.API != ownAPI }

// Decode reads a message that Raw gave. The error is a *events.BrokenError.
func (l *Log) Decode(m Message) (*events.Commit, error) {
	return l.decode(m.Subject, m.Seq, m.Header, m.Data)
}

// stream reads the messages of a stream that match a subject, in order, up to
// its present end.
func (l *Log) stream(ctx context.Context, name, subject string, from uint64) iter.Seq2[Message, error] {
	return func(yield func(Message, error) bool) {
		for s := l.scan(name, subject); ; {
			got, err := s.batch(ctx, from)
			if err != nil {
				yield(Message{}, err)
				return
			}
			for _, m := range got {
				if !yield(m, nil) {
					return
				}
				from = m.Seq + 1
			}
			if len(got) > 0 && got[len(got)-1].Pending > 0 {
				continue
			}
			more, err := l.more(ctx, name, subject, from)
			if err != nil {
				yield(Message{}, err)
			}
			if err != nil || !more {
				return
			}
		}
	}
}
