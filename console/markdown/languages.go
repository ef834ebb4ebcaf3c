package markdown

import (
	"embed"
	"io/fs"
	"strings"

	"github.com/alecthomas/chroma/v2"
)

// definitions are the languages whose code is colored, as chroma's own lexers define them.
// chroma's package of lexers is not imported: it reads 280 definitions whenever a process
// starts, also one that shows no code.
//
//go:embed languages/*.xml
var definitions embed.FS

// languages are lexers by their names, and by the ends of their files' names, in lower case.
type languages map[string]chroma.Lexer

// openLanguages reads the definitions. What a lexer matches is compiled when it is first used.
func openLanguages() languages {
	registry, known := chroma.NewLexerRegistry(), languages{}
	files, _ := fs.Glob(definitions, "languages/*.xml") // the pattern is valid
	for _, file := range files {
		lexer := registry.Register(chroma.MustNewXMLLexer(definitions, file)) // it is part of the program
		config := lexer.Config()
		for _, name := range append([]string{config.Name}, config.Aliases...) {
			known[strings.ToLower(name)] = lexer
		}
	}
	for _, lexer := range registry.Lexers {
		for _, pattern := range lexer.Config().Filenames {
			if ending, ok := strings.CutPrefix(pattern, "*."); ok && known[ending] == nil {
				known[ending] = lexer
			}
		}
	}
	return known
}

// lexer returns the lexer of a language, nil if there is none.
func (l languages) lexer(language string) chroma.Lexer { return l[strings.ToLower(language)] }
