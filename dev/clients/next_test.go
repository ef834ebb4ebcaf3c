package clients_test

import (
	"bufio"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/skein-threads/skein"
	"github.com/skein-threads/skein/dev/browser"
	"github.com/skein-threads/skein/dev/repository"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/skeintest"
)

// patience is how long the page has for what it must show: for a slow machine.
const patience = 2 * time.Minute

// The app of examples/next builds, and a reload loses nothing: neither the chat, nor an answer in
// the middle of a sentence, nor an approval that waits.
func TestNext_ReloadKeepsTheChat(t *testing.T) {
	node, npm := findNode(t)
	browser.Path(t)
	dir, example := t.TempDir(), filepath.Join(repository.Root(), "examples", "next") // where it was tried there is a build, too
	copyFile(t, filepath.Join(example, "package.json"), filepath.Join(dir, "package.json"))
	if err := os.CopyFS(filepath.Join(dir, "app"), os.DirFS(filepath.Join(example, "app"))); err != nil {
		t.Fatal(err)
	}
	npmInstall(t, npm, dir)
	say := make(script)
	s := refunds(t, say)
	b := nextPage{t, browser.Open(t)}
	b.do(chromedp.Navigate(startNext(t, node, dir, "SKEIN_URL="+s.Addresses().HTTP)))

	b.until(`location.search.startsWith("?id=")`)
	b.send("hello")
	b.sees("you said hello")
	b.reload()
	b.sees("you said hello")

	b.send("slow")
	say.piece(t, "Once upon")
	b.sees("Once upon")
	b.reload()
	b.sees("Once upon")
	say.piece(t, " a time")
	say.piece(t, "")
	b.sees("Once upon a time")
	b.reload()
	b.sees("Once upon a time")

	b.send("refund me")
	b.sees("Approve")
	b.reload()
	b.sees("Approve")
	b.do(chromedp.Evaluate(`[...document.querySelectorAll("button")].find((b) => b.textContent === "Approve").click()`, nil))
	b.sees("Refunded.")
	b.reload()
	b.sees("Refunded.")
}

// piece says a piece of the slow answer.
func (s script) piece(t *testing.T, text string) {
	t.Helper()
	select {
	case s <- text:
	case <-time.After(patience):
		t.Fatalf("nobody asked for %q", text)
	}
}

// refunds starts a server with the agent support, which asks before it refunds, and otherwise
// answers as the script says.
func refunds(t *testing.T, say script) *skeintest.Server {
	t.Helper()
	s := serve(t, say)
	s.Must(s.Tool(skein.NewTool("refund", func(context.Context, struct {
		EUR int `json:"eur"`
	}) (bool, error) {
		return true, nil
	}, skein.Description("Refunds."))))
	s.Must(s.Reactor("support", func(ctx context.Context, in *skein.StepInput, out skein.Stream) (*skein.Reaction, error) {
		switch {
		case in.LastText(events.User) != "refund me":
			return say.react(ctx, in, out)
		case in.Iteration > 0:
			return skein.Answer("Refunded."), nil
		}
		r := skein.Answer("")
		r.ToolCalls = []skein.ToolCall{{CallID: "c1", Name: "refund", Arguments: []byte(`{"eur":5}`)}}
		r.AssistantEvent.Content = []events.JSON{events.JSON(`{"type":"tool-refund","toolCallId":"c1","input":{"eur":5}}`)}
		return r, nil
	}))
	_, err := s.Client("acme").Send(t.Context(), "", events.ApplyDefinitions{Definitions: []events.NewDefinition{
		{Kind: events.ToolKind, Definition: []byte(`{"name":"refund","description":"Refunds.","type":"go","auto":false}`)},
		{Kind: events.AgentKind, Definition: []byte(`{"name":"support","type":"ai_human","reactor":"support","tools":["refund"]}`)},
	}})
	s.Must(err)
	return s
}

// startNext builds the app in a folder, starts it, and returns its address.
func startNext(t *testing.T, node, dir string, env ...string) string {
	t.Helper()
	next := func(args ...string) *exec.Cmd {
		cmd := exec.CommandContext(t.Context(), node, append([]string{filepath.Join("node_modules", "next", "dist", "bin", "next")}, args...)...)
		cmd.Dir, cmd.Env = dir, append(append(os.Environ(), "NEXT_TELEMETRY_DISABLED=1"), env...)
		return cmd
	}
	if out, err := next("build").CombinedOutput(); err != nil {
		t.Fatalf("next build: %v: %s", err, out)
	}
	cmd := next("start", "--hostname", "127.0.0.1", "--port", "0")
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Wait() }) // it ends with the context of the test
	address := make(chan string, 1)
	go func() {
		defer close(address)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			if found := regexp.MustCompile(`http://127\.0\.0\.1:\d+`).FindString(lines.Text()); found != "" {
				select {
				case address <- found:
				default: // it prints more than one
				}
			}
		}
	}()
	found := <-address
	if found == "" {
		t.Fatal("next start ended without an address")
	}
	return found
}

// nextPage is the app in a browser.
type nextPage struct {
	t   *testing.T
	ctx context.Context
}

func (p nextPage) do(actions ...chromedp.Action) {
	p.t.Helper()
	if err := chromedp.Run(p.ctx, actions...); err != nil {
		p.t.Fatal(err)
	}
}

// until waits until an expression of the page is true.
func (p nextPage) until(expression string) {
	p.t.Helper()
	err := chromedp.Run(p.ctx, chromedp.Poll("!!("+expression+")", nil, chromedp.WithPollingTimeout(patience)))
	if err != nil {
		var text string
		_ = chromedp.Run(p.ctx, chromedp.Evaluate(`location.href + "\n" + document.body.innerText`, &text))
		p.t.Fatalf("%s: %v\n%s", expression, err, text)
	}
}

// sees waits until the page shows a text.
func (p nextPage) sees(text string) {
	p.t.Helper()
	quoted, err := json.Marshal(text)
	if err != nil {
		p.t.Fatal(err)
	}
	p.until("document.querySelector('main')?.innerText.includes(" + string(quoted) + ")")
}

// send writes a message and sends it, when the page's script is there.
func (p nextPage) send(text string) {
	p.t.Helper()
	p.until(`Object.keys(document.querySelector("form") ?? {}).some((key) => key.startsWith("__react"))`)
	p.do(chromedp.SendKeys(`[aria-label="Message"]`, text, chromedp.ByQuery))
	p.until(`!document.querySelector("form button").disabled`)
	p.do(chromedp.Click("form button", chromedp.ByQuery))
}

// reload loads the page again, and waits for its script. Its address stays.
func (p nextPage) reload() {
	p.t.Helper()
	var before, after string
	p.do(chromedp.Location(&before), chromedp.Reload(), chromedp.Location(&after))
	if before != after {
		p.t.Errorf("a reload of %s shows %s", before, after)
	}
}
