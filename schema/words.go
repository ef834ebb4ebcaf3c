package schema

import (
	"fmt"
	"strings"
)

// words describes the valid values.
func (r *rule) words() string {
	if r.enum != nil {
		return "must be one of " + strings.Join(r.enum, ", ")
	}
	if r.pattern != "" {
		return describePattern(r.pattern)
	}
	switch r.kind {
	case text:
		return "must be a text" + span(r.minLength, r.maxLength, "character")
	case flag:
		return "must be true or false"
	case whole, wide:
		return "must be a whole number" + between(r.minimum, r.maximum)
	case real:
		return "must be a number" + between(r.minimum, r.maximum)
	case anything:
		if r.object {
			return "must be an object"
		}
		return "may be any JSON"
	case record:
		return "must be an object"
	case list:
		return "must be a list" + span(r.minItems, r.maxItems, "element")
	}
	return ""
}

// span describes how many of something there may be.
func span(least, most *int, what string) string {
	if least != nil && most != nil {
		return fmt.Sprintf(" of %d to %d %ss", *least, *most, what)
	}
	if most != nil {
		return fmt.Sprintf(" of at most %d %ss", *most, what)
	}
	if least == nil {
		return ""
	}
	if *least == 1 {
		return fmt.Sprintf(" of at least 1 %s", what)
	}
	return fmt.Sprintf(" of at least %d %ss", *least, what)
}

func between(least, most *int64) string {
	if least != nil && most != nil {
		return fmt.Sprintf(" from %d to %d", *least, *most)
	}
	if least != nil {
		return fmt.Sprintf(", at least %d", *least)
	}
	if most != nil {
		return fmt.Sprintf(", at most %d", *most)
	}
	return ""
}
