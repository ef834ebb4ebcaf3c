package openai

import "strings"

// spacing removes the white space between the tokens of JSON that arrives in pieces, so that
// the pieces of a call's arguments are together what its part will hold.
type spacing struct{ inText, escaped bool }

// compact returns a piece without that white space.
func (s *spacing) compact(piece string) string {
	var out strings.Builder
	for i := range len(piece) {
		c := piece[i]
		switch {
		case s.escaped:
			s.escaped = false
		case s.inText:
			s.inText, s.escaped = c != '"', c == '\\'
		case c == ' ' || c == '\t' || c == '\n' || c == '\r':
			continue
		default:
			s.inText = c == '"'
		}
		out.WriteByte(c)
	}
	return out.String()
}

// spaces returns the spacing of the call at an index.
func (a *answer) spaces(index int64) *spacing {
	if a.said[index] == nil {
		a.said[index] = &spacing{}
	}
	return a.said[index]
}
