package events

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"slices"
)

// Shown names what a model received without copying it: items in order, and a digest of the
// request as it was sent. A record has the last items alone, so that its size does not grow with
// the thread; see Brief.
type Shown struct {
	Items     []string `json:"items" schema:"required" doc:"Ids of items, in order: of all, or of the last ones."`
	First     string   `json:"first,omitzero" doc:"If items has the last ones: the first of all."`
	Count     int64    `json:"count,omitzero" schema:"minimum=1" doc:"If items has the last ones: how many there were."`
	IDsDigest string   `json:"idsDigest,omitzero" schema:"maxLength=128" doc:"If items has the last ones: SHA-256 of the ids of all, each followed by a line feed, in hex."`
	Digest    string   `json:"digest,omitzero" schema:"maxLength=128" doc:"SHA-256 of what was sent, in hex."`
}

// ShownItems is how many items a record of what a model was shown names.
const ShownItems = 32

// Brief returns s with the last ShownItems items. Of more, it has the first one, their number and
// a digest, with which the list can be told from any other that is read from the thread.
func (s Shown) Brief() Shown {
	if len(s.Items) <= ShownItems {
		return s
	}
	h := sha256.New()
	for _, id := range s.Items {
		_, _ = io.WriteString(h, id+"\n") // a hash returns no error
	}
	last := s.Items[len(s.Items)-ShownItems:]
	return Shown{Items: slices.Clone(last), First: s.Items[0], Count: int64(len(s.Items)), IDsDigest: hex.EncodeToString(h.Sum(nil)), Digest: s.Digest}
}
