package events

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json"
)

// Commit is all events of one command on one aggregate: one message of the
// log, and so atomic by construction. (Several commands that waited for the
// same thread may share one; each keeps its own events in it.)
type Commit struct {
	Tenant  string
	Thread  string // the aggregate
	Seq     uint64 // in the log; 0 before it is stored
	Version int64  // the aggregate's version after it
	Chain   string // hex of the digest of the chain up to and with it
	Events  []Event
	Body    []byte // a CloudEvents JSON batch, as stored
}

// NewCommit encodes consecutive events of one aggregate as the commit that follows the one
// whose chain is prev ("" for the first). It returns an error for everything that DecodeCommit
// would refuse, so that no unreadable commit enters the log.
func NewCommit(prev string, events []Event) (*Commit, error) {
	if len(events) == 0 {
		return nil, errors.New("encode commit: no events; a commit has at least one")
	}
	body := make([]byte, 0, 896*len(events))
	body = append(body, '[')
	ends := make([]int, len(events))
	for i := range events {
		if r, ok := rows[events[i].Type]; ok && r.Transient {
			return nil, fmt.Errorf("encode commit: %s is transient and never enters the log", r.Type)
		}
		if i > 0 {
			body = append(body, ',')
		}
		var err error
		if body, err = events[i].appendComplete(body); err != nil {
			return nil, err
		}
		ends[i] = len(body)
	}
	body = append(body, ']')
	events = slices.Clone(events) // as DecodeCommit would return them; the caller's slice is not changed
	from := 1
	for i, end := range ends {
		e := &events[i]
		e.schema, e.raw, e.stored, e.shared = e.Schema(), body[from:end:end], nil, ""
		from = end + 1
	}
	body, err := shareValues(body, events)
	if err != nil {
		return nil, err
	}
	last := &events[len(events)-1]
	c := &Commit{
		Tenant: last.Tenant, Thread: last.ThreadID, Version: last.Version,
		Chain: Chain(prev, body), Events: events, Body: body,
	}
	if err := c.check(); err != nil {
		return nil, err
	}
	if err := c.keep(); err != nil {
		return nil, err
	}
	return c, nil
}

// Chain returns hex(SHA-256(previous || body)). Altering, dropping or reordering a commit of
// an aggregate breaks its chain.
func Chain(previous string, body []byte) string {
	h := sha256.New()
	before := make([]byte, 0, 2*sha256.Size)
	h.Write(append(before, previous...))
	h.Write(body)
	var sum [sha256.Size]byte
	return hex.EncodeToString(h.Sum(sum[:0]))
}

// First returns the aggregate's version before the commit.
func (c *Commit) First() int64 { return c.Version - int64(len(c.Events)) }

// BrokenError is the error of a commit of the log that cannot be decoded. The commit's bytes
// are left as they are; `skein audit verify` reports it too.
type BrokenError struct {
	Tenant, Thread string
	Seq            uint64
	Cause          error
}

func (e *BrokenError) Error() string {
	return fmt.Sprintf("commit %d of %s/%s cannot be read: %v", e.Seq, e.Tenant, e.Thread, e.Cause)
}

func (e *BrokenError) Unwrap() error { return e.Cause }

// DecodeCommit decodes a message of the log. tenant and thread come from its subject, version
// and chain from its headers, and the events must agree with them. The error is a
// *BrokenError.
func DecodeCommit(tenant, thread string, seq uint64, version int64, chain string, body []byte) (*Commit, error) {
	c := &Commit{Tenant: tenant, Thread: thread, Seq: seq, Version: version, Chain: chain, Body: body}
	if err := c.decode(); err != nil {
		return nil, &BrokenError{Tenant: tenant, Thread: thread, Seq: seq, Cause: err}
	}
	return c, nil
}

func (c *Commit) decode() error {
	if !c.scan() {
		if err := c.decodeAny(); err != nil {
			return err
		}
	}
	return c.resolve()
}

// decodeAny decodes a batch in any layout that JSON allows, and is authoritative.
func (c *Commit) decodeAny() error {
	raws, err := splitBatch(c.Body)
	if err != nil {
		return err
	}
	c.Events = make([]Event, len(raws))
	var shared sharedValues
	for i, raw := range raws {
		if c.Events[i], err = shared.decode(raw, c.Events[:i]); err != nil {
			return err
		}
	}
	return c.check()
}

// scan decodes a batch in the layout that NewCommit writes, and reports whether it was one.
func (c *Commit) scan() bool {
	s := scanner{b: c.Body, last: &Event{}}
	var shared sharedValues
	if plain(c.Tenant) && plain(c.Thread) {
		s.last.Tenant, s.last.ThreadID = c.Tenant, c.Thread
		s.source = "/" + c.Tenant + threadsPath + c.Thread
	}
	if !s.word("[") {
		return false
	}
	c.Events = make([]Event, 0, 1+len(c.Body)/640)
	for {
		from := s.at
		c.Events = append(c.Events, Event{})
		e := &c.Events[len(c.Events)-1]
		if s.event(e) {
			s.advance(e)
		} else { // one event in another layout does not slow down the rest
			s.at = from
			if !s.object() {
				return false
			}
			var err error
			before := c.Events[:len(c.Events)-1]
			if *e, err = shared.decode(s.b[from:s.at:s.at], before); err != nil {
				return false
			}
		}
		if !s.word(",") {
			return s.word("]") && s.at == len(s.b) && c.check() == nil
		}
	}
}

// check returns an error unless the events are of the aggregate and lead up to its version.
func (c *Commit) check() error {
	for i := range c.Events {
		e := &c.Events[i]
		if e.Tenant != c.Tenant || e.ThreadID != c.Thread {
			return fmt.Errorf("event %s is of %s/%s", clip(e.ID), clip(e.Tenant), clip(e.ThreadID))
		}
		if want := c.First() + int64(i) + 1; e.Version != want {
			return fmt.Errorf("event %s has version %d, not %d", clip(e.ID), e.Version, want)
		}
	}
	return nil
}

// splitBatch returns the elements of a JSON array in any layout.
func splitBatch(body []byte) ([]JSON, error) {
	var raws []JSON
	if err := json.Unmarshal(body, &raws); err != nil {
		return nil, fmt.Errorf("%w batch: %w", errEnvelope, err)
	}
	if len(raws) == 0 {
		return nil, fmt.Errorf("%w batch: it is empty", errEnvelope)
	}
	return raws, nil
}
