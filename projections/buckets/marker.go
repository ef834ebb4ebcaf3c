package buckets

import (
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go"

	"github.com/skein-threads/skein/events"
)

// Headers of the marker of a removed document.
const (
	HeaderOperation = "KV-Operation"   // read by key-value clients
	HeaderSeq       = events.HeaderSeq // the sequence in the log of the commit that removed it
)

// Marker returns the headers of the marker of a document that a commit removed.
func Marker(seq uint64) nats.Header {
	return nats.Header{HeaderOperation: {"DEL"}, HeaderSeq: {strconv.FormatUint(seq, 10)}}
}

// MarkerSeq returns the sequence in the log of the commit that removed a document. It reports
// whether h are the headers of a marker.
func MarkerSeq(header nats.Header) (seq uint64, removed bool) {
	if header.Get(HeaderOperation) == "" {
		return 0, false
	}
	seq, _ = strconv.ParseUint(header.Get(HeaderSeq), 10, 64)
	return seq, true
}

// ShownSeq returns the sequence in the log that a message of a bucket shows, and
// whether it is the marker of a removed document.
func ShownSeq(header nats.Header, data []byte) (seq uint64, removed bool) {
	if seq, removed := MarkerSeq(header); removed {
		return seq, true
	}
	var doc struct {
		Seq uint64 `json:"seq"`
	}
	_ = json.Unmarshal(data, &doc) // an unreadable document shows nothing; a rebuild repairs it
	return doc.Seq, false
}
