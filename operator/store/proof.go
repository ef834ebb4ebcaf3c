package store

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/operator/blocks"
)

// checkpointKey ends the subject of a read model's checkpoint.
const checkpointKey = "._.checkpoint"

// speaksOf returns the sequence of the log that a message of a derived stream speaks
// of: an event of the timeline and the marker of a removed document say it in a
// header, a checkpoint in its document. 0 if it says none.
func speaksOf(r blocks.Record) uint64 {
	if r.Kind != blocks.Message {
		return 0
	}
	headers, data := r.Body()
	if strings.HasSuffix(r.Subject, checkpointKey) {
		var c struct {
			Seq uint64 `json:"seq"`
		}
		if json.Unmarshal(data, &c) != nil {
			return 0
		}
		return c.Seq
	}
	_, after, ok := bytes.Cut(headers, []byte("\r\n"+events.HeaderSeq+": "))
	if !ok {
		return 0
	}
	value, _, _ := bytes.Cut(after, []byte("\r\n"))
	seq, err := strconv.ParseUint(string(value), 10, 64)
	if err != nil {
		return 0
	}
	return seq
}
