package console_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
)

// axeVersion is the version of axe-core, from npm.
const axeVersion = "4.14.1"

// axe returns the script of axe-core.
func axe(t *testing.T) string {
	t.Helper()
	if os.Getenv("SKEIN_CONSOLE") == "" {
		t.Skip("it drives a browser; make test-console runs it")
	}
	npm, err := exec.LookPath("npm")
	if err != nil {
		t.Skip("npm is not installed, and axe-core comes from there")
	}
	dir := t.TempDir()
	install := exec.CommandContext(t.Context(), npm, "install", "--no-audit", "--no-fund", "--ignore-scripts", "--prefer-offline", "--fetch-retries=1", "--prefix", dir, "axe-core@"+axeVersion)
	if out, err := install.CombinedOutput(); err != nil {
		t.Skipf("npm cannot install axe-core: %v: %.300s", err, out)
	}
	script, err := os.ReadFile(filepath.Join(dir, "node_modules", "axe-core", "axe.min.js"))
	if err != nil {
		t.Fatal(err)
	}
	return string(script)
}

// Every page satisfies WCAG 2.2 AA, as far as axe-core can tell, in light and in dark.
func TestBrowser_Accessible(t *testing.T) {
	chromium(t)
	script := axe(t)
	w := newWorld(t, "")
	long := w.fill()
	all := pages()
	all["long"] = "/threads/" + long
	order, err := client.Read(t.Context(), w.client, events.GetThread{ThreadID: "key:order:42"})
	if err != nil {
		t.Fatal(err)
	}
	all["shared"], all["no-share"] = w.visitor().share(order.ID), "/shared/acme/shr_none.none"
	b := w.open()
	for name, path := range all {
		for _, mode := range []string{"light", "dark"} {
			b.do(scheme(mode))
			b.visit(path)
			b.do(chromedp.Evaluate(`document.querySelectorAll("details").forEach((d) => d.open = true)`, nil), chromedp.Evaluate(script, nil))
			found := eval[[]string](b, `axe.run(document, {runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]}).then((r) => r.violations.map((v) => v.id + ", " + v.nodes.length + " times: " + v.nodes[0].target.join(" ") + " " + v.nodes[0].failureSummary))`)
			for _, f := range found {
				t.Errorf("%s, %s: %s", name, mode, f)
			}
		}
	}
}
