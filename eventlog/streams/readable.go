package streams

import (
	"context"
	"iter"
)

// readableStep is how many sequences apart a stream is probed behind what cannot be read. A block has
// thousands of messages of usual size.
const readableStep = 64

// Readable reads what Messages reads, without what the server cannot read: it goes on behind it. The
// server serves nothing of a compressed block that is damaged. Only one who compares the messages
// with another source, as an audit does, may leave some out.
func (c *Conn) Readable(ctx context.Context, name, subject string) iter.Seq2[Message, error] {
	return func(yield func(Message, error) bool) {
		scan, from := c.Scan(name, subject), uint64(1)
		for {
			var failed error
			c.messages(ctx, scan, from, func(m Message, err error) bool {
				if failed = err; err != nil {
					return false
				}
				from = m.Seq + 1
				return yield(m, nil)
			})
			if failed == nil {
				return
			}
			next, err := c.behind(ctx, scan, from, failed)
			switch {
			case err != nil:
				yield(Message{}, err)
				return
			case next == 0:
				return
			}
			// For a subject the server counts what follows, and has to read the damaged block for it.
			scan = &Scan{conn: c, stream: name, subject: subject, filter: ">", wide: true, size: firstBatch}
			from = next
		}
	}
}

// behind returns from where on the stream of a scan can be read, which failed behind a sequence; 0:
// nowhere up to its end. The error is that of the scan, if it does not say that something cannot be
// read.
func (c *Conn) behind(ctx context.Context, s *Scan, from uint64, failed error) (uint64, error) {
	_, at, unread := Unread(failed)
	if !unread || ctx.Err() != nil {
		return 0, failed
	}
	at = max(at, from) // a scan goes on behind what does not match
	next, err := c.readableFrom(ctx, s.stream, at)
	if err == nil && next == at && s.wide {
		err = failed // what is there can be read
	}
	return next, err
}

// readableFrom returns the first sequence, from one on, from which the server reads a message;
// 0: it can read none up to the end.
func (c *Conn) readableFrom(ctx context.Context, name string, from uint64) (uint64, error) {
	end, err := c.LastSeq(ctx, name)
	if err != nil {
		return 0, err
	}
	reads := func(seq uint64) (bool, error) {
		got, err := c.Direct(ctx, name, GetRequest{Seq: seq, Next: ">"})
		return len(got) > 0, err
	}
	low, high := from, from // nothing is read from low on
	for {
		if high >= end {
			high = end
		}
		ok, err := reads(high)
		switch {
		case err != nil:
			return 0, err
		case ok:
			return firstTrue(low, high, reads)
		case high >= end:
			return 0, nil
		}
		low, high = high+1, high+readableStep
	}
}

// firstTrue returns the first sequence for which is holds: it holds for the last, and from the first
// one on for which it does.
func firstTrue(first, last uint64, is func(uint64) (bool, error)) (uint64, error) {
	for first < last {
		middle := first + (last-first)/2
		ok, err := is(middle)
		if err != nil {
			return 0, err
		}
		if ok {
			last = middle
		} else {
			first = middle + 1
		}
	}
	return first, nil
}
