package page

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "write the golden files")

func TestJSON_GoldenFile(t *testing.T) {
	before := `{"status":"open","title":"Order 42","list":[1,2,3],"deep":{"a":{"b":1,"c":"<script>"}},"gone":true,"k1":1,"k2":2,"k3":3,"k4":4,"k5":5,"k6":6,"k7":7,"k8":8,"k9":9,"z":0}`
	after := ` {"title": "Order 42, shipped", "status":"open","list":[1,3,4],"deep":{"a":{"c":"<script>\u202e\"","b":1}},"k9":9,"k8":8,"k7":7,"k6":6,"k5":5,"k4":4,"k3":3,"k2":2,"k1":1,"z":1}`
	got := string(JSONDiff([]byte(before), []byte(after)))
	const file = "testdata/golden/document.html"
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs (go test -update writes it):\n%s", file, got)
	}
	if strings.Contains(got, "<script>") || strings.ContainsRune(got, 0x202e) {
		t.Error("it is not escaped")
	}
}

// The order of fields and the space between them are no difference.
func TestJSON_ComparesMeaning(t *testing.T) {
	if got := string(JSONDiff([]byte(`{"a":1,"b":[true,null]}`), []byte("{\n\"b\": [true, null], \"a\": 1}"))); !strings.Contains(got, "Nothing differs") {
		t.Error(got)
	}
	if got := string(JSONDiff([]byte(`{"n":9007199254740993}`), []byte(`{"n":9007199254740992}`))); !strings.Contains(got, "9007199254740993") {
		t.Errorf("numbers are rounded: %s", got)
	}
	if got := string(JSONDiff(nil, []byte(`{"a":1}`))); !strings.Contains(got, `class="ins"`) || strings.Contains(got, `class="del"`) {
		t.Error(got)
	}
	if got := string(JSONDiff([]byte(`no JSON`), []byte(`{"a":1}`))); !strings.Contains(got, `class="del"`) {
		t.Error(got)
	}
}

// The rows of a difference lead from one text to the other.
func TestText_RowsAreTheDifference(t *testing.T) {
	got := string(textDiff("a\nb\nc\n", "a\nx\nc\nd\n"))
	for _, want := range []string{
		`<tr class="del"><td class="num">2</td><td class="num"></td><td class="sign">−</td><td><code>b</code>`,
		`<tr class="ins"><td class="num"></td><td class="num">2</td><td class="sign">+</td><td><code>x</code>`,
		`<tr class="equal"><td class="num">3</td><td class="num">3</td><td class="sign"></td><td><code>c</code>`,
		`<tr class="ins"><td class="num"></td><td class="num">4</td><td class="sign">+</td><td><code>d</code>`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("there is no %s in\n%s", want, got)
		}
	}
}

func TestText_IsBounded(t *testing.T) {
	lines := func(n, step int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintln(&b, i*step%7919)
		}
		return b.String()
	}
	for name, sides := range map[string][2]string{
		"all lines differ":    {lines(200_000, 3), lines(200_000, 5)},
		"one line":            {strings.Repeat("a", 5<<20), strings.Repeat("b", 5<<20)},
		"empty lines":         {strings.Repeat("\n", 1<<20), strings.Repeat("\n\n", 1<<19) + "x"},
		"alternating":         {strings.Repeat("a\nb\n", 200_000), strings.Repeat("b\na\n", 200_000)},
		"deep":                {strings.Repeat("[", 500_000), strings.Repeat("[", 400_000)},
		"half of a character": {strings.Repeat("é", 1<<20), "x"},
	} {
		began := time.Now()
		got := string(JSONDiff([]byte(sides[0]), []byte(sides[1])))
		if took := time.Since(began); took > 3*time.Minute { // what is not bounded takes hours
			t.Errorf("%s took %s", name, took)
		} else if took > 500*time.Millisecond {
			t.Logf("%s took %s", name, took)
		}
		if len(got) > maxRows*2000 {
			t.Errorf("%s: %d bytes", name, len(got))
		}
	}
}

// Documents that are nested deeply do not grow with the square of their size.
func TestIndented_DeepDocument(t *testing.T) {
	deep := []byte(strings.Repeat("[", 9_999) + strings.Repeat("]", 9_999))
	wide := []byte(strings.Repeat("[", 100) + strings.Repeat("1,", 400_000) + "1" + strings.Repeat("]", 100))
	for name, document := range map[string][]byte{"deep": deep, "wide": wide} {
		for _, text := range []string{Indented(document), written(document)} {
			if text != string(document) {
				t.Errorf("%s: %d bytes have become %d", name, len(document), len(text))
			}
		}
	}
	if got, want := written([]byte(`{"b":"[\\\"[",  "a":[]}`)), "{\n  \"b\": \"[\\\\\\\"[\",\n  \"a\": []\n}"; got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
}

// What would turn a document's text around is escaped, and the document means the same.
func TestWritten_EscapesWhatIsHidden(t *testing.T) {
	const document = "{\"to\":\"a\u202eb\U000e0041\"}"
	got := written([]byte(document))
	if want := "{\n  \"to\": \"a\\u202eb\\udb40\\udc41\"\n}"; got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	if JSONDiff([]byte(document), []byte(got)) != JSONDiff(nil, nil) {
		t.Error("it means something else")
	}
}
