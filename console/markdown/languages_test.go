package markdown

import (
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/chroma/v2"
)

// What people write behind the fence of code is known, and its lexer colors something.
func TestLanguages_NamesOfFencesAreKnown(t *testing.T) {
	known, colors := indexLanguages(), palette()
	const names = "go golang Python py js javascript ts tsx jsx json yaml yml toml sh bash shell console sql html css xml diff patch " +
		"java kotlin kt swift c cpp c++ csharp c# rust rs rb php dockerfile make ini hcl tf proto graphql lua r scala powershell nginx " +
		"ex dart perl zig properties"
	const text = "# a comment\n// another\n\"text\" 12 <a b='c'>\n+ more\n[x]\nkey = value\n$ ls 'x'"
	for _, name := range strings.Fields(names) {
		lexer := known.lexer(name)
		if lexer == nil {
			t.Errorf("%q is not known", name)
			continue
		}
		tokens, err := chroma.Tokenise(lexer, nil, text)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if !slices.ContainsFunc(tokens, func(token chroma.Token) bool { return colors.class(token.Type) != "" }) {
			t.Errorf("%s colors nothing", name)
		}
	}
	if known.lexer("no such language") != nil {
		t.Error("a language that does not exist has a lexer")
	}
}
