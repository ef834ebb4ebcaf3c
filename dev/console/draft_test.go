package console_test

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/cmd/skein/operator"
	"github.com/skein-threads/skein/events"
)

// press presses the button of a form with a value.
func (b *browser) press(form, value string) {
	b.t.Helper()
	b.do(chromedp.Click(form+` button[value="`+value+`"]`, chromedp.ByQuery))
}

// What is written is saved as the thread's draft, which everybody who looks sees; it is changed,
// added to, sent, discarded, and sends itself when a run has completed.
func TestBrowser_Draft(t *testing.T) {
	chromium(t)
	w := newWorld(t, "")
	if err := operator.FillDemo(t.Context(), w.client); err != nil {
		t.Fatal(err)
	}
	reader := w.open()
	reader.visit("/threads/key:order:42:refund")
	reader.live()
	b := w.open()
	b.visit("/threads/key:order:42:refund")
	b.live()
	shown := `document.querySelector("#draft-text")?.value === `
	b.do(chromedp.SendKeys("#say", "And the receipt?", chromedp.ByID))
	b.press(".composer", "add")
	for _, one := range []*browser{b, reader} {
		one.until(shown + `"And the receipt?"`)
	}
	b.until(`document.querySelector("#say").value === ""`)
	b.do(chromedp.SendKeys("#say", "Please.", chromedp.ByID))
	b.press(".composer", "add")
	b.until(shown + `"And the receipt?\n\nPlease."`)
	b.do(chromedp.SetValue("#draft-text", "Never mind", chromedp.ByID))
	b.press("#draft-form", "save")
	reader.until(shown + `"Never mind"`)
	b.press("#draft-form", "discard")
	reader.until(`!document.querySelector("#draft-form")`)
	b.until(`!document.querySelector("#draft-form")`)

	b.do(chromedp.SendKeys("#say", "How do I follow a thread?", chromedp.ByID))
	b.press(".composer", "add")
	b.until(shown + `"How do I follow a thread?"`)
	b.do(chromedp.Click(`#draft-form input[name=auto]`, chromedp.ByQuery))
	b.press("#draft-form", "save")
	reader.until(`document.querySelector("#draft-form input[name=auto]")?.checked`)
	b.shot("draft")
	b.press(".approval", "grant")
	b.until(`document.querySelector(".turns").innerText.includes("nothing comes twice") && !document.querySelector("#draft-form")`)

	b.do(chromedp.SendKeys("#say", "Where is my order?", chromedp.ByID))
	b.press(".composer", "add")
	b.until(shown + `"Where is my order?"`)
	b.press("#draft-form", "send")
	b.until(`document.querySelector(".turns").innerText.includes("Parcel Express") && !document.querySelector("#draft-form")`)
	if said := eval[int](b, `document.querySelector(".turns").innerText.split("Where is my order?").length - 1`); said != 1 {
		t.Errorf("the draft was sent %d times", said)
	}
}

// A message that waits for the agent is changed and removed; what else it contains stays.
func TestBrowser_QueueIsEdited(t *testing.T) {
	chromium(t)
	w := newWorld(t, "")
	if err := operator.FillDemo(t.Context(), w.client); err != nil {
		t.Fatal(err)
	}
	thread, err := client.Read(t.Context(), w.client, events.GetThread{ThreadID: "key:order:42:refund"})
	if err != nil {
		t.Fatal(err)
	}
	b := w.open()
	b.visit("/threads/key:order:42:refund")
	b.live()
	item := events.UserText("first")
	item.Content = events.JSON(`[{"type":"input_text","text":"first"},{"type":"input_file","filename":"bill.txt","file_data":"data:text/plain;base64,YQ=="}]`)
	if _, err := w.client.Send(t.Context(), thread.ID, events.ReactThread{Item: &item, Policy: events.Enqueue}); err != nil {
		t.Fatal(err)
	}
	b.until(`document.querySelectorAll(".queue li").length === 1`)
	b.do(chromedp.SetValue("select[name=policy]", "enqueue", chromedp.ByQuery))
	b.say("second")
	b.until(`document.querySelectorAll(".queue li").length === 2`)
	b.do(chromedp.Click(".queue li:first-child summary", chromedp.ByQuery), chromedp.SetValue(".queue li:first-child textarea", "Where is my order 42?", chromedp.ByQuery))
	b.shot("queue")
	b.press(".queue li:first-child", "edit")
	b.until(`document.querySelector(".queue li bdi").textContent === "Where is my order 42?"`)
	b.press(".queue li:last-child", "remove")
	b.until(`document.querySelectorAll(".queue li").length === 1`)
	list, err := w.client.ListQueue(t.Context(), events.ListQueue{ThreadID: thread.ID})
	if err != nil {
		t.Fatal(err)
	}
	if len(list.Queued) != 1 || !strings.Contains(string(list.Queued[0].Item), "bill.txt") {
		t.Errorf("the queue has %s", list.Queued[0].Item)
	}
	b.press(".approval", "grant")
	b.until(`document.querySelector(".turns").innerText.includes("Where is my order 42?") && !document.querySelector(".queue")`)
	if strings.Contains(b.text(), "second") {
		t.Error("the removed message was sent")
	}
}
