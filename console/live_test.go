package console_test

import (
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
