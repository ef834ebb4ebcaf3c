package directory

import (
	"strings"

	"github.com/google/uuid"
)

// interned maps texts that occur again and again to small numbers.
type interned struct {
	numbers map[string]uint32
	texts   []string
}

func newInterned() *interned {
	return &interned{numbers: map[string]uint32{"": 0}, texts: []string{""}}
}

func (n *interned) number(s string) uint32 {
	i, ok := n.numbers[s]
	if !ok {
		i = uint32(len(n.texts))
		s = strings.Clone(s)
		n.numbers[s] = i
		n.texts = append(n.texts, s)
	}
	return i
}

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
