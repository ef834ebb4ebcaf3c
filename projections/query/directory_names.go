package query

import (
	"strings"

	"github.com/google/uuid"
)

// packID returns a thread's id in few bytes: 16 for T- and a UUID.
func packID(id string) string {
	if len(id) == 38 && strings.HasPrefix(id, "T-") {
		if u, err := uuid.Parse(id[2:]); err == nil && u.String() == id[2:] {
			return string(u[:])
		}
	}
	return strings.Clone(id)
}

func unpackID(packed string) string {
	if len(packed) != 16 {
		return packed
	}
	u, err := uuid.FromBytes([]byte(packed))
	if err != nil {
		return packed
	}
	return "T-" + u.String()
}
