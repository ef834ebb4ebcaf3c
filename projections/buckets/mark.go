package buckets

import (
	"strconv"
	"strings"

	"github.com/nats-io/nats.go"
)

// The headers of a thread's own document that encode a [Mark].
const (
	HeaderCold          = "Skein-Cold"
	HeaderColdDocuments = "Skein-Cold-Documents" // Mark.In
)

// Mark says whether a bucket holds the other documents of a thread. It is a header of the
// thread's own document, whose content does not depend on it.
//
// A thread without a mark has all of its documents. A cold thread may lack documents of the read
// models [documents.ColdKinds]; they equal a fold of its log up to the sequence of its own
// document. Documents are removed only after the mark was written, and the mark is removed only
// after they were written again.
type Mark struct {
	Cold   bool
	Bare   bool   // documents were removed, or are being removed
	In     string // of a cold thread that is not bare: the buckets that may hold its documents, comma-separated; empty: any
	At     int64  // when it became cold, in seconds since the Unix epoch
	Thawed uint64 // of a thawed thread: the commit at which its documents were written again
}

// MarkOf returns the mark in the headers of a thread's own document.
func MarkOf(h nats.Header) (m Mark) {
	form, number, _ := strings.Cut(h.Get(HeaderCold), " ")
	switch form {
	case "cold", "bare":
		m.Cold, m.Bare = true, form == "bare"
		m.At, _ = strconv.ParseInt(number, 10, 64)
		if m.Cold && !m.Bare {
			m.In = h.Get(HeaderColdDocuments)
		}
	case "thawed":
		m.Thawed, _ = strconv.ParseUint(number, 10, 64)
	}
	return m
}

// Header returns the mark as headers, nil if the thread was never cold.
func (m Mark) Header() nats.Header {
	switch {
	case m.Bare:
		return nats.Header{HeaderCold: {"bare " + strconv.FormatInt(m.At, 10)}}
	case m.Cold:
		h := nats.Header{HeaderCold: {"cold " + strconv.FormatInt(m.At, 10)}}
		if m.In != "" {
			h[HeaderColdDocuments] = []string{m.In}
		}
		return h
	case m.Thawed > 0:
		return nats.Header{HeaderCold: {"thawed " + strconv.FormatUint(m.Thawed, 10)}}
	}
	return nil
}
