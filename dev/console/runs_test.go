package console_test

import (
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/cmd/skein/operator"
	"github.com/skein-threads/skein/events"
)

// The page Runs cancels a run that waits and retries one that failed, and shows what comes of it
// without being left.
func TestBrowser_RetryAndCancelRuns(t *testing.T) {
	chromium(t)
	w := newWorld(t, "")
	if err := operator.FillDemo(t.Context(), w.client); err != nil {
		t.Fatal(err)
	}
	b := w.open()
	b.visit("/runs")
	b.live()
	row := func(title string) string {
		return `[...document.querySelectorAll("tbody tr")].filter((r) => r.querySelector("td.what a").textContent === ` + quoted(title) + `)`
	}
	const refund, kettle = "Refund of a broken kettle", "Is the kettle in stock?"
	press := func(title, button string) chromedp.Action {
		return chromedp.Evaluate(row(title)+`.flatMap((r) => [...r.querySelectorAll("button")]).find((x) => x.textContent === `+quoted(button)+`).click()`, nil)
	}
	b.until(row(refund) + `[0].innerText.includes("waits for approval")`)
	b.do(press(refund, "Cancel"))
	b.until(row(refund) + `[0].innerText.includes("aborted")`)
	b.until(row(refund) + `[0].querySelector("button").textContent === "Retry"`)

	b.do(press(kettle, "Retry"))
	b.until(row(kettle) + `.length === 2`)
	b.until(row(kettle) + `.every((r) => r.innerText.includes("failed"))`)
	if at := eval[string](b, `location.pathname`); at != "/console/runs" {
		t.Errorf("the page was left for %s", at)
	}
	b.visit("/threads/key:stock:kettle")
	b.until(`document.querySelector(".turn.failed .message").textContent.includes("502 Bad Gateway")`)
	list, err := client.Read(t.Context(), w.client, events.ListRuns{})
	if err != nil {
		t.Fatal(err)
	}
	ends := map[events.ExecutionStatus]int{}
	for _, r := range list.Runs {
		ends[r.Status]++
	}
	if ends[events.ExecutionFailed] != 3 || ends[events.Executing] != 0 {
		t.Errorf("the runs ended %v", ends)
	}
}
