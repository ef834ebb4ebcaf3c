package streams

import (
	"context"
	"slices"
	"strings"
)

// filter returns the filter to ask the server for: ">" if every message of the stream
// matches the subject. With each batch of a read the server counts what else matches,
// and goes through all subjects for it unless the filter is ">": then it adds up what it
// knows of its blocks.
func (c *Conn) filter(stream, subject string) string {
	bucket, isBucket := strings.CutPrefix(stream, "KV_")
	if subject == c.cfg.Names.Log("*", "*") || subject == c.cfg.Names.Timeline("*", "*", ">") || isBucket && subject == KeyPrefix(bucket)+">" {
		return ">"
	}
	return subject
}

// Scan reads a stream in batches.
type Scan struct {
	conn            *Conn
	stream, subject string
	filter          string // what the server is asked for
	wide            bool   // it is more than what is wanted
	size            int    // how many messages the next batch may have
}

// firstBatch is how many messages the first batch of a scan has; each next one has four times as
// many, up to BatchMessages. Many reads end after a few messages, such as those of a page of events.
const firstBatch = 32

// Scan begins to read the messages of a stream that match a subject.
func (c *Conn) Scan(stream, subject string) *Scan {
	return &Scan{conn: c, stream: stream, subject: subject, filter: c.filter(stream, subject), size: firstBatch}
}

// scanWorth is what reading a message costs, in messages that the server counts in
// that time, times those that a batch has: 10 us, of 0.1 us each.
const scanWorth = 100 * BatchMessages

// Batch reads the next messages that match, from a sequence on; none: that replica of
// the stream has no more. The error is an *UnreadableError or an *IncompleteError if it has more, and
// cannot read the next one.
func (s *Scan) Batch(ctx context.Context, from uint64) ([]Message, error) {
	for {
		got, err := s.conn.Direct(ctx, s.stream, GetRequest{Seq: max(from, 1), Next: s.filter, Batch: s.size, MaxBytes: BatchBytes})
		if err != nil {
			return nil, err
		}
		if len(got) == 0 {
			return nil, s.conn.noneLeft(ctx, s.stream, s.subject, from)
		}
		s.size = min(4*s.size, BatchMessages)
		last := got[len(got)-1]
		if !s.wide {
			return got, s.widen(ctx, last.Pending)
		}
		got = slices.DeleteFunc(got, func(m Message) bool { return !subjectMatches(s.subject, m.Subject) })
		if len(got) > 0 || last.Pending == 0 {
			return got, nil
		}
		from = last.Seq + 1
	}
}

// widen makes the scan read all of the stream from here on, and leave out what does not
// match, if that is less work: for each batch the server counts what else matches, so
// that n messages of a tenant that has most of the stream cost it n times n.
func (s *Scan) widen(ctx context.Context, left uint64) error {
	if s.filter == ">" || !strings.ContainsAny(s.filter, "*>") || left <= s.conn.scanWorth {
		return nil
	}
	stream, err := s.conn.js.Stream(ctx, s.stream)
	if err != nil {
		return err
	}
	if msgs := stream.CachedInfo().State.Msgs; left*left/s.conn.scanWorth > msgs-min(left, msgs) {
		s.filter, s.wide = ">", true
	}
	return nil
}

// subjectMatches reports whether a subject is one of a pattern's.
func subjectMatches(pattern, subject string) bool {
	want, have := strings.Split(pattern, "."), strings.Split(subject, ".")
	for i, token := range want {
		switch {
		case token == ">" && i < len(have):
			return true
		case i >= len(have) || token != "*" && token != have[i]:
			return false
		}
	}
	return len(want) == len(have)
}
