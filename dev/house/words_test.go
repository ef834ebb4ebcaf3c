package house

import (
	"cmp"
	"go/ast"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode"
)

// word is a word or phrase that Go programmers do not use for what it was used for
// here, and what to write instead.
type word struct {
	pattern *regexp.Regexp // has a group for what follows and makes it right
	instead string
	names   bool // only names may not contain it
}

// oldWords are the words that do not come back. A space in a pattern matches the end
// of a line too, and an identifier is checked as its words: takesAnew as "takes anew".
func oldWords() []word {
	var words []word
	for _, w := range []struct {
		pattern, but, instead string // but: what may follow it
		names                 bool
	}{
		{pattern: "gives", but: "up|way", instead: "returns, has, or sends"},
		{pattern: "given back", instead: "returned"},
		{pattern: "anew", instead: "again, or re-creates, rebuilds"},
		{pattern: "once more", instead: "again"},
		{pattern: "beside", instead: "alongside, next to, or besides"},
		{pattern: "whoever", instead: "the caller, the client, any process that"},
		{pattern: "under way", instead: "in flight, in progress, or running"},
		{pattern: "heard|deaf", instead: "received, or not connected"},
		{pattern: "of no use", instead: "invalid, and why"},
		{pattern: "rubbish|ailments?", instead: "garbage, invalid data, or faults"},
		{pattern: "kin", instead: "related, relatives"},
		{pattern: "born", instead: "created"},
		{pattern: "for company", instead: "to fill a batch"},
		{pattern: "(?:takes it|is taken) for", instead: "treats as"},
		{pattern: "nobody|somebody|did", instead: "say what the function or value is, or what the test shows", names: true},
	} {
		words = append(words, word{
			pattern: regexp.MustCompile(`(?i)\b(?:` + strings.ReplaceAll(w.pattern, " ", `\s+`) + `)\b(\s+(?:` + cmp.Or(w.but, "$a") + `)\b)?`),
			instead: w.instead,
			names:   w.names,
		})
	}
	return words
}

func TestWords_GoFiles(t *testing.T) {
	for _, f := range tree(t) {
		if f.path != "dev/house/words_test.go" { // which lists the words
			report(t, checkWords(f))
		}
	}
}

func TestWords_Pages(t *testing.T) {
	words := oldWords()
	root := top(t)
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/adr/*.md", "examples/*/*.md"} {
		pages, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(pattern)))
		if err != nil {
			t.Fatal(err)
		}
		for _, page := range pages {
			text, err := os.ReadFile(page)
			if err != nil {
				t.Fatal(err)
			}
			rel, _ := filepath.Rel(root, page)
			report(t, wordsIn(words, token.Position{Filename: filepath.ToSlash(rel), Line: 1}, string(text)))
		}
	}
}

// checkWords finds old words in the comments, strings and declared names of a file, and
// in its own name.
func checkWords(f sourceFile) []finding {
	words := oldWords()
	found := namesWith(words, token.Position{Filename: f.path, Line: 1}, strings.TrimSuffix(path.Base(f.path), ".go"))
	for _, group := range f.ast.Comments {
		var text strings.Builder
		for _, c := range group.List {
			text.WriteString(strings.TrimPrefix(c.Text, "//") + "\n")
		}
		found = append(found, wordsIn(words, f.fset.Position(group.Pos()), text.String())...)
	}
	names := map[*ast.Ident]bool{}
	ast.Inspect(f.ast, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ImportSpec: // a module of others is named as it is
			return false
		case *ast.BasicLit:
			if n.Kind == token.STRING {
				found = append(found, wordsIn(words, f.fset.Position(n.Pos()), n.Value)...)
			}
		case *ast.FuncDecl:
			names[n.Name] = true
		case *ast.TypeSpec:
			names[n.Name] = true
		case *ast.ValueSpec:
			for _, name := range n.Names {
				names[name] = true
			}
		case *ast.Field:
			for _, name := range n.Names {
				names[name] = true
			}
		case *ast.AssignStmt:
			for _, left := range n.Lhs {
				if name, is := left.(*ast.Ident); is && n.Tok == token.DEFINE {
					names[name] = true
				}
			}
		}
		return true
	})
	for name := range names {
		found = append(found, namesWith(words, f.fset.Position(name.Pos()), name.Name)...)
	}
	return found
}

// wordsIn finds old words in prose that starts at a position.
func wordsIn(words []word, start token.Position, text string) (found []finding) {
	for _, w := range words {
		if w.names {
			continue
		}
		for _, at := range w.pattern.FindAllStringSubmatchIndex(text, -1) {
			if at[2] >= 0 {
				continue
			}
			pos := start
			pos.Line += strings.Count(text[:at[0]], "\n")
			found = append(found, finding{pos: pos, what: strconv.Quote(text[at[0]:at[1]]) + " is not a word of ours", fix: "write " + w.instead})
		}
	}
	return found
}

// namesWith finds old words in an identifier or the name of a file.
func namesWith(words []word, pos token.Position, name string) (found []finding) {
	apart := wordsOf(name)
	for _, w := range words {
		if m := w.pattern.FindStringSubmatch(apart); m != nil && m[1] == "" {
			found = append(found, finding{pos: pos, what: "the name " + name + " contains " + strconv.Quote(m[0]), fix: "write " + w.instead})
		}
	}
	return found
}

// wordsOf returns the words of an identifier, with spaces between them.
func wordsOf(name string) string {
	var apart strings.Builder
	for _, r := range name {
		if unicode.IsUpper(r) || r == '_' {
			apart.WriteByte(' ')
		}
		if r != '_' {
			apart.WriteRune(r)
		}
	}
	return apart.String()
}

func TestWordRulesBite(t *testing.T) {
	for text, want := range map[string]int{
		"package p\n\n// f gives a number.\nfunc f() int":             1,
		"package p\n\n// It gives\n// up, and gives way.\nfunc f()":   0,
		"package p\n\n// It is of no\n// use, and a client's kin.":    2,
		"package p\n\nvar a = `made\nanew`":                           1,
		"package p\n\nfunc TestNobodyKnows() {}":                      1,
		"package p\n\n// Nobody did that; besides, it is skinny.":     0,
		"package p\n\nfunc f() { readAnew, b := 1, 2; _ = readAnew }": 1,
		"package p\n\nfunc deafen(candid int) {}":                     0,
	} {
		if got := checkWords(parseSource(t, "events/a.go", []byte(text))); len(got) != want {
			t.Errorf("%q: %d findings, want %d: %v", text, len(got), want, got)
		}
	}
	if got := checkWords(parseSource(t, "events/kin_test.go", []byte("package p"))); len(got) != 1 {
		t.Errorf("a file's name: %v", got)
	}
	got := checkWords(parseSource(t, "events/a.go", []byte("package p\n\nvar a = `made\nanew`")))
	if len(got) != 1 || got[0].String() != `events/a.go:4: "anew" is not a word of ours; write again, or re-creates, rebuilds` {
		t.Errorf("%v", got)
	}
}
