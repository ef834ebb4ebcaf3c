package console_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/cmd/skein/operator"
	"github.com/skein-threads/skein/events"
)

// An address without a thread says so, and offers the search for a part of what it names.
func TestHandler_NoSuchThread(t *testing.T) {
	t.Parallel()
	v := newWorld(t, "").visitor()
	for ref, searched := range map[string]string{
		"T-01900000-0000-7000-8000-000000000000": "T-01900000-0000-7000-8000-000000000000",
		"order-42":                               "order-42",
		"key:order:42":                           "order:42",
	} {
		status, body, _ := v.get("/threads/" + ref)
		if status != http.StatusNotFound || !strings.Contains(body, "<h1>No such thread</h1>") || !strings.Contains(body, `name="q" value="`+searched+`"`) {
			t.Errorf("%s: %d %s", ref, status, body)
		}
	}
}

// The search finds threads by a part of their key, their title and their id, in capitals or not.
func TestHandler_SearchFindsParts(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	reply, err := w.client.Send(t.Context(), "", events.CreateThread{Key: "customers/Ada:order:42", Title: "Where is it?"})
	if err != nil {
		t.Fatal(err)
	}
	other, err := w.client.Send(t.Context(), "", events.CreateThread{Key: "customers/Linus:order:7"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Read(t.Context(), w.client.WithMinSeq(other.Seq), events.ListThreads{}); err != nil {
		t.Fatal(err)
	}
	v := w.visitor()
	for _, text := range []string{"customers/Ada", "ada:ORDER", "order:42", "is it", reply.ThreadID[10:20], "…" + reply.ThreadID[len(reply.ThreadID)-8:]} {
		if _, body, _ := v.get("/threads?q=" + strings.NewReplacer("/", "%2F", " ", "+", "…", "%E2%80%A6").Replace(text)); !strings.Contains(body, reply.ThreadID) || strings.Contains(body, other.ThreadID) {
			t.Errorf("%q finds another thread, or not this one", text)
		}
	}
}

// A list of runs is not empty because the latest threads have none, and says what is above its
// link to older ones.
func TestHandler_RunsBehindThreadsWithout(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	if err := operator.FillDemo(t.Context(), w.client); err != nil {
		t.Fatal(err)
	}
	var reply *events.Reply
	for range 201 { // a page of the query looks at 200 threads
		var err error
		if reply, err = w.client.Send(t.Context(), "", events.CreateThread{}); err != nil {
			t.Fatal(err)
		}
	}
	if list, err := client.Read(t.Context(), w.client.WithMinSeq(reply.Seq), events.ListRuns{}); err != nil || len(list.Runs) != 0 || list.NextCursor == "" {
		t.Fatalf("the first page of the query: %+v, %v", list, err)
	}
	if _, body, _ := w.visitor().get("/runs"); !strings.Contains(body, "Is the kettle in stock?") || strings.Contains(body, "No runs") {
		t.Errorf("the page has no run: %s", body)
	}
}

// Every page tells its own keys.
func TestBrowser_KeysOfThePage(t *testing.T) {
	chromium(t)
	w := newWorld(t, "")
	id := w.thread("hello")
	b := w.open()
	for path, want := range map[string]string{"/threads": "j k Enter x / Esc ?", "/threads/" + id: "c p Esc ?", "/system": "?"} {
		b.visit(path)
		b.do(chromedp.KeyEvent("?"))
		b.until(`document.querySelector("#keys").open`)
		if told := eval[string](b, `[...document.querySelectorAll("#keys dt kbd")].map((k) => k.textContent).join(" ")`); told != want {
			t.Errorf("%s has the keys %s, want %s", path, told, want)
		}
		b.shot("keys" + strings.ReplaceAll(strings.ReplaceAll(path, id, "T"), "/", "-"))
		b.do(chromedp.KeyEvent(kb.Escape))
		b.until(`!document.querySelector("#keys").open`)
	}
}
