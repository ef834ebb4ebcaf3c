package eventlog

import (
	"context"
	"slices"
	"strings"
)

// filter returns what the server is asked for where a subject is wanted: ">", if
// every message of the stream has that subject. With each batch of a read the server
// counts what else matches, and goes through all subjects for it unless the filter is
// ">": then it adds up what it knows of its blocks.
func (l *Log) filter(stream, subject string) string {
	bucket, isBucket := strings.CutPrefix(stream, "KV_")
	if subject == l.cfg.Names.Log("*", "*") || subject == l.anyEvent() || isBucket && subject == keyPrefix(bucket)+">" {
		return ">"
	}
	return subject
}

// scan is a reading of a stream in batches.
type scan struct {
	log             *Log
	stream, subject string
	filter          string // what the server is asked for
	wide            bool   // it is more than what is wanted
}

func (l *Log) scan(stream, subject string) *scan {
	return &scan{log: l, stream: stream, subject: subject, filter: l.filter(stream, subject)}
}

// scanWorth is what reading a message costs, in messages that the server counts in
// that time, times those that a batch has: 10 us, of 0.1 us each.
const scanWorth = 100 * threadBatch

// batch reads the next messages that match, from a sequence on; none: that copy of
// the stream has no more.
func (s *scan) batch(ctx context.Context, from uint64) ([]Message, error) {
	for {
		got, err := s.log.direct(ctx, s.stream, getRequest{Seq: max(from, 1), Next: s.filter, Batch: threadBatch, MaxBytes: threadBytes})
		if err != nil || len(got) == 0 {
			return nil, err
		}
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

// widen reads all of the stream from here on, and leaves out here what does not
// match, if that is less work: that the server counts what else matches of n messages
// is work of n for each batch of them, and so of n times n for a tenant that has most
// of the stream.
func (s *scan) widen(ctx context.Context, left uint64) error {
	if s.filter == ">" || !strings.ContainsAny(s.filter, "*>") || left <= s.log.scanWorth {
		return nil
	}
	stream, err := s.log.js.Stream(ctx, s.stream)
	if err != nil {
		return err
	}
	if left*left/s.log.scanWorth > stream.CachedInfo().State.Msgs {
		s.filter, s.wide = ">", true
	}
	return nil
}
