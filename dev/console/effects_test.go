package console_test

import (
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/server"
	"github.com/skein-threads/skein/skeintest"
)

// The page Effects has what is scheduled on all threads, the earliest first; those that are late or
// repeat are chosen, one that is scheduled meanwhile appears, and one is cancelled.
func TestBrowser_TenantEffects(t *testing.T) {
	chromium(t)
	clock := &skeintest.Clock{}
	w := newWorld(t, "", func(c *server.Config) {
		c.Workers = -1 // nothing runs: what is due becomes late
		c.Now = func() time.Time { return clock.Now().Add(-time.Hour) }
	})
	one, two := w.thread("one"), w.thread("two")
	schedule := func(thread string, d events.ScheduleEffect) {
		t.Helper()
		reply, err := w.client.Send(t.Context(), thread, d)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := client.Read(t.Context(), w.client.WithMinSeq(reply.Seq), events.ListEffects{ThreadID: thread}); err != nil {
			t.Fatal(err)
		}
	}
	schedule(two, events.ScheduleEffect{Name: "missed"})
	clock.Advance(time.Hour)
	schedule(one, events.ScheduleEffect{Name: "tomorrow", DelayMs: new(int64(24 * 3600 * 1000))})
	schedule(two, events.ScheduleEffect{Name: "hourly", EveryMs: new(int64(3600 * 1000))})
	b := w.open()
	b.visit("/effects")
	b.live()
	names := `[...document.querySelectorAll("td.what a")].map((a) => a.textContent).join(" ")`
	b.until(names + ` === "missed hourly tomorrow"`)
	if state := eval[string](b, `document.querySelector("tbody tr").cells[2].textContent`); state != "late" {
		t.Errorf("what was due an hour ago is %q", state)
	}
	schedule(one, events.ScheduleEffect{Name: "soon", DelayMs: new(int64(60_000))})
	b.until(names + ` === "missed soon hourly tomorrow"`)
	b.do(chromedp.Click(`button[aria-label="Cancel soon"]`, chromedp.ByQuery))
	b.until(names + ` === "missed hourly tomorrow"`)
	for view, want := range map[string]string{"late": "missed", "repeating": "hourly", "failing": ""} {
		b.visit("/effects?only=" + view)
		b.until(names + ` === ` + quoted(want))
		if link := eval[string](b, `document.querySelector(".same a").getAttribute("href")`); link != "/api/effects?only="+view {
			t.Errorf("%s: the link to JSON is %s", view, link)
		}
	}
	b.visit("/effects")
	b.do(chromedp.Click("td.what a", chromedp.ByQuery))
	b.until(`location.pathname.endsWith("/effects") && document.querySelector("td.what strong")?.textContent === "missed"`)
}
