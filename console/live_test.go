package console_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/demo"
)

// The tabs Timeline, Run and Files show what happens while they are open, and keep what their
// reader has opened.
func TestBrowser_TabsAreLive(t *testing.T) {
	w := newWorld(t, "")
	if err := demo.Fill(t.Context(), w.client); err != nil {
		t.Fatal(err)
	}
	thread, err := w.client.GetThread(t.Context(), events.GetThread{ThreadID: "key:order:42:refund"})
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
	if _, err := w.client.ResolveApproval(t.Context(), thread.ID, events.ResolveApproval{CallID: "call_refund", Grant: true}); err != nil {
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
	w := newWorld(t, "")
	id, err := demo.Long(t.Context(), w.client, "long", 200) // in one commit, of which the page shows the end
	if err != nil {
		t.Fatal(err)
	}
	list, err := w.client.ListItems(t.Context(), events.ListItems{ThreadID: id, Limit: new(int64(1))})
	if err != nil {
		t.Fatal(err)
	}
	talk, timeline := w.open(), w.open()
	talk.visit("/threads/" + id)
	timeline.visit("/threads/" + id + "/timeline")
	talk.live()
	timeline.live()
	if _, err := w.client.DeleteMessage(t.Context(), id, events.DeleteMessage{ItemID: list.Items[0].ID}); err != nil {
		t.Fatal(err)
	}
	reply, err := w.client.CreateItem(t.Context(), id, events.CreateItem{Item: events.UserText("And now?")})
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
