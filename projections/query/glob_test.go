package query

import (
	"strings"
	"testing"
)

// A glob whose braces combine in too many ways is refused before it is matched.
func TestGlobOf_BoundsTheWaysOfBraces(t *testing.T) {
	t.Parallel()
	group := "{" + strings.Repeat("a,", 200) + "a}"
	for glob, taken := range map[string]bool{
		"**/*.{go,mod,sum}":               true,
		"{a,b}{c,d}{e,f}":                 true,
		`\{a,b\}`:                         true,
		group:                             true,
		group + group:                     false,
		strings.Repeat(group, 8):          false,
		"{{a,b},c}{a,b}" + group + "/*.x": false,
	} {
		match, err := globOf(glob, "/pattern")
		if (err == nil) != taken {
			t.Errorf("%.40s: %v", glob, err)
		}
		if err == nil {
			match("/" + strings.Repeat("a", 200))
		}
	}
}
