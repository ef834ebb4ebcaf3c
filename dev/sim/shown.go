package sim

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/projections/buckets"
	"github.com/skein-threads/skein/projections/documents"
)

// timelineAt returns the sequence in the log of the timeline's last event, and whether that is
// the last of its commit.
func (s *Server) timelineAt() (seq uint64, whole bool) {
	shown, log := s.streams["SKEIN_TIMELINE"].held, s.streams["SKEIN_LOG"].held
	if len(shown) == 0 {
		return 0, true
	}
	last := shown[len(shown)-1].header
	seq, _ = number(last, events.HeaderSeq)
	return seq, log[seq-1].header.Get(events.HeaderVersion) == last.Get(events.HeaderVersion)
}

// ends says how far everything is.
func (s *Server) ends() string {
	seq, whole := s.timelineAt()
	return fmt.Sprintf("the log ends at %d, and the timeline shows %d (whole: %v)", s.streams["SKEIN_LOG"].last(), seq, whole)
}

// checkTimeline checks that the timeline has every event of the log once, in
// order.
func (c *checker) checkTimeline() error {
	if !c.shape.readSide {
		return nil
	}
	held := c.server.streams["SKEIN_TIMELINE"].held
	for _, commit := range c.commits {
		for i := range commit.Events {
			e := &commit.Events[i]
			if len(held) == 0 {
				return fmt.Errorf("the timeline lacks event %d of %s and all after it", e.Version, e.ThreadID)
			}
			m := held[0]
			held = held[1:]
			if want := events.DefaultNames().Timeline(e.Tenant, e.ThreadID, e.Type); m.subject != want || !bytes.Equal(m.data, e.Raw()) {
				return fmt.Errorf("the timeline has %s at %d, where %s, version %d of commit %d, should be", m.subject, m.seq, want, e.Version, commit.Seq)
			}
		}
	}
	if len(held) > 0 {
		return fmt.Errorf("the timeline has %d events too many, first %s", len(held), held[0].subject)
	}
	return nil
}

// checkDocuments checks that the buckets hold what the log says of every
// thread, and nothing else.
func (c *checker) checkDocuments() error {
	if !c.shape.readSide {
		return nil
	}
	memory := c.Models.NewMemory(nil)
	for _, commit := range c.commits {
		if events.IsThread(commit.Thread) {
			if err := memory.Apply(commit); err != nil {
				return err
			}
		}
	}
	want := map[string][]byte{}
	for _, slot := range memory.All(documents.AllKinds) {
		raw, err := documents.Encode(slot.Doc)
		if err != nil {
			return err
		}
		want["$KV."+c.Models.Of(slot.Place.Kind).Bucket+"."+slot.Place.Key()] = raw
	}
	for _, p := range c.Models.List() {
		for _, m := range c.server.streams["KV_"+p.Bucket].held {
			if m.gone != 0 || m.header.Get("KV-Operation") != "" || strings.HasPrefix(m.subject, "$KV."+p.Bucket+"._.") {
				continue
			}
			if doc, ok := want[m.subject]; !ok {
				return fmt.Errorf("document %s should not be there: %s", m.subject, m.data)
			} else if !bytes.Equal(doc, m.data) {
				return fmt.Errorf("document %s is\n%s\nand by the log\n%s", m.subject, m.data, doc)
			}
			delete(want, m.subject)
		}
	}
	cold := c.coldThreads()
	for _, slot := range memory.All(documents.AllKinds) {
		p := slot.Place
		subject := "$KV." + c.Models.Of(p.Kind).Bucket + "." + p.Key()
		if want[subject] != nil && !(cold[p.Thread] && documents.ColdKinds.Has(p.Kind)) {
			return fmt.Errorf("document %s is missing", subject)
		}
	}
	return nil
}

// coldThreads returns the names of the threads that need not have documents. No command of a run
// makes one cold; a rebuild does, of a thread whose own document alone was lost.
func (c *checker) coldThreads() map[string]bool {
	cold, bucket := map[string]bool{}, c.Models.Of(documents.Threads).Bucket
	for _, m := range c.server.streams["KV_"+bucket].held {
		if m.gone == 0 && buckets.MarkOf(m.header).Cold {
			cold[strings.TrimPrefix(m.subject, "$KV."+bucket+".")] = true
		}
	}
	return cold
}
