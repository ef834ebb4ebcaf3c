package console_test

import (
	"strconv"
	"testing"

	"github.com/chromedp/chromedp"
)

// The figures of the page System are read again without a reload, and are not when the server no
// longer shows them.
func TestBrowser_SystemIsRefreshed(t *testing.T) {
	w := newWorld(t, "")
	b := w.open()
	b.visit("/system")
	messages := `+[...document.querySelectorAll("th code")].find((c) => c.textContent === "SKEIN_LOG").closest("tr").cells[1].textContent.replace(/\D/g, "")`
	before := eval[int](b, messages)
	w.thread("one", "two")
	b.do(chromedp.Evaluate("window.kept = document.querySelector('[data-refresh]')"+`; document.dispatchEvent(new Event("visibilitychange"))`, nil))
	b.until(messages + ` > ` + strconv.Itoa(before))
	if !eval[bool](b, `window.kept?.isConnected && document.querySelector("main time").dataset.shown === "true"`) {
		t.Error("the page was reloaded, or its times are not those of the reader")
	}
	b.do(chromedp.Evaluate(`window.fetch = () => Promise.resolve(new Response("", {status: 404}))`+`; document.dispatchEvent(new Event("visibilitychange"))`, nil))
	b.sees("You may no longer see this page")
}
