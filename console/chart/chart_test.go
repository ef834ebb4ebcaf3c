package chart

import (
	"encoding/xml"
	"flag"
	"fmt"
	"html/template"
	"io"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/skein-threads/skein/events"
)

var update = flag.Bool("update", false, "write the golden files")

const hostile = "<script>alert(1)</script>\"'& \u202eevil"

func bars() []Bar {
	const s = 1_000_000
	return []Bar{
		{ID: "exe_1", Kind: RunBar, Name: "support", Begun: 1000 * s, Ended: 8212 * s, Usage: events.Usage{InputTokens: 1812, OutputTokens: 141}, Version: 5},
		{ID: "stp_1", Parent: "exe_1", Kind: StepBar, Name: "step 1", Begun: 1000*s + 1000, Ended: 8210 * s, Href: "/console/threads/T-1?at=6"},
		{ID: "m1", Parent: "stp_1", Kind: ModelBar, Name: "gpt-5", Begun: 1000*s + 2000, Ended: 1004 * s, Usage: events.Usage{InputTokens: 812, OutputTokens: 96}},
		{ID: "mark", Parent: "stp_1", Kind: MarkBar, Name: "attempt 1 failed", Detail: "503", Begun: 1001 * s, Ended: 1001 * s},
		{ID: "w1", Parent: "stp_1", Kind: WaitBar, Name: "approval of refund", Detail: "granted by key:3f6c", Begun: 1004 * s, Ended: 8206 * s},
		{ID: "t1", Parent: "stp_1", Kind: ToolBar, Name: "refund", Begun: 8206 * s, Ended: 8207 * s, Failed: true, Detail: "2 attempts"},
		{ID: "t2", Parent: "t1", Kind: ToolBar, Name: hostile, Detail: hostile, Begun: 8206*s + 500_000, Ended: 8206 * s}, // ends before it began
		{ID: "stp_2", Parent: "exe_1", Kind: StepBar, Name: "step 2", Begun: 8210 * s},
		{ID: "m2", Parent: "stp_2", Kind: ModelBar, Name: "gpt-5", Begun: 8210 * s, Usage: events.Usage{InputTokens: 1000, OutputTokens: 45}},
	}
}

func TestWaterfall_GoldenFiles(t *testing.T) {
	const now = 8212 * 1_000_000
	cost := func(b *Bar) string {
		u := b.Usage
		return fmt.Sprintf("$%.4f", float64(u.InputTokens)/1e6+float64(u.OutputTokens)/1e5)
	}
	for name, w := range map[string]Waterfall{
		"waterfall":        {ID: "exe_1", Title: "Run of " + hostile, Bars: bars(), Now: now, Cost: cost},
		"waterfall-empty":  {ID: "exe_1", Title: "Nothing"},
		"waterfall-one":    {ID: "exe_1", Title: "One", Bars: bars()[7:8], Now: now},
		"waterfall-moment": {ID: "exe_1", Title: "A moment", Bars: bars()[3:4], Now: now},
	} {
		golden(t, name, w.HTML())
	}
}

// Bars are drawn in the order of their time, below their parents, whatever their order was.
func TestWaterfall_OrderIsThatOfTime(t *testing.T) {
	list := bars()
	for i, j := 0, len(list)-1; i < j; i, j = i+1, j-1 {
		list[i], list[j] = list[j], list[i]
	}
	var names []string
	for _, b := range nest(list) {
		names = append(names, fmt.Sprint(b.depth, " ", b.ID))
	}
	if got, want := strings.Join(names, ", "), "0 exe_1, 1 stp_1, 2 m1, 2 mark, 2 w1, 2 t1, 3 t2, 1 stp_2, 2 m2"; got != want {
		t.Errorf("%s; want %s", got, want)
	}
}

// Ten thousand bars, parents of one another and chains are bounded.
func TestWaterfall_IsBounded(t *testing.T) {
	var many, chain []Bar
	for i := range 10_000 {
		many = append(many, Bar{ID: fmt.Sprint(i), Kind: ToolBar, Name: strings.Repeat(hostile, 1000), Begun: events.Time(i), Ended: events.Time(2 * i)})
		chain = append(chain, Bar{ID: fmt.Sprint(i), Parent: fmt.Sprint(i - 1), Kind: ToolBar, Begun: events.Time(10_000 - i)})
	}
	chain[0].Parent = "9999"
	for name, list := range map[string][]Bar{"many": many, "chain": chain} {
		got := string(Waterfall{ID: "w", Title: "w", Bars: list}.HTML())
		if rows := strings.Count(got, "<tr class="); rows != MaxBars || !strings.Contains(got, "9,700 more are not drawn") {
			t.Errorf("%s: %d rows", name, rows)
		}
		if len(got) > 1000*MaxBars {
			t.Errorf("%s: %d bytes", name, len(got))
		}
		check(t, got)
	}
}

// What a person took two hours for does not hide the second that the model took.
func TestScale_LongWaitsAreShortened(t *testing.T) {
	s := newScale(bars(), 8212*1_000_000)
	if len(s.gaps) != 1 || s.gaps[0].micros != 7202*1_000_000 {
		t.Fatalf("gaps: %v", s.gaps)
	}
	if model := s.of(1004 * 1_000_000); model < 25 {
		t.Errorf("the call of the model ends at %.1f", model)
	}
	for at := events.Time(999_000_000); at < 8213_000_000; at += 1_000_000 {
		if a, b := s.of(at), s.of(at+1_000_000); b < a || a < 0 || b > 100 {
			t.Fatalf("%d is at %f, and a second later at %f", at, a, b)
		}
	}
}

func family() Family {
	return Family{
		ID: "family", Title: "Family of order 42",
		Nodes: []Node{
			{ID: "a", Title: "Order 42", Detail: "support", Status: "open", Href: "/console/threads/a"},
			{ID: "b", Title: "Forked: Order 42", Detail: "support", Status: "streaming", Href: "/console/threads/b", Here: true},
			{ID: "c", Title: hostile, Detail: hostile, Status: "open", Href: "javascript:\"><script>"},
			{ID: "d", Title: "Refund", Detail: "refunds", Status: "closed", Href: "/console/threads/d"},
			{ID: "e", Title: "An old order", Detail: "support", Status: "open", Href: "/console/threads/e"},
		},
		Relations: []Relation{
			{"a", "b", "fork", "at message 3"}, {"a", "c", "subagent", ""}, {"b", "d", "handoff", "the refund"},
			{"a", "e", "mention", "the earlier order"}, {"d", "d", "fork", ""}, {"x", "a", "fork", ""}, {"d", "b", "fork", "a circle"},
		},
	}
}

func TestFamily_GoldenFiles(t *testing.T) {
	golden(t, "family", family().HTML())
	golden(t, "family-empty", Family{ID: "family"}.HTML())
	golden(t, "family-one", Family{ID: "family", Title: "Alone", Nodes: family().Nodes[:1]}.HTML())
}

func TestFamily_IsBounded(t *testing.T) {
	f := Family{ID: "f", Title: "f"}
	for i := range 10_000 {
		f.Nodes = append(f.Nodes, Node{ID: fmt.Sprint(i), Title: strings.Repeat(hostile, 100)})
		f.Relations = append(f.Relations, Relation{fmt.Sprint(i), fmt.Sprint((i + 1) % 10_000), "fork", ""})
	}
	f.Relations[MaxNodes-1].To = "0" // all are ancestors of one another
	got := string(f.HTML())
	if n := strings.Count(got, `class="node`); n != MaxNodes || !strings.Contains(got, "9,800 more threads") {
		t.Errorf("%d nodes", n)
	}
	check(t, got)
}

func TestSparkline_GoldenFiles(t *testing.T) {
	golden(t, "spark", Sparkline{ID: "s", Title: "commits/s " + hostile, Points: []float64{0, 3, 2, math.NaN(), 9, 8.5, math.Inf(1), 4}}.HTML())
	golden(t, "spark-empty", Sparkline{ID: "s", Title: "nothing"}.HTML())
	golden(t, "spark-one", Sparkline{ID: "s", Title: "one", Points: []float64{7}, Format: func(f float64) string { return fmt.Sprintf("%.0f ms", f) }}.HTML())
	golden(t, "spark-flat", Sparkline{ID: "s", Title: "flat", Points: []float64{5, 5, 5}}.HTML())
}

func TestSparkline_IsBounded(t *testing.T) {
	points := make([]float64, 10_000)
	points[4321] = 77
	got := string(Sparkline{ID: "s", Title: "peak", Points: points}.HTML())
	if len(got) > 20_000 || !strings.Contains(got, "and 77.") {
		t.Errorf("%d bytes: %.300s", len(got), got)
	}
	check(t, got)
}

func TestDuration_IsShort(t *testing.T) {
	for micros, want := range map[int64]string{
		-1: "0 s", 0: "0 s", 999: "999 µs", 1000: "1 ms", 1240: "1.2 ms", 12_400: "12 ms", 1_240_000: "1.2 s", 59_000_000: "59 s",
		61_000_000: "1 min 1 s", 7_200_000_000: "2 h", 7_260_000_000: "2 h 1 min", 50 * 3600 * 1_000_000: "2 d 2 h",
	} {
		if got := Duration(micros); got != want {
			t.Errorf("%d µs: %s, want %s", micros, got, want)
		}
	}
	if got := Count(-1234567); got != "-1,234,567" {
		t.Error(got)
	}
}

func golden(t *testing.T, name string, got template.HTML) {
	t.Helper()
	check(t, string(got))
	file := "testdata/golden/" + name + ".html"
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != string(want) {
		t.Errorf("%s differs (go test -update writes it):\n%s", file, got)
	}
}

// check refuses what is not well formed, scripts, inline style, handlers, and characters that
// change the direction of a text.
func check(t *testing.T, text string) {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader("<x>" + text + "</x>"))
	d.Entity = xml.HTMLEntity
	for {
		token, err := d.Token()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatalf("%v in %.2000s", err, text)
		}
		start, ok := token.(xml.StartElement)
		if !ok {
			continue
		}
		if start.Name.Local == "script" || start.Name.Local == "style" {
			t.Errorf("an element %s", start.Name.Local)
		}
		for _, a := range start.Attr {
			if strings.HasPrefix(a.Name.Local, "on") || a.Name.Local == "style" {
				t.Errorf("<%s %s=%q>", start.Name.Local, a.Name.Local, a.Value)
			}
		}
	}
	if strings.ContainsRune(text, 0x202e) {
		t.Error("the direction of the text changes")
	}
}
