package sim

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
)

// Headers of JetStream's that the server looks at.
const (
	headerExpected      = "Nats-Expected-Last-Subject-Sequence"
	headerExpectedSeq   = "Nats-Expected-Last-Sequence"
	headerExpectedID    = "Nats-Expected-Last-Msg-Id"
	headerID            = "Nats-Msg-Id"
	headerBatchID       = "Nats-Batch-Id"
	headerBatchSequence = "Nats-Batch-Sequence"
	headerBatchCommit   = "Nats-Batch-Commit"
	headerRollup        = "Nats-Rollup"
)

// JetStream's codes that the server answers with.
const (
	codeWrongLast       = 10071
	codeWrongLastID     = 10070
	codeWrongInBatch    = 10164
	codeBatchIncomplete = 10176
	codeBatchTooLarge   = 10199
	codeBatchDuplicate  = 10201
	codeNoMessage       = 10037
)

// mostInBatch is how many messages the server takes as one atomic batch.
const mostInBatch = 1000

// stream is one stream: every message that it ever held, so that it can also be
// read as it was a while ago.
type stream struct {
	name       string
	perSubject bool          // it keeps the last message of each subject alone
	window     time.Duration // for which it knows the ids of messages
	replicated bool

	held    []*stored // the message with sequence n is at n-1
	bySubj  map[string][]uint64
	ids     map[string]uint64
	lastID  string
	batches map[string][]*nats.Msg // not yet committed
}

// stored is a message of a stream.
type stored struct {
	subject string
	header  nats.Header
	data    []byte
	seq     uint64
	at      time.Time
	step    int    // of the run, in which it was stored
	gone    uint64 // the stream's last sequence when it was removed; 0: it is there
}

// refusal is JetStream's.
type refusal struct {
	code, errCode int
	text          string
}

func refused(code int, text string) *refusal { return &refusal{400, code, text} }

// ack is what a publish is answered.
type ack struct {
	seq   uint64
	dup   bool
	batch string
	count int
	err   *refusal
}

func (a ack) json(stream string) []byte {
	switch {
	case a.err != nil:
		return fmt.Appendf(nil, `{"error":{"code":%d,"err_code":%d,"description":%q},"stream":%q,"seq":0}`, a.err.code, a.err.errCode, a.err.text, stream)
	case a.batch != "":
		return fmt.Appendf(nil, `{"stream":%q,"seq":%d,"batch":%q,"count":%d}`, stream, a.seq, a.batch, a.count)
	case a.dup:
		return fmt.Appendf(nil, `{"stream":%q,"seq":%d,"duplicate":true}`, stream, a.seq)
	}
	return fmt.Appendf(nil, `{"stream":%q,"seq":%d}`, stream, a.seq)
}

func newStream(name string, perSubject, replicated bool, window time.Duration) *stream {
	return &stream{
		name: name, perSubject: perSubject, replicated: replicated, window: window,
		bySubj: map[string][]uint64{}, ids: map[string]uint64{}, batches: map[string][]*nats.Msg{},
	}
}

func (s *stream) last() uint64 { return uint64(len(s.held)) }

// there reports whether a message is in the stream as it was when it ended at a
// sequence.
func (m *stored) there(end uint64) bool { return m.seq <= end && (m.gone == 0 || m.gone > end) }

// lastOf returns the last message of a subject, nil if there is none.
func (s *stream) lastOf(subject string, end uint64) *stored {
	if strings.ContainsAny(subject, "*>") {
		for _, m := range slices.Backward(s.held) {
			if m.there(end) && matches(m.subject, subject) {
				return m
			}
		}
		return nil
	}
	seqs := s.bySubj[subject]
	for i := len(seqs) - 1; i >= 0; i-- {
		if m := s.held[seqs[i]-1]; m.there(end) {
			return m
		}
	}
	return nil
}

// next returns the first message from a sequence on whose subject matches.
func (s *stream) next(pattern string, from, end uint64) *stored {
	if !strings.ContainsAny(pattern, "*>") && pattern != "" {
		for _, seq := range s.bySubj[pattern] {
			if m := s.held[seq-1]; seq >= from && m.there(end) {
				return m
			}
		}
		return nil
	}
	for seq := max(from, 1); seq <= min(end, s.last()); seq++ {
		if m := s.held[seq-1]; m.there(end) && (pattern == "" || matches(m.subject, pattern)) {
			return m
		}
	}
	return nil
}

// matches reports whether a subject matches a pattern.
func matches(subject, pattern string) bool {
	for {
		s, srest, smore := strings.Cut(subject, ".")
		p, prest, pmore := strings.Cut(pattern, ".")
		switch {
		case p == ">":
			return true
		case p != "*" && p != s, smore != pmore:
			return false
		case !smore:
			return true
		}
		subject, pattern = srest, prest
	}
}

// publish stores a message, or refuses it, or takes it as part of a batch: then
// the answer is nil until the batch is whole.
func (s *stream) publish(m *nats.Msg, now time.Time, step int) *ack {
	if id := m.Header.Get(headerBatchID); id != "" {
		return s.publishInBatch(id, m, now, step)
	}
	if s.replicated { // looked at before anything is proposed
		if a := s.known(m, now); a != nil {
			return a
		}
	}
	if err := s.expected(m); err != nil {
		return &ack{err: err}
	}
	if a := s.known(m, now); a != nil {
		return a
	}
	if want := m.Header.Get(headerExpectedID); want != "" && want != s.lastID {
		return &ack{err: refused(codeWrongLastID, "wrong last msg ID: "+s.lastID)}
	}
	return &ack{seq: s.keep(m, now, step)}
}

// expected checks the sequences that a message expects.
func (s *stream) expected(m *nats.Msg) *refusal {
	if want, ok := number(m.Header, headerExpected); ok {
		have := uint64(0)
		if last := s.lastOf(m.Subject, s.last()); last != nil {
			have = last.seq
		}
		if have != want {
			return refused(codeWrongLast, fmt.Sprintf("wrong last sequence: %d", have))
		}
	}
	if want, ok := number(m.Header, headerExpectedSeq); ok && want != s.last() {
		return refused(codeWrongLast, fmt.Sprintf("wrong last sequence: %d", s.last()))
	}
	return nil
}

// known answers a message whose id was stored within the window.
func (s *stream) known(m *nats.Msg, now time.Time) *ack {
	id := m.Header.Get(headerID)
	if seq, ok := s.ids[id]; ok && id != "" && now.Sub(s.held[seq-1].at) < s.window {
		return &ack{seq: seq, dup: true}
	}
	return nil
}

// publishInBatch stages a message, and with the last one stores all or none.
func (s *stream) publishInBatch(id string, m *nats.Msg, now time.Time, step int) *ack {
	n, _ := number(m.Header, headerBatchSequence)
	staged, open := s.batches[id]
	switch {
	case !open && n != 1, uint64(len(staged))+1 != n:
		delete(s.batches, id)
		return &ack{err: refused(codeBatchIncomplete, "atomic publish batch is incomplete")}
	case n > mostInBatch:
		delete(s.batches, id)
		return &ack{err: refused(codeBatchTooLarge, "atomic publish batch is too large: 1000")}
	}
	staged = append(staged, m)
	if m.Header.Get(headerBatchCommit) == "" {
		s.batches[id] = staged
		return nil
	}
	delete(s.batches, id)
	if err := s.checkBatch(staged, now); err != nil {
		return &ack{err: err}
	}
	for _, m := range staged {
		s.keep(m, now, step)
	}
	return &ack{seq: s.last(), batch: id, count: len(staged)}
}

// checkBatch checks all of a batch before any of it is stored.
func (s *stream) checkBatch(batch []*nats.Msg, now time.Time) *refusal {
	written, ids := map[string]bool{}, map[string]bool{}
	for _, m := range batch {
		if id := m.Header.Get(headerID); id != "" {
			if s.known(m, now) != nil || ids[id] {
				return refused(codeBatchDuplicate, "atomic publish batch contains duplicate message id")
			}
			ids[id] = true
		}
		if _, ok := number(m.Header, headerExpected); ok && written[m.Subject] {
			return refused(codeWrongInBatch, "wrong last sequence")
		}
		if err := s.expected(m); err != nil {
			return err
		}
		written[m.Subject] = true
	}
	return nil
}

// keep stores a message.
func (s *stream) keep(m *nats.Msg, now time.Time, step int) uint64 {
	seq := s.last() + 1
	if s.perSubject || m.Header.Get(headerRollup) == "sub" {
		if old := s.lastOf(m.Subject, s.last()); old != nil {
			old.gone = seq
		}
	}
	s.held = append(s.held, &stored{subject: m.Subject, header: m.Header, data: m.Data, seq: seq, at: now, step: step})
	s.bySubj[m.Subject] = append(s.bySubj[m.Subject], seq)
	if s.lastID = m.Header.Get(headerID); s.lastID != "" {
		s.ids[s.lastID] = seq
	}
	return seq
}

// purge removes what matches, up to but not including a sequence, 0: all.
func (s *stream) purge(pattern string, before uint64) {
	for _, m := range s.held {
		if m.gone == 0 && (before == 0 || m.seq < before) && (pattern == "" || matches(m.subject, pattern)) {
			m.gone = s.last()
		}
	}
}

// lose takes the stream back to what it was when it ended at a sequence: the
// power has failed before the rest was on the disk.
func (s *stream) lose(end uint64) {
	for _, m := range s.held[end:] {
		seqs := s.bySubj[m.subject]
		s.bySubj[m.subject] = seqs[:len(seqs)-1]
	}
	for i := len(s.held) - 1; i >= int(end); i-- {
		delete(s.ids, s.held[i].header.Get(headerID))
	}
	s.held = s.held[:end]
	s.lastID = ""
	for _, m := range s.held {
		if m.gone > end {
			m.gone = 0
		}
		s.lastID = m.header.Get(headerID)
	}
	clear(s.batches)
}

func number(h nats.Header, name string) (uint64, bool) {
	n, err := strconv.ParseUint(h.Get(name), 10, 64)
	return n, err == nil
}
