package rest

import (
	"slices"
	"strings"

	"github.com/skein-threads/skein/events"
)

// tagList returns the entity tags that the lines of a header list, as they are written.
func tagList(lines []string) []string {
	var list []string
	for _, line := range lines {
		for one := range strings.SplitSeq(line, ",") {
			if one = strings.TrimSpace(one); one != "" {
				list = append(list, one)
			}
		}
	}
	return list
}

// namesTag reports whether the lines of If-None-Match name an entity tag, weak or not.
func namesTag(lines []string, tag string) bool {
	for _, one := range tagList(lines) {
		if one == "*" || strings.TrimPrefix(one, "W/") == tag {
			return true
		}
	}
	return false
}

// holdsTag refuses the lines of If-Match, if there are any, unless they name the entity tag of what
// is read, or *. Weak ones name none.
func holdsTag(lines []string, tag, what string) error {
	if len(lines) == 0 {
		return nil
	}
	list := tagList(lines)
	for _, one := range list {
		if one == "*" || one == tag {
			return nil
		}
	}
	if len(list) == 0 || slices.ContainsFunc(list, func(one string) bool { return !isTag(one) }) {
		return events.Invalid("/If-Match", "If-Match takes ETags, as in If-Match: %s, or *", tag)
	}
	return otherTag(strings.Join(list, ", "), what)
}

// isTag reports whether a text is one entity tag, weak or not.
func isTag(s string) bool {
	s = strings.TrimPrefix(s, "W/")
	return len(s) >= 2 && s[0] == '"' && strings.IndexByte(s[1:], '"') == len(s)-2
}

// otherTag is the refusal of an entity tag in If-Match that is none of what.
func otherTag(tag, what string) error {
	return events.Errorf(events.VersionConflict, "If-Match is %.80s, which is not the ETag of %s; read it again and retry", tag, what)
}
