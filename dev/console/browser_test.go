package console_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/rs/zerolog"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/cmd/skein/operator"
	drive "github.com/skein-threads/skein/dev/browser"
	"github.com/skein-threads/skein/server"
)

// patience is how long a test waits for a signal: for a slow machine.
const patience = 60 * time.Second

// world is a server with the demo's agent.
type world struct {
	t      *testing.T
	http   string
	nats   string
	client *client.Client // of the tenant acme
}

// fill makes the demo's conversations, and one of 1,000 messages, whose thread it returns.
func (w *world) fill() (long string) {
	w.t.Helper()
	if err := operator.FillDemo(w.t.Context(), w.client); err != nil {
		w.t.Fatal(err)
	}
	long, err := fillThread(w.t.Context(), w.client, "long", 1000)
	if err != nil {
		w.t.Fatal(err)
	}
	return long
}

// newWorld starts a server. Without an access folder, all requests are acme's.
func newWorld(t *testing.T, access string, change ...func(*server.Config)) *world {
	t.Helper()
	cfg := server.Config{Store: t.TempDir(), NATSListen: server.NoListen, HTTPListen: "127.0.0.1:0", Register: operator.RegisterDemo}
	if access == "" {
		cfg.Tenant = "acme"
	} else {
		cfg.Access = access
	}
	for _, change := range change {
		change(&cfg)
	}
	s, err := server.Start(t.Context(), cfg, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), patience)
		defer cancel()
		if err := s.Stop(ctx); err != nil {
			t.Error(err)
		}
	})
	c, err := s.Client("acme")
	if err != nil {
		t.Fatal(err)
	}
	return &world{t, s.Addresses().HTTP, s.Addresses().NATS, c}
}

// browser is a window of a Chromium with an empty profile. What its pages report as an error,
// such as a violation of the Content-Security-Policy, fails the test.
type browser struct {
	*world
	ctx context.Context
}

// chromium skips the test if there is none, so it is called before a server is started. The variable
// SKEIN_CONSOLE says that there is one.
func chromium(t *testing.T) {
	t.Helper()
	if !strings.HasPrefix(t.Name(), "TestBrowser") {
		t.Fatal("make test-console runs the tests whose names begin with TestBrowser; make test runs the others")
	}
	if os.Getenv("SKEIN_CONSOLE") == "" {
		t.Skip("it drives a browser; make test-console runs it")
	}
	drive.Path(t)
}

// open opens a browser's window.
func (w *world) open(actions ...chromedp.Action) *browser {
	w.t.Helper()
	chromium(w.t)
	b := &browser{w, drive.Open(w.t)}
	b.watch()
	b.do(append([]chromedp.Action{log.Enable()}, actions...)...)
	return b
}

// watch fails the test when a page reports an error.
func (b *browser) watch() {
	var once sync.Mutex
	chromedp.ListenTarget(b.ctx, func(event any) {
		once.Lock()
		defer once.Unlock()
		switch e := event.(type) {
		case *log.EventEntryAdded:
			if e.Entry.Level == log.LevelError && !strings.Contains(e.Entry.Text, "the server responded with a status of 4") {
				b.t.Errorf("the browser says: %s %s", e.Entry.Text, e.Entry.URL)
			}
		case *runtime.EventExceptionThrown:
			b.t.Errorf("a script failed: %s", e.ExceptionDetails.Error())
		case *page.EventJavascriptDialogOpening:
			go func() { _ = chromedp.Run(b.ctx, page.HandleJavaScriptDialog(true)) }()
		}
	})
}

// do runs actions, each of which waits for its own signal.
func (b *browser) do(actions ...chromedp.Action) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	if b.ctx == nil || chromedp.FromContext(b.ctx).Target == nil { // the first run starts the browser, for longer than one deadline
		ctx = b.ctx
	}
	for _, action := range actions {
		err := chromedp.Run(ctx, action)
		for ; isReplaced(err) && ctx.Err() == nil; err = chromedp.Run(ctx, action) {
		}
		if err != nil {
			b.shot("failed")
			b.t.Fatalf("%v\n%s", err, b.text())
		}
	}
}

// isReplaced reports whether an action found its node, which the page then replaced before
// anything was done with it: a panel was read again, or the next page came.
func isReplaced(err error) bool {
	var refused *cdproto.Error
	return errors.As(err, &refused) && strings.Contains(refused.Message, "node with given id")
}

// text returns what the page shows.
func (b *browser) text() string {
	var text string
	_ = chromedp.Run(b.ctx, chromedp.Evaluate(`location.href + "\n" + document.body.innerText.slice(0, 3000)`, &text))
	return text
}

// visit opens a page of the console, and waits for its script.
func (b *browser) visit(path string) {
	b.t.Helper()
	b.do(chromedp.Navigate(b.http+"/console"+path), chromedp.WaitReady("html[data-ready]", chromedp.ByQuery))
}

// signIn opens a page that needs a key, enters it, and waits for the page and its script: what
// is clicked before moves when the page's style and its player come.
func (b *browser) signIn(key, path string) {
	b.t.Helper()
	b.visit(path)
	b.until(`location.pathname === "/console/sign-in"`)
	b.do(chromedp.SendKeys("input[name=key]", key, chromedp.ByQuery), chromedp.Submit("input[name=key]", chromedp.ByQuery))
	b.until("location.pathname === " + quoted("/console"+path) + " && document.documentElement.dataset.ready")
	b.live()
}

// until waits until an expression of the page is true, whichever page that is by then.
func (b *browser) until(expression string) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	var last error
	for {
		var is bool
		if last = chromedp.Run(ctx, chromedp.Evaluate("!!("+expression+")", &is)); last == nil && is {
			return
		}
		if ctx.Err() != nil {
			b.shot("failed")
			b.t.Fatalf("it never became true: %s (%v)\n%s", expression, last, b.text())
		}
		time.Sleep(20 * time.Millisecond) // between two looks at the page
	}
}

// sees waits until the page shows a text.
func (b *browser) sees(text string) {
	b.t.Helper()
	b.until(fmt.Sprintf("document.body.innerText.includes(%s)", quoted(text)))
}

// eval returns what an expression of the page is.
func eval[T any](b *browser, expression string) T {
	b.t.Helper()
	var v T
	b.do(chromedp.Evaluate(expression, &v, awaits))
	return v
}

// awaits says that an expression is a promise.
func awaits(p *runtime.EvaluateParams) *runtime.EvaluateParams { return p.WithAwaitPromise(true) }

func quoted(text string) string {
	raw, _ := json.Marshal(text)
	return string(raw)
}

// scheme sets the color scheme that the reader prefers.
func scheme(name string) chromedp.Action {
	return emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: name}})
}

// shot keeps a picture of the page, in the folder that SKEIN_CONSOLE_SHOTS names.
func (b *browser) shot(name string) {
	b.t.Helper()
	folder := os.Getenv("SKEIN_CONSOLE_SHOTS")
	if folder == "" {
		return
	}
	var picture []byte
	if err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot(&picture)); err != nil {
		b.t.Logf("no picture of %s: %v", name, err)
		return
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, name+".png"), picture, 0o644); err != nil {
		b.t.Fatal(err)
	}
}

// Every page is there, in light and in dark, and at 320 pixels nothing is wider than the screen.
func TestBrowser_PagesLookAsTheyShould(t *testing.T) {
	chromium(t)
	w := newWorld(t, "")
	if err := operator.FillDemo(t.Context(), w.client); err != nil {
		t.Fatal(err)
	}
	b := w.open()
	for name, path := range pages() {
		for _, mode := range []string{"light", "dark"} {
			b.do(chromedp.EmulateViewport(1280, 900), scheme(mode))
			b.visit(path)
			b.shot(name + "-" + mode)
		}
		b.do(chromedp.EmulateViewport(390, 844))
		b.visit(path)
		b.shot(name + "-390")
		if cut := eval[string](b, cutOff); cut != "" {
			t.Errorf("%s cuts at 390 pixels: %s", path, cut)
		}
		b.do(chromedp.EmulateViewport(320, 800))
		b.visit(path)
		b.shot(name + "-320")
		if wide := eval[int](b, "document.documentElement.scrollWidth"); wide > 320 {
			t.Errorf("%s is %d pixels wide at 320", path, wide)
		}
	}
}

// cutOff is what reaches over the screen, or needs its list to be scrolled sideways.
const cutOff = `[...document.querySelectorAll("main .status, [data-list] td > *, .stacked td > *")].filter((e) => {
	const at = e.getBoundingClientRect(), list = e.closest(".table-wrap:not([tabindex]), .table-wrap:has(.stacked)")?.getBoundingClientRect();
	return at.width > 1 && list && (at.right > list.right + 1 || at.left < list.left - 1);
}).map((e) => e.textContent).join("; ")`

// pages are the addresses of all pages, by name.
func pages() map[string]string {
	return map[string]string{
		"threads": "/threads", "sign-in": "/sign-in", "conversation": "/threads/key:order:42", "approval": "/threads/key:order:42:refund",
		"failed": "/threads/key:stock:kettle", "guide": "/threads/key:docs:resume", "files": "/threads/key:order:42/files?path=/orders/42.json", "effects": "/threads/key:order:42/effects",
		"timeline": "/threads/key:order:42/timeline", "run": "/threads/key:order:42/run", "family": "/threads/key:order:42/family",
		"state": "/threads/key:order:42/state", "audit": "/threads/key:order:42/audit", "share": "/threads/key:order:42/share",
		"approvals": "/approvals", "runs": "/runs", "tenant-effects": "/effects", "agents": "/agents", "agent": "/agents/agent/support", "system": "/system", "past": "/threads/key:order:42?at=12", "missing": "/nothing",
	}
}
