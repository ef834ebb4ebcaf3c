package console_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/cmd/skein/operator"
	"github.com/skein-threads/skein/events"
)

// The tabs Timeline, Run and Files show what happens while they are open, and keep what their
// reader has opened.
func TestBrowser_TabsAreLive(t *testing.T) {
	chromium(t)
	w := newWorld(t, "")
	if err := operator.FillDemo(t.Context(), w.client); err != nil {
		t.Fatal(err)
	}
	thread, err := client.Read(t.Context(), w.client, events.GetThread{ThreadID: "key:order:42:refund"})
	if err != nil {
		t.Fatal(err)
	}
	timeline, run, files := w.open(), w.open(), w.open()
	for b, tab := range map[*browser]string{timeline: "/timeline", run: "/run", files: "/files"} {
		b.visit("/threads/" + thread.ID + tab)
		b.live()
	}
	timeline.do(chromedp.Click("#v1 summary", chromedp.ByQuery))
	files.sees("No files here")
	run.sees("approval of refund")
	if eval[bool](run, `document.body.innerText.includes("step 2")`) {
		t.Fatal("the run is past its approval")
	}
	if _, err := w.client.Send(t.Context(), thread.ID, events.ResolveApproval{CallID: "call_refund", Grant: true}); err != nil {
		t.Fatal(err)
	}
	run.sees("step 2")
	run.until(`document.body.innerText.includes("completed")`)
	timeline.until(`[...document.querySelectorAll(".event .type")].some((e) => e.textContent === "thread.finished")`)
	newest := eval[[]int](timeline, `[...document.querySelectorAll(".event .version")].map((e) => +e.textContent)`)
	for i := 1; i < len(newest); i++ {
		if newest[i] != newest[i-1]-1 {
			t.Errorf("the timeline has the versions %v", newest)
			break
		}
	}
	if !eval[bool](timeline, `document.querySelector("#v1 details").open`) {
		t.Error("the event that was open is closed")
	}
	if _, err := w.client.Files(thread.ID).WriteFile(t.Context(), "/bill.txt", []byte("39.90"), "text/plain", events.WriteFileOptions{}); err != nil {
		t.Fatal(err)
	}
	files.until(`document.querySelector("td.what a")?.textContent === "bill.txt"`)
	timeline.until(`[...document.querySelectorAll(".event .type")].some((e) => e.textContent === "file.written")`)
	if err := w.client.Files(thread.ID).UnlinkFile(t.Context(), "/bill.txt"); err != nil {
		t.Fatal(err)
	}
	files.sees("No files here")
}

// What happens to messages and events of earlier pages while a page is open is not shown as if it
// were new, and what is new is in its place.
func TestBrowser_LiveRowsAreInOrder(t *testing.T) {
	chromium(t)
	w := newWorld(t, "")
	id, err := fillThread(t.Context(), w.client, "long", 200) // in one commit, of which the page shows the end
	if err != nil {
		t.Fatal(err)
	}
	list, err := client.Read(t.Context(), w.client, events.ListItems{ThreadID: id, Limit: new(int64(1))})
	if err != nil {
		t.Fatal(err)
	}
	talk, timeline := w.open(), w.open()
	talk.visit("/threads/" + id)
	timeline.visit("/threads/" + id + "/timeline")
	talk.live()
	timeline.live()
	if _, err := w.client.Send(t.Context(), id, events.DeleteMessage{ItemID: list.Items[0].ID}); err != nil {
		t.Fatal(err)
	}
	reply, err := w.client.Send(t.Context(), id, events.CreateItem{Item: events.UserText("And now?")})
	if err != nil {
		t.Fatal(err)
	}
	talk.sees("And now?")
	orders := `[...document.querySelectorAll("[data-rows] > [data-order]")].map((r) => +r.dataset.order)`
	timeline.until(fmt.Sprintf(`%s[0] === %d`, orders, reply.Version))
	if shown := eval[[]int](talk, orders); len(shown) != 61 || !slices.IsSorted(shown) || shown[60] != 200 {
		t.Errorf("the conversation shows %v", shown)
	}
	if shown := eval[[]int](timeline, orders); len(shown) != 52 || shown[51] != int(reply.Version)-51 {
		t.Errorf("the timeline shows %v", shown)
	}
}

// A conversation that is open for long keeps its reader's place and no more messages than it may:
// the first ones are removed, and loaded again as earlier ones are. What its reader looks at, or
// writes in, stays; then the page stops to grow at twice as many, and links its end.
func TestBrowser_LiveConversationIsBounded(t *testing.T) {
	chromium(t)
	w := newWorld(t, "")
	id, err := fillThread(t.Context(), w.client, "long", 70)
	if err != nil {
		t.Fatal(err)
	}
	b := w.open()
	b.visit("/threads/" + id)
	b.live()
	const rows, all = `document.querySelector("#items > [data-most]")`, `[...document.querySelectorAll("#items [data-order]")].map((r) => +r.dataset.order)`
	if most := eval[string](b, rows+`.dataset.most`); most != "2000" {
		t.Errorf("a page may have %s messages", most)
	}
	say := func(n int) {
		t.Helper()
		for range n {
			_, err := w.client.Send(t.Context(), id, events.CreateItem{Item: events.UserText("One more.\n\nAnd another line.")})
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	last := func(n int) string { return fmt.Sprintf(`%s.at(-1) === %d`, all, n) }

	// The reader is at the end.
	b.do(chromedp.Evaluate(rows+`.dataset.most = 80`, nil))
	say(25) // of 95, of which the page showed 60
	b.until(last(94) + ` && ` + rows + `.childElementCount <= 80`)
	b.until(`document.documentElement.scrollHeight - innerHeight - scrollY < 5`)
	for range 20 { // to the beginning
		b.do(chromedp.Evaluate(`scrollTo(0, 0)`, nil))
		if eval[bool](b, `!document.querySelector("[data-older]")`) {
			break
		}
		b.until(`!document.querySelector("[data-older]")?.dataset.busy`)
	}
	b.until(all + `[0] === 0`)
	if shown := eval[[]int](b, all); len(shown) != 95 || !slices.IsSorted(shown) || slices.Compact(shown)[94] != 94 {
		t.Errorf("after all were loaded again: %v", shown)
	}

	// The reader is at the beginning, which stays where it is.
	b.do(chromedp.Evaluate(`document.querySelector("#items [data-order]").scrollIntoView()`, nil))
	place := `document.querySelector("#items [data-order]").getBoundingClientRect().top`
	before := eval[float64](b, place)
	say(110)
	b.until(rows + `.dataset.rows === "closed"`)
	b.sees("To the end")
	if n := eval[int](b, rows+`.childElementCount`); n != 161 {
		t.Errorf("the page has %d messages, and may have 160", n)
	}
	if after := eval[float64](b, place); after < before-2 || after > before+2 {
		t.Errorf("what the reader looks at moved from %.0f to %.0f", before, after)
	}
	b.do(chromedp.Click(`.more a.button:not([data-older])`, chromedp.ByQuery))
	b.until(last(204))

	// The reader has begun to edit a message, and looks at the end.
	b.live()
	b.do(chromedp.Evaluate(rows+`.dataset.most = 70; document.querySelector("details.edit").open = true; document.querySelector("details.edit textarea").value = "changed"; scrollTo(0, document.documentElement.scrollHeight)`, nil))
	say(30)
	b.until(last(234))
	if text := eval[string](b, `document.querySelector("details.edit textarea").value`); text != "changed" || eval[int](b, rows+`.childElementCount`) != 90 {
		t.Errorf("what was written in a message is %q", text)
	}
}

// A timeline that is open for long keeps its newest events, and links those before them; while its
// reader looks at the oldest, it keeps them, and stops to grow at twice as many.
func TestBrowser_LiveTimelineIsBounded(t *testing.T) {
	chromium(t)
	w := newWorld(t, "")
	id, err := fillThread(t.Context(), w.client, "long", 70)
	if err != nil {
		t.Fatal(err)
	}
	b := w.open()
	b.visit("/threads/" + id + "/timeline")
	b.live()
	const rows, versions = `document.querySelector("#timeline-events > [data-most]")`, `[...document.querySelectorAll("#timeline-events [data-order]")].map((r) => +r.dataset.order)`
	if most := eval[string](b, rows+`.dataset.most`); most != "2000" {
		t.Errorf("a page may have %s events", most)
	}
	newest := int64(0)
	say := func(n int) {
		t.Helper()
		for range n {
			reply, err := w.client.Send(t.Context(), id, events.CreateItem{Item: events.UserText("One more.")})
			if err != nil {
				t.Fatal(err)
			}
			newest = reply.Version
		}
	}
	b.do(chromedp.Evaluate(rows+`.dataset.most = 60`, nil))
	say(30)
	b.until(fmt.Sprintf(`%s[0] === %d && %s.childElementCount <= 60`, versions, newest, rows))
	before := eval[[]int](b, versions)
	oldest := before[len(before)-1]
	b.do(chromedp.Click(`#timeline-events .earlier a`, chromedp.ByQuery))
	b.until(fmt.Sprintf(`%s[0] === %d`, versions, oldest-1))

	b.visit("/threads/" + id + "/timeline")
	b.live()
	b.do(chromedp.Evaluate(rows+`.dataset.most = 60; scrollTo(0, document.documentElement.scrollHeight)`, nil))
	oldest = eval[int](b, versions+`.at(-1)`)
	say(90)
	b.until(`document.querySelector("[data-rows=closed]")`)
	b.sees("Newest events")
	if shown := eval[[]int](b, versions); len(shown) != 121 || shown[120] != oldest {
		t.Errorf("it shows %d events, and may have 120: %v", len(shown), shown)
	}
	b.do(chromedp.Click(`#timeline-events .more:not(.earlier) a`, chromedp.ByQuery))
	b.until(fmt.Sprintf(`%s[0] === %d`, versions, newest))
}

// A message that is replaced keeps what its reader opened in it, and the focus.
func TestBrowser_ReplacedMessageKeepsTheFocus(t *testing.T) {
	chromium(t)
	w := newWorld(t, "")
	id := w.thread("first", "second")
	b := w.open()
	b.visit("/threads/" + id)
	b.live()
	b.do(chromedp.Evaluate(`window.was = document.querySelector("details.edit"); was.open = true; was.querySelector("summary").focus()`, nil))
	list, err := client.Read(t.Context(), w.client, events.ListItems{ThreadID: id})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.client.Send(t.Context(), id, events.UpdateMessage{MessageID: list.Items[0].ID, MessageUpdates: events.MessageUpdates{Content: new("changed")}}); err != nil {
		t.Fatal(err)
	}
	b.sees("changed")
	if !eval[bool](b, `!was.isConnected && document.querySelector("details.edit").open && document.activeElement === document.querySelector("details.edit summary")`) {
		t.Error("the message is closed, or has lost the focus")
	}
}
