package markdown

import (
	"cmp"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/chroma/v2"
)

// What people write behind the fence of code is known, and every definition colors something.
func TestLanguages_NamesOfFencesAreKnown(t *testing.T) {
	known, colors := openLanguages(), palette()
	for _, name := range strings.Fields("go golang Python py js javascript ts tsx jsx json yaml yml toml sh bash shell console sql html css xml diff patch java kotlin kt swift c cpp c++ csharp c# rust rs rb php dockerfile make ini hcl tf proto graphql lua r scala powershell nginx ex dart perl zig properties") {
		if known.lexer(name) == nil {
			t.Errorf("%q is not known", name)
		}
	}
	if known.lexer("no such language") != nil {
		t.Error("a language that does not exist has a lexer")
	}
	text := "# a comment\n// another\n\"text\" 12 <a b='c'>\n+ more\n[x]\nkey = value\n$ ls 'x'"
	for name, lexer := range known {
		tokens, err := chroma.Tokenise(lexer, nil, text)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if !slices.ContainsFunc(tokens, func(token chroma.Token) bool { return colors.class(token.Type) != "" }) {
			t.Errorf("%s colors nothing", name)
		}
	}
}

// The definitions are copies of chroma's, of the version that go.mod names. Go's own differs: it
// is not a file there, and has a raw string as a string and not as a template.
func TestLanguages_AreThoseOfChroma(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "github.com/alecthomas/chroma/v2").Output()
	if err != nil {
		t.Fatal(err)
	}
	theirs := filepath.Join(strings.TrimSpace(string(out)), "lexers", "embedded")
	files, err := definitions.ReadDir("languages")
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]string{"cpp.xml": "c++.xml", "csharp.xml": "c#.xml"}
	for _, file := range files {
		if file.Name() == "go.xml" {
			continue
		}
		want, err := os.ReadFile(filepath.Join(theirs, cmp.Or(names[file.Name()], file.Name())))
		if err != nil {
			t.Error(err)
			continue
		}
		if got, err := definitions.ReadFile("languages/" + file.Name()); err != nil || string(got) != string(want) {
			t.Errorf("%s is not as chroma defines it (%v); copy it from %s", file.Name(), err, theirs)
		}
	}
}

// A process that shows no code reads no definitions of languages.
func TestLanguages_AreReadWithTheFirstCode(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	if slices.Contains(strings.Fields(string(out)), "github.com/alecthomas/chroma/v2/lexers") {
		t.Error("chroma's package of lexers is imported: it reads all of its definitions when a process starts")
	}
}
