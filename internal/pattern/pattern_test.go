package pattern

import (
	"errors"
	"math/rand/v2"
	"regexp"
	"regexp/syntax"
	"strings"
	"testing"
)

func expressions() []string {
	return []string{
		"a", "ab+", "^a", "b$", "^$", `\s`, `\bab\b`, "[^a]", "(?i)A", `a\nb`, `\Aab`, `b\z`, "a|^b", "(?s)a.b", "(?m)^b$", "", "a*", "é", `\x{e9}|b.a`,
		`(?U)a+`, `$`, `a.?$`, "(ab){2,}", "ab|a", "a(b x|ab)", "(a|b){3,7}b", `\pL+x`, "(?:a{2}){3}", "[a-c]{0,4}$", "(a*)*b", "(?i)k+s",
	}
}

// What is counted without compiling is not less than what is compiled, and not
// far more.
func TestSize_IsThatOfTheProgram(t *testing.T) {
	for _, e := range append(expressions(), ".{999}", strings.Repeat(".{999}|", 500)+"x", "(.{10}){100}", "x{0,1000}", "(a|b|c){1,500}", `(\pL\d){50,}`) {
		n, err := Size(e)
		if err != nil {
			t.Fatal(err)
		}
		parsed, err := syntax.Parse(e, syntax.Perl)
		if err != nil {
			t.Fatal(err)
		}
		program, err := syntax.Compile(parsed.Simplify())
		if err != nil {
			t.Fatal(err)
		}
		if real := len(program.Inst); n < real || n > 8*real+40 {
			t.Errorf("%.20q: counted %d, compiled %d", e, n, real)
		}
	}
}

func TestCompile_RefusesWhatIsTooLarge(t *testing.T) {
	for _, e := range []string{"a.{999}|b.{999}", strings.Repeat(`\pL`, 1300), strings.Repeat("x", MaxText+1), "(.{100}){10}"} {
		var large *SizeError
		if _, err := Compile(e, 1000); !errors.As(err, &large) || large.Size <= large.Most {
			t.Errorf("%.20q: %v", e, err)
		}
	}
	if _, err := Compile("(", 1000); err == nil {
		t.Error("a parenthesis that is not closed was taken")
	}
}

// In pieces or not, the answer is that of the library.
func TestMatch_IsTheLibrarys(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	alphabet := []string{"a", "b", "ab", " ", "\n", "\r\n", "é", "x", "\xff", "K", "ſ"}
	for range 3000 {
		var text strings.Builder
		for range r.IntN(30) {
			text.WriteString(alphabet[r.IntN(len(alphabet))])
		}
		e := expressions()[r.IntN(len(expressions()))]
		p, err := Compile(e, 1000)
		if err != nil {
			t.Fatal(err)
		}
		want := regexp.MustCompile(e).FindStringIndex(text.String())
		free := func(int) bool { return true }
		if found, ok := p.Match([]byte(text.String()), free); !ok || found != (want != nil) {
			t.Fatalf("%q in %q: %v %v", e, text.String(), found, ok)
		}
		in := p.reader([]byte(text.String()), free)
		in.window = 1 + r.IntN(4)
		if where := p.expression.FindReaderIndex(in); (where == nil) != (want == nil) || where != nil && where[0] != want[0] {
			t.Fatalf("%q in %q: %v, want %v", e, text.String(), where, want)
		}
	}
}

// Work that is refused is not made: the text is not read on.
func TestMatch_StopsWhenItIsRefused(t *testing.T) {
	p, err := Compile("(x.{500}){2}y", 5000)
	if err != nil {
		t.Fatal(err)
	}
	text := []byte(strings.Repeat("x", 1<<20))
	spent := 0
	spend := func(steps int) bool {
		if steps > Window {
			t.Errorf("%d steps are asked for at once", steps)
		}
		spent += steps
		return spent < 3*Window
	}
	if found, ok := p.Match(text, spend); found || ok {
		t.Error("it went on")
	}
	spent = 0
	if at, ok := p.Find(text, spend); at >= 0 || ok {
		t.Error("it went on")
	}
	if found, ok := p.Match([]byte("short"), func(int) bool { return false }); found || ok {
		t.Error("a short text is free")
	}
}
