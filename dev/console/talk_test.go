package console_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/skein-threads/skein/api/edge"
	"github.com/skein-threads/skein/api/keys"
	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/cmd/skein/operator"
	"github.com/skein-threads/skein/events"
)

// live waits until the page follows what happens.
func (b *browser) live() { b.t.Helper(); b.until(`document.documentElement.dataset.live === "open"`) }

// say writes in the composer, and sends it.
func (b *browser) say(text string) {
	b.t.Helper()
	b.do(chromedp.SendKeys("#say", text+kb.Enter, chromedp.ByID))
}

// One talks to an agent: its words appear as it says them, also after a reload, and a call that
// needs consent is approved with changed arguments.
func TestBrowser_TalkStreamReloadApprove(t *testing.T) {
	chromium(t)
	w := newWorld(t, "")
	if err := operator.FillDemo(t.Context(), w.client); err != nil {
		t.Fatal(err)
	}
	b := w.open()
	b.visit("/agents")
	b.do(chromedp.Click(`button[aria-label="Try support"]`, chromedp.ByQuery), chromedp.WaitVisible("#say", chromedp.ByID))
	b.live()
	b.say("How do I follow a thread?")
	b.until(`document.querySelector("#stream .growing-text")?.textContent.length > 20`)
	if seen := eval[int](b, `document.querySelectorAll(".turn.assistant:not(.growing)").length`); seen != 0 {
		t.Errorf("%d answers are committed while the first streams", seen)
	}
	b.shot("streaming")
	b.do(chromedp.Reload(), chromedp.WaitReady("html[data-ready]", chromedp.ByQuery))
	b.until(`document.querySelector(".turn.assistant .text")?.innerText.includes("nothing comes twice")`)
	b.until(`!document.querySelector("#stream .growing-text")?.textContent`)
	b.live()
	b.say("I want a refund")
	b.do(chromedp.WaitVisible(".approval textarea", chromedp.ByQuery))
	b.do(chromedp.SetValue(".approval textarea", `{"order": 42, "amount": 10}`, chromedp.ByQuery), chromedp.SetValue(`.approval input[name=reason]`, "half of it", chromedp.ByQuery))
	b.shot("approving")
	b.do(chromedp.Click(`.approval button[value=grant]`, chromedp.ByQuery))
	b.sees("on its way")
	b.until(`!document.querySelector(".approval")`)
	b.until(`[...document.querySelectorAll(".call")].some((c) => c.textContent.includes('"refunded": 10'))`)
	if turns := eval[int](b, `document.querySelectorAll(".turn:not(.growing)").length`); turns != 4 {
		t.Errorf("%d turns, want 4\n%s", turns, b.text())
	}
}

// A message is changed and asked again; the thread is looked at as it was, and forked there.
func TestBrowser_EditSlideFork(t *testing.T) {
	chromium(t)
	w := newWorld(t, "")
	if err := operator.FillDemo(t.Context(), w.client); err != nil {
		t.Fatal(err)
	}
	b := w.open()
	b.visit("/threads/key:docs:resume")
	b.live()
	b.do(chromedp.Click(".edit summary", chromedp.ByQuery), chromedp.SetValue(".edit textarea", "Where is my order?", chromedp.ByQuery), chromedp.Click(".edit button.primary", chromedp.ByQuery))
	b.sees("Parcel Express")
	b.until(`!document.querySelector(".turns").innerText.includes("follow a thread")`)

	b.visit("/threads/key:order:42")
	last := eval[int](b, `+document.querySelector("#at").max`)
	b.do(chromedp.Evaluate(`(() => { const r = document.querySelector("#at"); r.value = 12; r.dispatchEvent(new Event("change", {bubbles: true})); })()`, nil))
	b.until(`location.search === "?at=12" && document.documentElement.dataset.ready && document.body.innerText.includes("As it was")`)
	if body := b.text(); strings.Contains(body, "Parcel") || last < 20 {
		t.Errorf("version 12 of %d shows what came later: %s", last, body)
	}
	if eval[bool](b, `!!document.querySelector("#say") || document.body.dataset.live !== undefined`) {
		t.Error("the past can be talked to, or is live")
	}
	if eval[int](b, `[...document.querySelectorAll(".tabs a")].filter((a) => !a.href.includes("at=12")).length`) > 0 {
		t.Error("a tab leads from the past to the present")
	}
	b.do(chromedp.Evaluate(`[...document.querySelectorAll("button")].find((x) => x.textContent === "Fork here").click()`, nil))
	b.until(`!location.href.includes("at=12") && document.documentElement.dataset.ready && !document.body.innerText.includes("As it was")`)
	if body := b.text(); strings.Contains(body, "Parcel") || !strings.Contains(body, "Where is my order 42?") {
		t.Errorf("the fork is not as the thread was at version 12: %s", body)
	}
}

// A file is uploaded and previewed; the list of threads is live, and is moved through by keys.
func TestBrowser_FilesAndList(t *testing.T) {
	chromium(t)
	w := newWorld(t, "")
	first := w.thread("one")
	b := w.open()
	b.visit("/threads/" + first + "/files")
	b.live()
	file := filepath.Join(t.TempDir(), "hello <b>.txt")
	if err := os.WriteFile(file, []byte("hello <script>alert(1)</script>"), 0o600); err != nil {
		t.Fatal(err)
	}
	b.do(chromedp.SetUploadFiles("input[type=file]", []string{file}, chromedp.ByQuery), chromedp.Click(`form[data-put] button`, chromedp.ByQuery))
	b.until(`document.querySelector("td.what a")?.textContent === "hello <b>.txt"`)
	b.do(chromedp.Click("td.what a", chromedp.ByQuery))
	b.until(`document.querySelector("section pre")?.textContent === "hello <script>alert(1)</script>"`)

	b.visit("/threads")
	b.live()
	reply, err := w.client.Send(t.Context(), "", events.CreateThread{Title: "Made elsewhere"})
	if err != nil {
		t.Fatal(err)
	}
	b.until(`document.querySelector("td.what a")?.textContent === "Made elsewhere"`)
	b.do(chromedp.KeyEvent("j"), chromedp.KeyEvent("x"))
	b.until(`document.querySelector("tr.cursor input:checked") !== null`)
	b.do(chromedp.KeyEvent(kb.Enter))
	b.until(fmt.Sprintf(`location.pathname.endsWith(%q)`, reply.ThreadID))
	b.visit("/threads")
	b.do(chromedp.Click(`input[data-check-all]`, chromedp.ByQuery), chromedp.Click(`button[value=archive]`, chromedp.ByQuery))
	b.sees("No threads yet")
	b.visit("/threads?archived=true&q=elsewhere")
	b.until(`document.querySelectorAll("td.what a").length === 1`)
}

// Two tenants have a window each. A key that is revoked ends what is open, with a reason.
func TestBrowser_TenantsAndRevokedKey(t *testing.T) {
	chromium(t)
	folder, dir := newAccess(t)
	id, acme := addKey(t, folder, keys.Key{Tenant: "acme"})
	_, globex := addKey(t, folder, keys.Key{Tenant: "globex", Can: []edge.Capability{edge.Read}})
	w := newWorld(t, dir)
	thread := w.thread("of acme")
	one := w.open()
	two := w.open()
	for b, key := range map[*browser]string{one: acme, two: globex} {
		b.signIn(key, "/threads")
	}
	one.sees("A thread")
	two.sees("No threads yet")
	two.visit("/threads/" + thread)
	two.sees("No such thread")
	if _, err := w.client.Send(t.Context(), thread, events.UpdateThread{Title: new("Renamed")}); err != nil {
		t.Fatal(err)
	}
	one.sees("Renamed")
	if err := folder.RevokeKey(id); err != nil {
		t.Fatal(err)
	}
	one.sees("You are signed out")
	one.shot("revoked")
	one.do(chromedp.Click("#notice a", chromedp.ByQuery))
	one.sees("Your session has ended")
	two.visit("/threads")
	two.do(chromedp.Click(`form[action$="sign-out"] button`, chromedp.ByQuery))
	two.sees("You are signed out")
}

// Without JavaScript everything is read, and forms work.
func TestBrowser_WithoutJavaScript(t *testing.T) {
	chromium(t)
	w := newWorld(t, "")
	id := w.thread("first", "second")
	b := w.open(emulation.SetScriptExecutionDisabled(true))
	b.do(chromedp.Navigate(w.http+"/console/threads/"+id), chromedp.WaitVisible(".turn", chromedp.ByQuery))
	b.do(chromedp.SendKeys("#say", "third", chromedp.ByID), chromedp.Submit("#say", chromedp.ByID), chromedp.WaitVisible(".turn:nth-of-type(3)", chromedp.ByQuery))
	var body string
	b.do(chromedp.Text("#items", &body, chromedp.ByQuery))
	for _, want := range []string{"first", "second", "third"} {
		if !strings.Contains(body, want) {
			t.Errorf("%q is not shown: %s", want, body)
		}
	}
}

// A hostile conversation does nothing, and the page stays usable.
func TestBrowser_HostileConversation(t *testing.T) {
	chromium(t)
	w := newWorld(t, "")
	id := w.hostile()
	b := w.open()
	b.visit("/threads/" + id)
	if hacked := eval[any](b, `window.hacked ?? null`); hacked != nil {
		t.Errorf("a message ran script: %v", hacked)
	}
	if bad := eval[[]string](b, `[...document.querySelectorAll(".turn *")].filter((e) => e.matches("script, svg, style, iframe, object, embed, form:not(.stack), link") || [...e.attributes].some((a) => /^on|^style$/.test(a.name)) || e.matches("a[href]") && !/^(https?|mailto):/.test(e.href) || e.matches("img")).map((e) => e.outerHTML.slice(0, 80))`); len(bad) > 0 {
		t.Errorf("messages made elements: %q", bad)
	}
	if wide := eval[int](b, "document.documentElement.scrollWidth - innerWidth"); wide > 0 {
		t.Errorf("a line makes the page %d pixels wider", wide)
	}
	if loaded := eval[[]string](b, `performance.getEntriesByType("resource").map((r) => r.name).filter((n) => !n.startsWith(location.origin) && !n.startsWith("data:"))`); len(loaded) > 0 {
		t.Errorf("the page loaded %q", loaded)
	}
}

// A long conversation opens at its end, at once, and is scrolled up, of a very long one for 2,000
// messages, and back. What is far away is not kept in the page.
func TestBrowser_LongConversation(t *testing.T) {
	chromium(t)
	w := newWorld(t, "")
	n := many(t, 1000)
	id, err := fillThread(t.Context(), w.client, "long", n)
	if err != nil {
		t.Fatal(err)
	}
	b := w.open()
	b.visit("/threads/" + id)
	last := fmt.Sprintf("After %d comes %d", n-2, n-1)
	b.sees(last)
	if end := eval[float64](b, `document.documentElement.scrollHeight - innerHeight - scrollY`); end > 50 {
		t.Errorf("it opens %v pixels above its end", end)
	}
	above := fmt.Sprintf("Question %d:", max(n-2000, 0))
	b.do(chromedp.Evaluate(`new Promise((done) => { const up = () => { window.scrollTo(0, 0); document.body.innerText.includes(`+quoted(above)+`) ? done(true) : setTimeout(up, 20); }; up(); })`, nil, awaits))
	if filled := eval[int](b, `document.querySelectorAll("#items .turn").length`); filled > 500 {
		t.Errorf("%d messages are kept in the page", filled)
	}
	b.do(chromedp.Evaluate(`new Promise((done) => { const down = () => { window.scrollTo(0, document.documentElement.scrollHeight); document.querySelectorAll("#items [data-page][data-empty]").length && document.documentElement.scrollHeight - innerHeight - scrollY > 5 ? setTimeout(down, 20) : done(true); }; down(); })`, nil, awaits))
	b.sees(last)
}

// What is committed is on the screen soon after, in the conversation and in the thread's head.
func TestBrowser_LiveSoon(t *testing.T) {
	chromium(t)
	w := newWorld(t, "")
	id := w.thread("hello")
	b := w.open()
	b.visit("/threads/" + id)
	b.live()
	b.do(chromedp.Evaluate(`window.took = []; const seen = new Set([...document.querySelectorAll("#items .turn")].map((n) => n.id));
		new MutationObserver((all) => all.forEach((m) => m.addedNodes.forEach((n) => { // a turn that is shown again, as it has changed, does not count
			if (n.matches?.(".turn") && !seen.has(n.id)) { seen.add(n.id); took.push(Date.now() - Date.parse(n.querySelector("time").dateTime)); }
		}))).observe(document.querySelector("#items"), {childList: true, subtree: true})`, nil))
	for n := range 30 {
		text := fmt.Sprintf("message %d.", n)
		if _, err := w.client.Send(t.Context(), id, events.CreateItem{Item: events.NewItem{Type: events.Message, Role: events.User, Content: events.MessageText(false, &text)}}); err != nil {
			t.Fatal(err)
		}
		b.sees(text)
	}
	thread, err := client.Read(t.Context(), w.client, events.GetThread{ThreadID: id})
	if err != nil {
		t.Fatal(err)
	}
	b.until(fmt.Sprintf(`document.querySelector("#at").max === "%d" && document.querySelector(".facts").innerText.includes("version %d")`, thread.Version, thread.Version))
	took := eval[[]float64](b, `took.sort((a, b) => a - b)`)
	if len(took) != 30 {
		t.Fatalf("%d messages appeared, want 30", len(took))
	}
	t.Logf("from the commit to the screen: median %.0f ms, p95 %.0f ms", took[15], took[28])
}
