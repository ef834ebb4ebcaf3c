package console_test

import (
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/cmd/skein/operator"
	"github.com/skein-threads/skein/events"
)

// A page of the past says what comes next and when; what was recorded together is one step, and
// the last step is the present.
func TestPlay_StepsFollowTheLog(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	id := w.thread("one", "two", "three")
	thread, err := client.Read(t.Context(), w.client, events.GetThread{ThreadID: id})
	if err != nil {
		t.Fatal(err)
	}
	v := w.visitor()
	step := regexp.MustCompile(`data-next="(\d+)" data-wait="(\d+)"`)
	if _, page, _ := v.get("/threads/" + id); step.MatchString(page) {
		t.Error("the present has something after it")
	}
	steps := int64(0)
	for at := int64(1); at < thread.Version; steps++ {
		_, page, _ := v.get("/threads/" + id + "/state?at=" + strconv.FormatInt(at, 10))
		found := step.FindStringSubmatch(page)
		if found == nil {
			t.Fatalf("nothing comes after version %d of %d", at, thread.Version)
		}
		next, _ := strconv.ParseInt(found[1], 10, 64)
		if next <= at || next > thread.Version {
			t.Fatalf("after version %d of %d comes %d", at, thread.Version, next)
		}
		at = next
	}
	if steps < 3 {
		t.Errorf("%d steps show 4 commands", steps)
	}
}

// A thread is played, stopped and played on by button and by key; the address keeps the position,
// and the end is the present.
func TestBrowser_Play(t *testing.T) {
	chromium(t)
	w := newWorld(t, "")
	if err := operator.FillDemo(t.Context(), w.client); err != nil {
		t.Fatal(err)
	}
	b := w.open()
	const playing, stopped = `document.querySelector("[data-player]")?.dataset.state === "playing"`, `document.querySelector("[data-player]")?.dataset.state === "stopped"`
	at := func() int { return eval[int](b, `+(new URL(location.href).searchParams.get("at") ?? 0)`) }
	b.visit("/threads/key:order:42")
	b.live()
	last := eval[int](b, `+document.querySelector("#at").max`)
	b.do(chromedp.SetValue("[data-speed]", "16", chromedp.ByQuery), chromedp.Evaluate(`window.present = true`, nil), chromedp.Click("[data-play]", chromedp.ByQuery))
	b.until(`!window.present && (document.body.innerText.includes("As it was") || document.documentElement.dataset.live === "open")`)

	// Stopped while it loads: what arrives afterwards is not shown.
	b.visit("/threads/key:order:42?at=1")
	b.do(chromedp.Evaluate(`window.real = fetch; window.asked = 0; window.held = []; window.fetch = (...a) => ++asked === 1 ? real(...a) : new Promise((done) => held.push(() => done(real(a[0]))))`, nil))
	b.do(chromedp.Click("[data-play]", chromedp.ByQuery))
	b.until(`held.length === 1`)
	b.do(chromedp.Click("[data-play]", chromedp.ByQuery))
	b.until(stopped)
	before := at()
	if shown := eval[string](b, `held.forEach((go) => go()), new Promise((done) => setTimeout(() => done(document.querySelector("#at").value + " " + asked), 2500))`); before < 2 || before >= last || at() != before || shown != strconv.Itoa(before)+" 2" {
		t.Errorf("it goes on after the stop: at %d, then %d, shown and asked %s", before, at(), shown)
	}

	// Stopped while it pauses: timers fire in order, so one that is set later and lasts longer
	// comes after every pause.
	b.do(chromedp.Evaluate(`window.fetch = (...a) => { asked++; return real(...a); }; document.querySelector("[data-play]").click(); document.querySelector("[data-play]").click(); asked = 0`, nil))
	if asked := eval[int](b, `new Promise((done) => setTimeout(() => done(asked), 2500))`); asked > 0 || at() != before {
		t.Errorf("after the stop it has asked %d times, and shows %d instead of %d", asked, at(), before)
	}
	b.shot("play-stopped")
	if command := eval[string](b, `document.querySelector("footer .command").textContent`); !strings.HasSuffix(command, "--at "+strconv.Itoa(before)) {
		t.Errorf("the page at %d is shown by %s", before, command)
	}

	// The address keeps the position; it does not play by itself.
	b.do(chromedp.Reload(), chromedp.WaitReady("html[data-ready]", chromedp.ByQuery))
	if at() != before || !eval[bool](b, stopped) {
		t.Errorf("the page is at %d after a reload, want %d", at(), before)
	}
	b.do(chromedp.SetValue("[data-speed]", "16", chromedp.ByQuery), chromedp.Evaluate(`window.here = true; document.activeElement.blur()`, nil), chromedp.KeyEvent("p"))
	b.until(playing + ` || !window.here`)
	b.until(`!location.search && document.documentElement.dataset.live === "open"`)
	b.sees("Parcel")

	// The slider stops it.
	b.visit("/threads/key:order:42/state?at=3&play=1")
	b.until(`!location.search || +(new URL(location.href).searchParams.get("at")) > 3`)
	b.do(chromedp.Evaluate(`document.querySelector("#at").dispatchEvent(new Event("input", {bubbles: true}))`, nil))
	b.until(stopped)

	// Who prefers reduced motion is shown one step at a time.
	b.do(emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-reduced-motion", Value: "reduce"}}))
	b.visit("/threads/key:order:42/state?at=3&play=1")
	next := eval[int](b, `+document.querySelector("[data-player]").dataset.next`)
	if text := eval[string](b, `document.querySelector("[data-play]").textContent`); text != "Next step" || at() != 3 {
		t.Errorf("it plays by itself: %q at %d", text, at())
	}
	b.do(chromedp.Click("[data-play]", chromedp.ByQuery))
	b.until(`document.querySelector("#at").value === "` + strconv.Itoa(next) + `"`)
	if eval[bool](b, `new Promise((done) => setTimeout(() => done(document.querySelector("#at").value !== "`+strconv.Itoa(next)+`"), 2500))`) {
		t.Error("it goes on by itself")
	}
}
