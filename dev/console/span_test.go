package console_test

import (
	"fmt"
	"html"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/skein-threads/skein/cmd/skein/operator"
)

// bars finds the kind, the address and the name of each row of a waterfall.
var bars = regexp.MustCompile(`<span class="kind">(\w+)</span> <a href="([^"]+)"[^>]*>([^<]+)</a>`)

// A row of a run leads to what went in and what came out, next to the run.
func TestRun_SpanShowsInputAndOutput(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	if err := operator.FillDemo(t.Context(), w.client); err != nil {
		t.Fatal(err)
	}
	v := w.visitor()
	for _, c := range []struct {
		thread, kind, name string
		want               []string
	}{
		{"key:order:42", "run", "support", []string{"Where is my order 42?", "Parcel Express", "Usage", "300"}},
		{"key:order:42", "step", "step 1", []string{"Output", "find_order", "Parcel Express"}},
		{"key:order:42", "model", "script", []string{"Usage", "120", "Where is my order 42?", "I look it up"}},
		{"key:order:42", "tool", "find_order", []string{"Input", `"id": 42`, "Output", "Parcel Express"}},
		{"key:order:42:refund", "wait", "approval of refund", []string{"Input", "39.9"}},
		{"key:stock:kettle", "run", "support", []string{"502 Bad Gateway"}},
		{"key:stock:kettle", "step", "step 1", []string{"502 Bad Gateway"}},
	} {
		_, body, _ := v.get("/threads/" + c.thread + "/run")
		var all []string // details of the rows of this kind
		for _, row := range bars.FindAllStringSubmatch(body, -1) {
			kind, link, name := row[1], html.UnescapeString(row[2]), row[3]
			if !strings.Contains(link, "/run?span=") {
				t.Errorf("%s: the row %s %s leads to %s", c.thread, kind, name, link)
			}
			if kind != c.kind || !strings.Contains(name, c.name) {
				continue
			}
			address, fragment, _ := strings.Cut(strings.TrimPrefix(link, "/console"), "#")
			_, chosen, _ := v.get(address)
			_, details, is := strings.Cut(chosen, `<section class="span`)
			details, _, _ = strings.Cut(details, "</section>")
			if !is || !strings.Contains(chosen, `id="`+fragment+`"`) || !strings.Contains(chosen, `<table class="waterfall">`) {
				t.Errorf("%s: %s has no details, or no row that is marked", c.thread, address)
			}
			all = append(all, details)
		}
		if !slices.ContainsFunc(all, func(details string) bool {
			return !slices.ContainsFunc(c.want, func(text string) bool { return !strings.Contains(details, text) })
		}) {
			t.Errorf("%s: no row %s %s has %q: %q", c.thread, c.kind, c.name, c.want, all)
		}
	}
}

// The details stand next to the run, are there while it changes, and are closed again.
func TestBrowser_SpanStaysInTheRun(t *testing.T) {
	chromium(t)
	w := newWorld(t, "")
	if err := operator.FillDemo(t.Context(), w.client); err != nil {
		t.Fatal(err)
	}
	b := w.open()
	for _, width := range []int64{1280, 390} {
		b.do(chromedp.EmulateViewport(width, 844))
		b.visit("/threads/key:order:42/run")
		b.live()
		b.do(chromedp.Evaluate(`[...document.querySelectorAll(".waterfall a")].find((a) => a.textContent === "find_order").click()`, nil))
		b.until(`document.querySelector(".span")?.innerText.includes("Parcel Express") && document.documentElement.dataset.ready`)
		b.until(`(() => { const [row, span] = ["#chosen", ".span"].map((at) => document.querySelector(at).getBoundingClientRect());
			return row.top >= 0 && row.bottom <= innerHeight && span.top < innerHeight && span.bottom > 0 && (innerWidth > 900 ? span.left >= row.right : span.top >= row.bottom); })()`)
		b.shot(fmt.Sprint("span-", width))
		b.do(chromedp.Click(".span .close", chromedp.ByQuery))
		b.until(`!document.querySelector(".span")`)
	}
}
