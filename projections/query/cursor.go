package query

import (
	"encoding/base64"
	"encoding/binary"
	"hash/fnv"

	"github.com/skein-threads/skein/events"
)

// A cursor is opaque to callers: a place in a list, bound to the query that returned
// it, so that it cannot be used with another.
const (
	cursorForm  = 1
	cursorBytes = 1 + 8 + 8
)

// mark identifies a list by its query, with all fields that select it.
func mark(parts ...string) uint64 {
	h := fnv.New64a()
	for _, p := range parts {
		_, _ = h.Write([]byte(p))
		_, _ = h.Write([]byte{0})
	}
	return h.Sum64()
}

func encodeCursor(query, place uint64) string {
	b := make([]byte, 0, cursorBytes)
	b = append(b, cursorForm)
	b = binary.BigEndian.AppendUint64(b, query)
	b = binary.BigEndian.AppendUint64(b, place)
	return base64.RawURLEncoding.EncodeToString(b)
}

// decodeCursor returns the place, or an error for a cursor of another query.
func decodeCursor(cursor string, query uint64) (uint64, error) {
	b, err := base64.RawURLEncoding.DecodeString(cursor)
	if err != nil || len(b) != cursorBytes || b[0] != cursorForm {
		return 0, events.Invalid("/cursor", "this is not a cursor; use nextCursor as it came")
	}
	if binary.BigEndian.Uint64(b[1:]) != query {
		return 0, events.Invalid("/cursor", "the cursor is of a query with other fields")
	}
	return binary.BigEndian.Uint64(b[9:]), nil
}
