package console_test

import (
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"github.com/skein-threads/skein/api/edge"
	"github.com/skein-threads/skein/api/keys"
	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
)

// madeLink finds the link of a page that shows one that was made.
var madeLink = regexp.MustCompile(`value="https?://[^/"]+/console(/shared/[^"]+)"`)

// share makes a link to a thread on its page, and returns the path of it below /console.
func (v *visitor) share(thread string, pairs ...string) string {
	v.t.Helper()
	status, body, _ := v.post("/threads/"+thread+"/share", pairs...)
	found := madeLink.FindStringSubmatch(body)
	if status != http.StatusOK || found == nil {
		v.t.Fatalf("no link was made: %d %.2000s", status, body)
	}
	return found[1]
}

// A link opens the messages of its thread, for anybody, and nothing else; whatever is wrong with
// one, the answer is the same.
func TestShare_LinkOpensTheConversation(t *testing.T) { // AM-109
	t.Parallel()
	folder, dir := newAccess(t)
	_, all := addKey(t, folder, keys.Key{Tenant: "acme"})
	_, reads := addKey(t, folder, keys.Key{Tenant: "acme", Can: []edge.Capability{edge.Read}})
	w := newWorld(t, dir)
	other := w.thread("secret-other")
	id := w.thread("Where is <b>it</b>?", "Here.")
	if _, err := w.client.Send(t.Context(), id, events.UpdateThread{Draft: new("secret-draft"), Metadata: events.JSON(`{"note":"secret-metadata"}`)}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.client.Files(id).WriteFile(t.Context(), "/secret-file.txt", []byte("secret-content"), "text/plain", client.WriteFileOptions{}); err != nil {
		t.Fatal(err)
	}
	owner := w.visitor()
	owner.post("/sign-in", "key", all)
	link := owner.share(id, "commandId", "once")
	if again := owner.share(id, "commandId", "once"); again != link {
		t.Errorf("the form that is sent twice makes %s and %s", link, again)
	}
	token := strings.TrimPrefix(link, "/shared/acme/")

	guest := w.visitor()
	status, page, h := guest.get(link)
	has(t, page, "Where is", "Here.", "&lt;b&gt;", `<article class="turn user"`, `name="robots" content="noindex`, "not",
		"secret", id, other, token, "composer", "<form", "Sign out", "/console/threads", "/api/", "data-live", "acme", "Timeline", "<b>it")
	if status != http.StatusOK {
		t.Fatalf("the link: %d", status)
	}
	for name, want := range map[string]string{"Referrer-Policy": "no-referrer", "X-Robots-Tag": "noindex", "Cache-Control": "no-store", "Content-Security-Policy": "form-action 'none'", "X-Frame-Options": "DENY"} {
		if !strings.Contains(h.Get(name), want) || strings.Contains(h.Get(name), "unsafe") {
			t.Errorf("%s is %q, want %s", name, h.Get(name), want)
		}
	}
	if h.Get("Set-Cookie") != "" {
		t.Error("a reader of a link has a session")
	}
	for _, query := range []string{"?thread=" + other, "?at=1&cursor=x&threadId=" + other, "?from=-1", "?from=x"} {
		if _, same, _ := guest.get(link + query); same != page {
			t.Errorf("%s shows something else", query)
		}
	}
	if _, same, _ := owner.get(link); same != page {
		t.Error("who is signed in sees another page")
	}
	if status, _, _ := guest.get("/threads/" + id); status != http.StatusSeeOther {
		t.Errorf("with a link one sees the thread: %d", status)
	}

	second := owner.share(id)
	short := time.Now().Add(2 * time.Second).UTC().Format(time.RFC3339)
	made, err := w.client.Send(t.Context(), id, events.ShareThread{ExpiresAt: short})
	if err != nil {
		t.Fatal(err)
	}
	expires := "/shared/acme/" + made.Result.Token
	missing := map[string]string{}
	refused := func(why, path string) {
		t.Helper()
		status, body, h := guest.get(path)
		if status != http.StatusNotFound || !strings.Contains(h.Get("X-Robots-Tag"), "noindex") || h.Get("Referrer-Policy") != "no-referrer" {
			t.Errorf("%s: %d %v", why, status, h)
		}
		missing[body] = why
	}
	refused("another token", link[:len(link)-3]+"xyz")
	refused("the secret of another share", "/shared/acme/"+made.Result.ShareID+token[strings.Index(token, "."):])
	refused("another tenant", "/shared/globex/"+token)
	refused("no tenant", "/shared/*/"+token)
	refused("a strange tenant", "/shared/a.b/"+token)
	refused("the id of a thread", "/shared/acme/"+id)
	refused("the id of the other thread", "/shared/acme/"+other)
	refused("a path after it", link+"/files/secret-file.txt")
	refused("a path after it", link+"/threads/"+other)
	refused("no token", "/shared/acme")
	refused("nothing", "/shared/")
	refused("a long token", "/shared/acme/"+strings.Repeat("x", 4000))
	for t.Context().Err() == nil { // the clock is what ends it
		if status, _, _ := guest.get(expires); status == http.StatusNotFound {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	refused("an expired share", expires)
	if status, body, _ := owner.post("/threads/"+id+"/share/end", "shareId", strings.SplitN(token, ".", 2)[0]); status != http.StatusSeeOther {
		t.Errorf("ending it: %d %.300s", status, body)
	}
	refused("a share that was ended", link)
	if status, _, _ := guest.get(second); status != http.StatusOK {
		t.Errorf("the other link has ended with it: %d", status)
	}
	if _, err := w.client.Send(t.Context(), id, events.DeleteThread{}); err != nil {
		t.Fatal(err)
	}
	refused("a deleted thread", second)
	if len(missing) != 1 {
		t.Errorf("refusals differ: %d kinds, %v", len(missing), missing)
	}

	reader := w.visitor()
	reader.post("/sign-in", "key", reads)
	if status, body, _ := reader.get("/threads/" + other + "/share"); status != http.StatusOK || strings.Contains(body, "Make a link") {
		t.Errorf("a key that only reads: %d, or it sees the form", status)
	}
	if status, _, _ := reader.post("/threads/" + other + "/share"); status != http.StatusForbidden {
		t.Errorf("a key that only reads shares: %d", status)
	}
}

// A long thread is shown a page at a time, from its beginning; calls have their results.
func TestShare_PageAtATime(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	id, err := fillThread(t.Context(), w.client, "long", 230)
	if err != nil {
		t.Fatal(err)
	}
	v := w.visitor()
	path := v.share(id)
	next := regexp.MustCompile(`href="/console(/shared/[^"]+)" rel="next"`)
	seen := 0
	for pages := 1; path != ""; pages++ {
		_, page, _ := v.get(path)
		turns := strings.Count(page, `<article class="turn`)
		if seen += turns; turns > 100 || pages > 3 {
			t.Fatalf("page %d has %d messages", pages, turns)
		}
		path = ""
		if found := next.FindStringSubmatch(page); found != nil {
			path = found[1]
		} else if !strings.Contains(page, "comes <code>229</code>") || !strings.Contains(page, "To the beginning") {
			t.Errorf("the last page is %.500s", page)
		}
	}
	if seen != 230 {
		t.Errorf("%d messages are shown, want 230", seen)
	}
}

// Calls of tools are shown with their results; the threads that they began are not named.
func sharedCalls(t *testing.T, o *order) {
	made, err := o.client.Send(t.Context(), o.thread, events.ShareThread{})
	o.Must(err)
	family, err := client.Read(t.Context(), o.client, events.ListRelationships{ThreadID: o.thread})
	o.Must(err)
	status, page := o.ask("acme", "/console/shared/acme/"+made.Result.Token)
	if status != http.StatusOK {
		t.Fatalf("the link: %d", status)
	}
	has(t, page, "Where is my order 42?", "I look it up", "<code>find_order</code>", `"status": "lost"`, "Lost in", "<code>refund</code>", "not", "<b>Lisbon", o.thread, o.execution)
	if len(family.Relationships) == 0 {
		t.Fatal("it has no relatives")
	}
	for _, r := range family.Relationships {
		has(t, page, "not", r.ThreadID)
	}
}

// One makes a link in the browser; a window without a session reads it, without JavaScript, until
// it is ended.
func TestBrowser_Share(t *testing.T) {
	chromium(t)
	folder, dir := newAccess(t)
	_, key := addKey(t, folder, keys.Key{Tenant: "acme"})
	w := newWorld(t, dir)
	id := w.thread("**Where** is it?")
	owner := w.open()
	owner.signIn(key, "/threads/"+id+"/share")
	owner.sees("Nobody else sees this thread")
	owner.do(chromedp.SetValue("select[name=lasts]", "24h", chromedp.ByQuery), chromedp.Click("main form[action$='/share'] button.primary", chromedp.ByQuery), chromedp.WaitVisible("#made input", chromedp.ByQuery))
	owner.live()
	owner.until(`document.querySelectorAll("#share-list tbody tr").length === 1`)
	link := eval[string](owner, `document.querySelector("#made input").value`)
	owner.shot("share")

	scripted := w.open()
	scripted.do(chromedp.Navigate(link), chromedp.WaitReady("html[data-ready]", chromedp.ByQuery))
	scripted.until(`document.querySelector(".turn .text strong")?.textContent === "Where" && document.querySelector("time[data-shown]")`)
	scripted.shot("shared")
	if referrer := eval[string](scripted, `document.querySelector("meta[name=referrer]").content`); referrer != "no-referrer" {
		t.Errorf("others are told the address: %s", referrer)
	}
	plain := w.open(emulation.SetScriptExecutionDisabled(true))
	plain.do(chromedp.Navigate(link), chromedp.WaitVisible(".turn", chromedp.ByQuery))
	plain.shot("shared-plain")

	owner.do(chromedp.Click("#share-list button.danger", chromedp.ByQuery))
	owner.sees("Nobody else sees this thread")
	scripted.do(chromedp.Reload(), chromedp.WaitReady("html[data-ready]", chromedp.ByQuery))
	scripted.sees("Nothing is shared here")
}
