package console_test

import (
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
)

// titled makes a thread with a title for each, and returns their ids.
func (w *world) titled(titles ...string) map[string]string {
	w.t.Helper()
	ids := map[string]string{}
	for _, title := range titles {
		reply, err := w.client.Send(w.t.Context(), "", events.CreateThread{Title: title})
		if err != nil {
			w.t.Fatal(err)
		}
		ids[title] = reply.ThreadID
		if _, err := client.Read(w.t.Context(), w.client.WithMinSeq(reply.Seq), events.ListThreads{}); err != nil {
			w.t.Fatal(err)
		}
	}
	return ids
}

// tick clicks the box of a thread.
func tick(title string) chromedp.Action {
	return chromedp.Click(`input[aria-label="Select `+title+`"]`, chromedp.ByQuery)
}

const (
	listed = `[...document.querySelectorAll("td.what a")].map((a) => a.textContent).join(" ")`
	ticked = `[...document.querySelectorAll("td.tick input:checked")].map((b) => b.getAttribute("aria-label").slice(7)).join(" ")`
	offers = `getComputedStyle(document.querySelector(".chosen")).visibility === "visible"`
)

// Threads that are ticked are archived, brought back and deleted together, without leaving the
// list; what to do with them is shown while there are any. They stay ticked while the list changes.
func TestBrowser_BulkChanges(t *testing.T) {
	chromium(t)
	w := newWorld(t, "")
	ids := w.titled("one", "two", "three", "four")
	b := w.open()
	b.visit("/threads")
	b.live()
	b.until(listed + ` === "four three two one"`)
	if eval[bool](b, offers) {
		t.Error("nothing is selected, and the page offers to change it")
	}
	b.do(tick("one"), tick("three"))
	b.until(offers)
	b.shot("selected")
	if _, err := w.client.Send(t.Context(), ids["two"], events.UpdateThread{Title: new("second")}); err != nil {
		t.Fatal(err)
	}
	b.until(listed + ` === "second four three one"`)
	if still := eval[string](b, ticked); still != "three one" {
		t.Errorf("after the list has changed, %q are ticked", still)
	}
	if focus := eval[string](b, `document.activeElement.getAttribute("aria-label")`); focus != "Select three" {
		t.Errorf("after the list has changed, the focus is at %q", focus)
	}
	b.do(chromedp.Click(`button[value=archive]`, chromedp.ByQuery))
	b.until(listed + ` === "second four"`)
	b.until(`!(` + offers + `)`)

	b.visit("/threads?archived=true")
	b.live()
	b.until(listed + ` === "one three"`)
	b.do(tick("one"), chromedp.Click(`button[value=restore]`, chromedp.ByQuery))
	b.until(listed + ` === "three"`)
	b.do(tick("three"), chromedp.Click(`button[value=delete]`, chromedp.ByQuery)) // the browser's question is answered with yes
	b.sees("No thread matches")

	b.visit("/threads")
	b.live()
	b.until(listed + ` === "one second four"`)
	b.do(chromedp.Click(`input[data-check-all]`, chromedp.ByQuery), tick("one"))
	b.until(ticked + ` === "second four"`)
	b.do(chromedp.Click(`button[value=delete]`, chromedp.ByQuery))
	b.until(listed + ` === "one"`)
	for title, id := range ids {
		_, err := client.Read(t.Context(), w.client, events.GetThread{ThreadID: id})
		if gone := events.AsError(err).Code == events.NotFound; gone != (title != "one") {
			t.Errorf("thread %s: %v", title, err)
		}
	}
}

// Without JavaScript the list can be changed too: what to do is always shown.
func TestBrowser_BulkWithoutJavaScript(t *testing.T) {
	chromium(t)
	w := newWorld(t, "")
	w.titled("one", "two")
	b := w.open(emulation.SetScriptExecutionDisabled(true))
	b.do(chromedp.Navigate(w.http+"/console/threads"), chromedp.WaitVisible("button[value=archive]", chromedp.ByQuery), tick("one"), chromedp.Click("button[value=archive]", chromedp.ByQuery))
	b.do(chromedp.WaitNotPresent(`input[aria-label="Select one"]`, chromedp.ByQuery), chromedp.WaitVisible(`input[aria-label="Select two"]`, chromedp.ByQuery))
	var body string
	b.do(chromedp.Navigate(w.http+"/console/threads?archived=true"), chromedp.Text("#main", &body, chromedp.ByQuery))
	if !strings.Contains(body, "one") || strings.Contains(body, "two") {
		t.Errorf("the archived threads: %s", body)
	}
}
