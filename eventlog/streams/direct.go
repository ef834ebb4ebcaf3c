package streams

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
	"github.com/skein-threads/skein/quota"
)

// Message is a message of a stream, as a direct get returns it.
type Message struct {
	Subject string // to keep it is not to keep Header
	Seq     uint64
	Header  nats.Header
	Data    []byte
	Pending uint64 // how many more match, of a range

	Archived bool // it comes from an object of archived commits
}

// GetRequest says which messages of a stream are wanted: the body of a direct get, or
// of a request to a leader.
type GetRequest struct {
	Seq      uint64     `json:"seq,omitzero"`
	Next     string     `json:"next_by_subj,omitzero"`
	Last     string     `json:"last_by_subj,omitzero"`
	Multi    []string   `json:"multi_last,omitempty"`
	Start    *time.Time `json:"start_time,omitempty"` // in place of Seq
	Batch    int        `json:"batch,omitzero"`
	MaxBytes int        `json:"max_bytes,omitzero"`
}

// most returns how many answers it can have, with the one that ends them.
func (q GetRequest) most() int {
	for _, subject := range q.Multi {
		if strings.ContainsAny(subject, "*>") {
			return inboxDepth
		}
	}
	return min(max(len(q.Multi), q.Batch, 1)+1, inboxDepth)
}

// ErrTooMany says that more keys match than one direct get can return (1,024).
var ErrTooMany = errors.New("more than 1,024 keys match")

// ReadTimeout bounds one direct get: the server never answers some bad requests.
const ReadTimeout = 5 * time.Second

// Direct asks a stream for messages, in the order of their sequences. A replica that
// lags may answer. It retries as [Config.Patience] says.
func (c *Conn) Direct(ctx context.Context, stream string, q GetRequest) ([]Message, error) {
	out, _, err := c.directUpTo(ctx, stream, q)
	return out, err
}

// directUpTo does the same, and returns how far the replica that answered had got, if it
// was asked for the last messages of subjects and has some.
func (c *Conn) directUpTo(ctx context.Context, stream string, q GetRequest) (out []Message, upTo uint64, err error) {
	if c.isRotten(stream) && c.counts(ctx, q) {
		out, err = c.oneByOne(ctx, stream, q)
		return out, 0, err
	}
	body, err := json.Marshal(q)
	if err != nil {
		return nil, 0, err
	}
	err = quota.Read(ctx, func() (messages, bytes int, err error) {
		err = c.untilAnswered(ctx, stream, q, func(within time.Duration) (err error) {
			var incomplete *IncompleteError
			for range incompleteTries {
				out, upTo, err = c.directOnce(ctx, stream, q, body, within)
				if !errors.As(err, &incomplete) || incomplete.found && c.isUnreadable(stream) {
					return err
				}
			}
			if several, err := c.Replicated(ctx); incomplete.found && err == nil && !several { // another copy may be readable
				c.unreadable.Store(stream, time.Now())
			}
			return err
		})
		for i := range out {
			bytes += len(out[i].Data)
		}
		return len(out), bytes, err
	}, func() { out = nil })
	if err != nil {
		return nil, 0, err
	}
	return out, upTo, nil
}

// foundUnreadable is what the server says in place of "No Results" where it knows the last
// message of a subject, and cannot read it.
const foundUnreadable = "Message Not Found"

func (c *Conn) directOnce(ctx context.Context, stream string, q GetRequest, body []byte, within time.Duration) (out []Message, upTo uint64, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, within, &SilentError{Stream: stream, Seq: q.Seq, Waited: within})
	defer cancel()
	many, last := q.Batch > 0 || len(q.Multi) > 0, uint64(0) // last: the sequence of the answer before
	err = c.inbox.ask(ctx, c.cfg.API+".DIRECT.GET."+stream, body, q.most(), func(m *nats.Msg) (bool, error) {
		status := m.Header.Get("Status")
		if many && (status == "" || status == "204") && m.Header.Get(nats.JSLastSequence) != strconv.FormatUint(last, 10) {
			return true, &IncompleteError{Stream: stream, Seq: q.Seq, Last: last}
		}
		switch status {
		case "":
		case "204":
			upTo, _ = strconv.ParseUint(m.Header.Get("Nats-UpTo-Sequence"), 10, 64)
			return true, nil
		case "404":
			if len(out) > 0 || len(q.Multi) > 0 && m.Header.Get("Description") == foundUnreadable { // the server found a message, and could not read it
				return true, &IncompleteError{Stream: stream, Seq: q.Seq, Last: last, found: len(out) == 0}
			}
			return true, nil
		case "413":
			return true, ErrTooMany
		case "503":
			return true, fmt.Errorf("stream %s: %w", stream, nats.ErrNoResponders)
		case "500": // of a damaged compressed block
			return true, &UnreadableError{Stream: stream, Seq: q.Seq, Cause: errors.New(m.Header.Get("Description"))}
		default:
			return true, fmt.Errorf("stream %s refused a read: %s %s", stream, status, m.Header.Get("Description"))
		}
		got, err := message(m)
		out, last = append(out, got), got.Seq
		return err == nil && q.Batch <= 1 && len(q.Multi) == 0, err
	})
	return out, upTo, err
}

// IncompleteError says that of the answers to one read some are missing, in each of several
// tries: they were lost on the way, or the server cannot read a message. What was read is
// not used.
type IncompleteError struct {
	Stream string
	Seq    uint64 // from which on was read
	Last   uint64 // the last answer before the gap; 0: the first is missing

	found bool // the server has said so itself: it found the message, and could not read it
}

func (e *IncompleteError) Error() string {
	if e.Seq == 0 {
		return fmt.Sprintf("stream %s: the last message of a subject cannot be read; "+
			"read again, and if it stays so, skein store check on the server's machine says what is damaged", e.Stream)
	}
	return fmt.Sprintf("stream %s: of the answers to a read from sequence %d on those after sequence %d are missing; "+
		"read again, and if it stays so, skein store check on the server's machine says what is damaged", e.Stream, e.Seq, e.Last)
}

// As implements the method that errors.As looks for: what the server found and could not read is to
// clients [events.Unreadable]. Answers that were lost may come the next time.
func (e *IncompleteError) As(target any) bool {
	return e.found && asRefusal(target, e.Stream, e.Seq, e)
}

// incompleteTries is how often a read is tried whose answers are incomplete: one that was
// lost on the way is not lost again. What the server found and could not read is tried so often once
// a minute for each stream: for each try it reads, and unpacks, the whole block.
const incompleteTries = 3

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

// As implements the method that errors.As looks for: to clients it is [events.Unreadable].
func (e *UnreadableError) As(target any) bool { return asRefusal(target, e.Stream, e.Seq, e) }

// asRefusal sets a target of errors.As to the refusal of what cannot be read, if it is one.
func asRefusal(target any, stream string, from uint64, cause error) bool {
	refusal, ok := target.(**events.Error)
	if ok {
		*refusal = events.Unreadable(stream, int64(max(from, 1)), cause)
	}
	return ok
}

// Unread reports whether an error says that a stream cannot be read although it answers, and from
// which sequence on.
func Unread(err error) (stream string, from uint64, unread bool) {
	var unreadable *UnreadableError
	var incomplete *IncompleteError
	var silent *SilentError
	switch {
	case errors.As(err, &unreadable):
		return unreadable.Stream, unreadable.Seq, true
	case errors.As(err, &incomplete):
		return incomplete.Stream, incomplete.Seq, true
	case errors.As(err, &silent) && silent.Others:
		return silent.Stream, silent.Seq, true
	}
	return "", 0, false
}

func message(m *nats.Msg) (Message, error) {
	seq, err := strconv.ParseUint(m.Header.Get("Nats-Sequence"), 10, 64)
	if err != nil {
		return Message{}, fmt.Errorf("an answer without a sequence: %w", err)
	}
	pending, _ := strconv.ParseUint(m.Header.Get("Nats-Num-Pending"), 10, 64)
	subject := strings.Clone(m.Header.Get("Nats-Subject")) // else a part of the string of all headers
	return Message{Subject: subject, Seq: seq, Header: m.Header, Data: m.Data, Pending: pending}, nil
}

// Bounds of one read of a stream, so that it is never held in memory whole.
const (
	BatchMessages = 512
	BatchBytes    = 4 << 20
)

// Messages reads the messages of a stream that match a subject, from a sequence on, in
// order, up to its present end.
func (c *Conn) Messages(ctx context.Context, name, subject string, from uint64) iter.Seq2[Message, error] {
	return func(yield func(Message, error) bool) { c.messages(ctx, c.Scan(name, subject), from, yield) }
}

// messages yields what a scan reads from a sequence on.
func (c *Conn) messages(ctx context.Context, s *Scan, from uint64, yield func(Message, error) bool) {
	for {
		got, err := s.Batch(ctx, from)
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
		more, err := c.More(ctx, s.stream, s.subject, from)
		if err != nil {
			yield(Message{}, err)
		}
		if err != nil || !more {
			return
		}
	}
}

// noneLeft returns an error if a stream has messages that match a subject from a sequence on although
// a read of them found none: the server answers so if it cannot read the block that they are in.
func (c *Conn) noneLeft(ctx context.Context, name, subject string, from uint64) error {
	q := GetRequest{Multi: []string{subject}}
	if strings.ContainsAny(subject, "*>") {
		if end, err := c.LastSeq(ctx, name); err != nil || end < from {
			return err
		}
		q = GetRequest{Last: subject} // for which the server looks at each subject
	}
	last, err := c.Direct(ctx, name, q)
	if err != nil || len(last) == 0 || last[0].Seq < from {
		return err
	}
	if several, err := c.Replicated(ctx); err != nil || several || c.ReadOnly() { // another copy may have more
		return err
	}
	// It may have been stored between the two reads.
	got, err := c.Direct(ctx, name, GetRequest{Seq: max(from, 1), Next: subject, Batch: 1})
	if err != nil || len(got) > 0 {
		return err
	}
	if cause := c.cfg.Damage(name, from, last[0].Seq); cause != nil {
		return &UnreadableError{Stream: name, Seq: from, Cause: cause}
	}
	return &IncompleteError{Stream: name, Seq: from, Last: max(from, 1) - 1}
}
