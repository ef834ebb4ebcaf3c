package markdown

import (
	"fmt"
	"strings"

	"github.com/alecthomas/chroma/v2"
)

// color is the color of some kinds of tokens on light and on dark ground. Each has a contrast of
// at least 4.5 to 1 on the grounds of code.
type color struct {
	class, light, dark string
	kinds              []chroma.TokenType
}

// colors are the colors of code; the first that fits a token is its own.
type colors []color

func palette() colors {
	return colors{
		{"hl-com", "#59636e", "#9198a1", []chroma.TokenType{chroma.Comment}},
		{"hl-del", "#a40e26", "#ff9492", []chroma.TokenType{chroma.GenericDeleted, chroma.GenericError}},
		{"hl-ins", "#116329", "#7ee787", []chroma.TokenType{chroma.GenericInserted}},
		{"hl-head", "#0550ae", "#79c0ff", []chroma.TokenType{chroma.GenericHeading, chroma.GenericSubheading}},
		{"hl-type", "#7d4200", "#ffb77c", []chroma.TokenType{chroma.KeywordType, chroma.NameClass, chroma.NameBuiltin, chroma.NameNamespace}},
		{"hl-lit", "#0550ae", "#79c0ff", []chroma.TokenType{chroma.LiteralNumber, chroma.KeywordConstant, chroma.NameConstant, chroma.NameAttribute}},
		{"hl-key", "#a3123f", "#ff9492", []chroma.TokenType{chroma.Keyword, chroma.OperatorWord}},
		{"hl-str", "#0a3069", "#a5d6ff", []chroma.TokenType{chroma.LiteralString}},
		{"hl-fun", "#6639ba", "#d2a8ff", []chroma.TokenType{chroma.NameFunction, chroma.NameDecorator}},
		{"hl-tag", "#116329", "#7ee787", []chroma.TokenType{chroma.NameTag}},
	}
}

// Stylesheet returns the rules for the classes of colored code, for light and for dark ground:
// the property color-scheme of the page decides.
func Stylesheet() string {
	var b strings.Builder
	for _, c := range palette() {
		fmt.Fprintf(&b, ".%s { color: light-dark(%s, %s); }\n", c.class, c.light, c.dark)
	}
	return b.String()
}

// class returns the class of a token, empty if it has the color of text.
func (all colors) class(t chroma.TokenType) string {
	for _, c := range all {
		for _, kind := range c.kinds {
			if t == kind || t.Category() == kind || t.SubCategory() == kind {
				return c.class
			}
		}
	}
	return ""
}
