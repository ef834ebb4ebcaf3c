package rest_test

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/skein-threads/skein"
)

// The sessions of docs/http.md and docs/start/curl.md run as they stand there.
func TestDocs_HTTPSession(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("curl is not installed")
	}
	for page, least := range map[string]int{"../../docs/http.md": 9, "../../docs/start/curl.md": 6} {
		s := start(t, func(o *skein.Options) { o.Tenant = "acme" })
		s.Must(s.Reactor("support", func(context.Context, *skein.StepInput, skein.Stream) (*skein.Reaction, error) {
			return skein.Answer("It is on its way."), nil
		}))
		if lines := runSession(t, page, s.url); lines < least {
			t.Errorf("only %d lines were found in %s", lines, page)
		}
	}
}

// runSession runs the lines of a page's session against a server, and counts them.
func runSession(t *testing.T, page, url string) (lines int) {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	for i, block := range strings.Split(string(text), "```sh session\n") {
		if i == 0 {
			continue
		}
		block, _, _ = strings.Cut(block, "```")
		for line := range strings.Lines(block) {
			lines++
			command := exec.Command("sh", "-c", strings.ReplaceAll(strings.TrimSpace(line), "http://127.0.0.1:8420", url))
			command.Dir = "../.."
			out, err := command.CombinedOutput()
			if err != nil || strings.Contains(strings.ReplaceAll(string(out), `"error":null`, ""), `"error":`) || len(out) == 0 {
				t.Errorf("%s: %v\n%.600s", line, err, out)
			}
		}
	}
	return lines
}
