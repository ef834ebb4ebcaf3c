package console_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/skein-threads/skein/eventlog"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/natstest"
	"github.com/skein-threads/skein/server"
)

// The figures of the page System are read again without a reload, and are not when the server no
// longer shows them.
func TestBrowser_SystemIsRefreshed(t *testing.T) {
	chromium(t)
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

// What an audit found is on the page System as soon as it is looked at again: its findings, when it
// ended, and what to do. Before any the page says which commands to run.
func TestBrowser_OperationsOnSystem(t *testing.T) {
	chromium(t)
	w := newWorld(t, "", func(c *server.Config) { c.NATSListen = "127.0.0.1:0" })
	nc := natstest.Dial(t, w.nats)
	b := w.open()
	b.visit("/system")
	b.sees("No audit of all tenants was reported yet")
	b.sees("skein backup DIR")
	for _, o := range []events.Operation{
		{Kind: events.AuditOperation, Threads: 3, Commits: 9, Findings: []events.OperationFault{{Kind: "chain", Count: 2}}},
		{Kind: events.BackupOperation, Streams: 4, Bytes: 1_500_000, TookMs: 1200},
	} {
		o.StartedAt = events.TimeOf(time.Now()).ISO()
		if err := eventlog.ReportOperation(t.Context(), nc, events.DefaultNames(), o); err != nil {
			t.Fatal(err)
		}
	}
	b.do(chromedp.Evaluate(`document.dispatchEvent(new Event("visibilitychange"))`, nil))
	b.until(`document.querySelector("#audits td .status.bad")?.textContent === "2 findings"`)
	b.sees("chain 2")
	b.sees("The last one found faults")
	b.until(`document.querySelector("#audits td time").dataset.shown === "true"`)
	b.until(`document.querySelector("#backups td .status.ok")?.textContent === "done" && !document.querySelector("#backups .command")`)
	b.sees("4 streams, 1.5 MB")
	b.shot("operations")
	b.do(chromedp.EmulateViewport(320, 800))
	b.visit("/system")
	if wide := eval[int](b, "document.documentElement.scrollWidth"); wide > 320 {
		t.Errorf("the page is %d pixels wide at 320", wide)
	}
}
