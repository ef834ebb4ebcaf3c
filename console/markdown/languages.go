package markdown

import (
	"strings"

	"github.com/alecthomas/chroma/v2"
	"github.com/alecthomas/chroma/v2/lexers"
)

// languages are chroma's lexers by their names, and by the ends of their files' names, in lower
// case. chroma's own search compares a name that it does not know with every pattern of every
// language.
type languages map[string]chroma.Lexer

// indexLanguages returns all languages. What a lexer matches is compiled when it is first used.
func indexLanguages() languages {
	known := languages{}
	for _, lexer := range lexers.GlobalLexerRegistry.Lexers {
		config := lexer.Config()
		for _, name := range append([]string{config.Name}, config.Aliases...) {
			known[strings.ToLower(name)] = lexer
		}
	}
	for _, lexer := range lexers.GlobalLexerRegistry.Lexers {
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
