package console_test

import (
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/skein-threads/skein/api/edge"
	"github.com/skein-threads/skein/api/keys"
	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/operator/access"
)

// visitor is a browser without a window: it has cookies, and names its origin.
type visitor struct {
	*world
	client *http.Client
	origin string
}

func (w *world) visitor() *visitor {
	jar, err := cookiejar.New(nil)
	if err != nil {
		w.t.Fatal(err)
	}
	return &visitor{w, &http.Client{Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}, w.http}
}

// get returns the status and the body of a page, and its headers.
func (v *visitor) get(path string) (int, string, http.Header) {
	v.t.Helper()
	answer, err := v.client.Get(v.http + "/console" + path)
	return v.read(answer, err)
}

// post sends a form: names and values in turn.
func (v *visitor) post(path string, pairs ...string) (int, string, http.Header) {
	v.t.Helper()
	form := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		form.Add(pairs[i], pairs[i+1])
	}
	r, err := http.NewRequestWithContext(v.t.Context(), http.MethodPost, v.http+"/console"+path, strings.NewReader(form.Encode()))
	if err != nil {
		v.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if v.origin != "" {
		r.Header.Set("Origin", v.origin)
	}
	answer, err := v.client.Do(r)
	return v.read(answer, err)
}

func (v *visitor) read(answer *http.Response, err error) (int, string, http.Header) {
	v.t.Helper()
	if err != nil {
		v.t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		v.t.Fatal(err)
	}
	return answer.StatusCode, string(body), answer.Header
}

// thread makes a thread with one message of each text.
func (w *world) thread(texts ...string) string {
	w.t.Helper()
	reply, err := w.client.Send(w.t.Context(), "", events.CreateThread{Title: "A thread"})
	if err != nil {
		w.t.Fatal(err)
	}
	for _, text := range texts {
		added, err := w.client.Send(w.t.Context(), reply.ThreadID, events.CreateItem{Item: events.NewItem{Type: events.Message, Role: events.User, Content: events.MessageText(false, &text)}})
		if err != nil {
			w.t.Fatal(err)
		}
		reply.Seq = added.Seq
	}
	// Pages show what the read models show: the items may lag.
	if _, err := client.Read(w.t.Context(), w.client.WithMinSeq(reply.Seq), events.ListItems{ThreadID: reply.ThreadID}); err != nil {
		w.t.Fatal(err)
	}
	return reply.ThreadID
}

// Who opens the address of the server is sent to the console.
func TestHandler_AddressOfTheServer(t *testing.T) {
	t.Parallel()
	v := newWorld(t, "").visitor()
	answer, err := v.client.Get(v.http)
	if status, _, header := v.read(answer, err); status != http.StatusSeeOther || header.Get("Location") != "/console/" {
		t.Errorf("%d to %q", status, header.Get("Location"))
	}
}

// What a conversation contains is not HTML of the page.
func TestHandler_ContentIsEscaped(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	id := w.thread(`<script>alert(1)</script><img src=x onerror=alert(2)>`, `[a](javascript:alert(3)) <svg onload=alert(4)>`)
	status, body, h := w.visitor().get("/threads/" + id)
	if status != http.StatusOK || !strings.Contains(body, "&lt;script&gt;") {
		t.Errorf("%d: the text is not there", status)
	}
	for _, bad := range []string{"<script>alert", "<img src=x", "<svg onload", `href="javascript:`} {
		if strings.Contains(body, bad) {
			t.Errorf("the page contains %q", bad)
		}
	}
	policy := h.Get("Content-Security-Policy")
	for _, want := range []string{"default-src 'none'", "script-src 'self'", "style-src 'self'", "frame-ancestors 'none'", "form-action 'self'"} {
		if !strings.Contains(policy, want) || strings.Contains(policy, "unsafe") {
			t.Errorf("the policy is %q; it has no %s", policy, want)
		}
	}
}

// A change is done for a page of this origin only, also at a desk, where there is no cookie.
func TestHandler_ChangesComeFromThisOrigin(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	id := w.thread("hello")
	for _, origin := range []string{"", "null", "https://evil.example"} {
		v := w.visitor()
		v.origin = origin
		if status, _, _ := v.post("/threads/bulk", "do", "delete", "thread", id); status != http.StatusForbidden {
			t.Errorf("from the origin %q: %d, want 403", origin, status)
		}
	}
	if status, _, _ := w.visitor().get("/threads/" + id); status != http.StatusOK {
		t.Errorf("the thread is gone: %d", status)
	}
	if status, body, _ := w.visitor().post("/threads/bulk", "do", "delete", "thread", id); status != http.StatusSeeOther {
		t.Errorf("from this origin: %d %s", status, body)
	}
	if status, _, _ := w.visitor().get("/threads/" + id); status != http.StatusNotFound {
		t.Errorf("the thread is still there: %d", status)
	}
}

// newAccess makes a folder for keys.
func newAccess(t *testing.T) (*access.Folder, string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "access")
	folder, err := access.Init(dir, access.InitOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return folder, dir
}

// addKey adds a key of the tenant with all roles.
func addKey(t *testing.T, folder *access.Folder, k keys.Key) (id, secret string) {
	t.Helper()
	k.Roles = []string{"publisher", "subscriber"}
	made, secret, err := folder.AddKey(k)
	if err != nil {
		t.Fatal(err)
	}
	return made.ID, secret
}

// A key that may only read sees no form, and its changes are refused; threads of others are not
// there.
func TestHandler_RightsOfTheKey(t *testing.T) {
	t.Parallel()
	folder, dir := newAccess(t)
	_, all := addKey(t, folder, keys.Key{Tenant: "acme"})
	_, reads := addKey(t, folder, keys.Key{Tenant: "acme", Can: []edge.Capability{edge.Read}})
	_, other := addKey(t, folder, keys.Key{Tenant: "globex"})
	w := newWorld(t, dir)
	id := w.thread("hello")

	v := w.visitor()
	if status, _, h := v.get("/threads"); status != http.StatusSeeOther || h.Get("Location") != "/console/sign-in?next=%2Fconsole%2Fthreads" {
		t.Errorf("without a key: %d to %s", status, h.Get("Location"))
	}
	if _, body, _ := v.get("/sign-in?next=%2Fconsole%2Fthreads"); strings.Contains(body, `role="alert"`) {
		t.Error("the first visit shows an error")
	}
	if status, body, _ := v.post("/sign-in", "key", "skein_no_such"); status != http.StatusUnauthorized || !strings.Contains(body, "not valid") {
		t.Errorf("a wrong key: %d %s", status, body)
	}
	for _, to := range []string{"https://evil.example/", "//evil.example", "/console/../api", "/elsewhere", "//evil.example/console/threads", "https://evil.example/console/threads"} {
		if _, _, h := w.visitor().post("/sign-in", "key", all, "next", to); h.Get("Location") != "/console/" {
			t.Errorf("a sign-in leads from %q to %q", to, h.Get("Location"))
		}
	}
	if status, _, h := v.post("/sign-in", "key", all, "next", "/console/threads?status=open"); status != http.StatusSeeOther || h.Get("Location") != "/console/threads?status=open" {
		t.Fatalf("the key: %d to %s", status, h.Get("Location"))
	}
	if status, body, _ := v.get("/threads/" + id); status != http.StatusOK || !strings.Contains(body, "hello") || !strings.Contains(body, "composer") {
		t.Errorf("the thread: %d", status)
	}

	reader := w.visitor()
	reader.post("/sign-in", "key", reads)
	if status, body, _ := reader.get("/threads/" + id); status != http.StatusOK || !strings.Contains(body, "hello") || strings.Contains(body, "composer") {
		t.Errorf("a key that only reads: %d, and the page has a form or no text", status)
	}
	if status, _, _ := reader.post("/threads/"+id+"/say", "text", "no"); status != http.StatusForbidden {
		t.Errorf("a key that only reads has written: %d", status)
	}

	stranger := w.visitor()
	stranger.post("/sign-in", "key", other)
	for _, path := range []string{"/threads/" + id, "/live/threads/" + id} {
		if status, body, _ := stranger.get(path); status != http.StatusNotFound || strings.Contains(body, "hello") {
			t.Errorf("another tenant's key: %s is %d", path, status)
		}
	}
}

// A session is new with each sign-in, and ends with its sign-out and with its key.
func TestHandler_SessionsEnd(t *testing.T) {
	t.Parallel()
	folder, dir := newAccess(t)
	id, key := addKey(t, folder, keys.Key{Tenant: "acme"})
	w := newWorld(t, dir)
	v := w.visitor()
	cookie := func() string {
		t.Helper()
		_, _, h := v.post("/sign-in", "key", key)
		set := h.Get("Set-Cookie")
		for _, want := range []string{"HttpOnly", "SameSite=Lax", "Path=/"} {
			if !strings.Contains(set, want) {
				t.Errorf("the cookie %q has no %s", set, want)
			}
		}
		value, _, _ := strings.Cut(set, ";")
		return value
	}
	first := cookie()
	if second := cookie(); second == first {
		t.Error("a second sign-in has the session of the first")
	}
	old, err := http.NewRequestWithContext(t.Context(), http.MethodGet, w.http+"/console/threads", nil)
	if err != nil {
		t.Fatal(err)
	}
	old.Header.Set("Cookie", first)
	if status, _, _ := v.read(http.DefaultTransport.RoundTrip(old)); status != http.StatusSeeOther {
		t.Errorf("the session before the sign-in still works: %d", status)
	}
	if status, _, _ := v.post("/sign-out"); status != http.StatusSeeOther {
		t.Errorf("sign out: %d", status)
	}
	if status, _, _ := v.get("/threads"); status != http.StatusSeeOther {
		t.Errorf("after it: %d", status)
	}
	cookie()
	if err := folder.RevokeKey(id); err != nil {
		t.Fatal(err)
	}
	for {
		status, _, _ := v.get("/threads")
		if status == http.StatusSeeOther {
			break
		}
		if t.Context().Err() != nil {
			t.Fatal("a session outlives its key")
		}
		time.Sleep(10 * time.Millisecond) // the server notices within a second
	}
	if _, body, _ := v.get("/sign-in?next=/console/threads"); !strings.Contains(body, "revoked") {
		t.Error("the page does not say why")
	}
}

// A page asks for no more than it needs, and is small.
func TestHandler_PagesAreSmall(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	id, err := fillThread(t.Context(), w.client, "long", 1000)
	if err != nil {
		t.Fatal(err)
	}
	v := w.visitor()
	total := 0
	_, body, _ := v.get("/threads/" + id)
	total += len(body)
	for _, name := range []string{"console.css", "pages.css", "code.css", "console.js", "live.js", "times.js", "keys.js", "forms.js", "slider.js", "history.js", "notice.js", "player.js", "refresh.js", "keep.js"} {
		status, content, h := v.get("/static/" + name)
		if status != http.StatusOK || h.Get("ETag") == "" {
			t.Errorf("%s: %d", name, status)
		}
		total += len(content)
	}
	if total > 150_000 {
		t.Errorf("a thread of 1,000 messages weighs %d bytes", total)
	}
	t.Logf("%d bytes, %d of them the page", total, len(body))
}
