package schema

import (
	"strings"
	"unicode/utf8"

	"github.com/skein-threads/skein/events"
)

// matcher returns the function that checks a named pattern of package events; nil if there is no
// such pattern. The patterns that every command needs are checked by hand-written functions, for
// speed. A test compares them with the regular expressions, which the JSON Schemas use.
func matcher(name string) func(string) bool {
	switch name {
	case events.PatternThread:
		return isThread
	case events.PatternThreadRef:
		return isThreadRef
	case events.PatternID:
		return isID
	case events.PatternKey:
		return isKey
	case events.PatternCommandID:
		return isCommandID
	case events.PatternName:
		return isName
	case events.PatternUUID:
		return isUUID
	case events.PatternTenant:
		return isID // the same characters
	case events.PatternPartKey:
		return isPartKey
	case events.PatternTime:
		return isTime
	}
	if pattern := events.Pattern(name); pattern != nil {
		return pattern.MatchString
	}
	return nil
}

// describePattern describes a pattern in words.
func describePattern(name string) string {
	switch name {
	case events.PatternTenant:
		return "must be a tenant: 1 to 64 letters, digits, _ and -, the first a letter or digit"
	case events.PatternThread:
		return "must be a thread's id: T- and a UUID, or thrd_ and 27 to 59 letters and digits"
	case events.PatternThreadRef:
		return "must be a thread: T- and a UUID, thrd_ and 27 to 59 letters and digits, or key: and the thread's key"
	case events.PatternID:
		return "must be an id: 1 to 64 letters, digits, _ and -, the first a letter or digit"
	case events.PatternKey:
		return "must be a key: 1 to 256 characters, none of them a control character"
	case events.PatternCommandID:
		return "must be a command's id: 1 to 128 letters, digits and _ . : -, the first a letter or digit"
	case events.PatternPartKey:
		return "must be a part's key: the step's id, a colon and the part's number"
	case events.PatternTime:
		return "must be a UTC time such as 2026-02-20T10:00:00.000Z"
	case events.PatternName:
		return "must be a name: 1 to 128 letters, digits and _ . : / -, the first a letter or digit"
	case events.PatternUUID:
		return "must be a UUID"
	case events.PatternTool:
		return "must be a tool's name: 1 to 64 letters, digits, _ and -"
	case events.PatternVariable:
		return "must be the name of a variable, without a value: 1 to 128 letters, digits and _, the first no digit"
	case events.PatternSession:
		return "must be a session's id: sess_ and 1 to 59 digits of 0 to 9 and a to f"
	}
	return "must match the pattern " + name
}

func isAlnum(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c >= 'A' && c <= 'Z'
}

// isWord reports whether s has 1 to most bytes, each a letter, a digit or one of extra, and begins
// with a letter or digit.
func isWord(s string, most int, extra string) bool {
	if s == "" || len(s) > most || !isAlnum(s[0]) {
		return false
	}
	for i := 1; i < len(s); i++ {
		if !isAlnum(s[i]) && strings.IndexByte(extra, s[i]) < 0 {
			return false
		}
	}
	return true
}

func isID(s string) bool        { return isWord(s, 64, "_-") }
func isCommandID(s string) bool { return isWord(s, 128, "_.:-") }
func isName(s string) bool      { return isWord(s, 128, "_.:/-") }

func isThread(s string) bool {
	if rest, ok := strings.CutPrefix(s, "T-"); ok {
		return isUUID(rest)
	}
	rest, ok := strings.CutPrefix(s, "thrd_")
	return ok && len(rest) >= 27 && isWord(rest, 59, "")
}

func isUUID(s string) bool {
	if len(s) != 36 {
		return false
	}
	for i := range len(s) {
		c := s[i]
		switch i {
		case 8, 13, 18, 23:
			if c != '-' {
				return false
			}
		default:
			if (c < '0' || c > '9') && (c < 'a' || c > 'f') && (c < 'A' || c > 'F') {
				return false
			}
		}
	}
	return true
}

// isPartKey reports whether s is an id, a colon and a number of up to nine digits.
func isPartKey(s string) bool {
	step, idx, ok := strings.Cut(s, ":")
	return ok && isID(step) && (idx == "0" || digits(idx) && len(idx) <= 9 && idx[0] != '0')
}

// digits reports whether s is digits, and at least one.
func digits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != ""
}

// isTime reports whether s has the form of a UTC time: 2026-02-20T10:00:00Z, with or without a
// point and one to nine digits before the Z.
func isTime(s string) bool {
	const form = "0000-00-00T00:00:00"
	if len(s) <= len(form) || s[len(s)-1] != 'Z' {
		return false
	}
	for i := range len(form) {
		if form[i] == '0' && (s[i] < '0' || s[i] > '9') || form[i] != '0' && s[i] != form[i] {
			return false
		}
	}
	fraction := s[len(form) : len(s)-1]
	return fraction == "" || fraction[0] == '.' && len(fraction) <= 10 && digits(fraction[1:])
}

// isSource reports whether s has the form of an event's source:
// /{tenant}/threads/{thread}.
func isSource(s string) bool {
	rest, ok := strings.CutPrefix(s, "/")
	tenant, rest, slash := strings.Cut(rest, "/")
	thread, named := strings.CutPrefix(rest, "threads/")
	return ok && slash && named && tenant != "" && thread != "" && !strings.Contains(thread, "/")
}

func isThreadRef(s string) bool {
	if key, ok := strings.CutPrefix(s, "key:"); ok {
		return isKey(key)
	}
	return isThread(s)
}

func isKey(s string) bool {
	for i := range len(s) {
		if s[i] < 0x20 || s[i] == 0x7f {
			return false
		}
	}
	return s != "" && utf8.RuneCountInString(s) <= 256
}

// expression returns a pattern as a regular expression, for the JSON Schemas.
func expression(name string) string { return events.Pattern(name).String() }

func patternNames() []string {
	return []string{
		events.PatternTenant, events.PatternThread, events.PatternThreadRef, events.PatternID, events.PatternKey,
		events.PatternCommandID, events.PatternPartKey, events.PatternTime, events.PatternName, events.PatternUUID,
		events.PatternTool, events.PatternVariable, events.PatternSession,
	}
}
