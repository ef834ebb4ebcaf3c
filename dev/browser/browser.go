// Package browser starts a Chromium for tests to drive: Debian's chromium-headless-shell, the
// same engine without windows, which starts with half of the processor's time, or else chromium.
package browser

import (
	"context"
	"os/exec"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// startTime is how long a Chromium may take to start.
const startTime = 2 * time.Minute

// shell is what Debian's command of that name starts as a child, which would outlive a kill.
const shell = "/usr/lib/chromium/chromium-headless-shell"

// Path returns where a Chromium is, or skips the test.
func Path(t *testing.T) string {
	t.Helper()
	for _, name := range []string{shell, "chromium"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Skip("chromium-headless-shell is not installed, nor chromium")
	return ""
}

// Open returns the context of a browser with an empty profile, which starts when it is first used
// and is closed at the end of the test.
func Open(t *testing.T) context.Context {
	t.Helper()
	ctx, stop := chromedp.NewExecAllocator(context.WithoutCancel(t.Context()),
		chromedp.ExecPath(Path(t)), chromedp.NoSandbox, chromedp.NoFirstRun, chromedp.Headless, chromedp.DisableGPU,
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-background-networking", true),
		chromedp.Flag("disable-component-update", true), chromedp.Flag("disable-sync", true),
		chromedp.UserDataDir(t.TempDir()), chromedp.WindowSize(1280, 900), chromedp.WSURLReadTimeout(startTime))
	t.Cleanup(stop)
	ctx, stop = chromedp.NewContext(ctx)
	t.Cleanup(stop)
	return ctx
}
