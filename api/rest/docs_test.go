package rest_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/skein-threads/skein"
)

// The session of docs/http.md runs as it stands there.
func TestDocs_HTTPSession(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("curl is not installed")
	}
	page, err := os.ReadFile("../../docs/http.md")
	if err != nil {
		t.Fatal(err)
	}
	s := start(t, func(o *skein.Options) { o.Tenant = "acme" })
	lines := 0
	for i, block := range strings.Split(string(page), "```sh session\n") {
		if i == 0 {
			continue
		}
		block, _, _ = strings.Cut(block, "```")
		for line := range strings.Lines(block) {
			lines++
			command := exec.Command("sh", "-c", strings.ReplaceAll(strings.TrimSpace(line), "http://127.0.0.1:8420", s.url))
			command.Dir = "../.."
			out, err := command.CombinedOutput()
			if err != nil || strings.Contains(string(out), `"error":`) || len(out) == 0 {
				t.Errorf("%s: %v\n%.600s", line, err, out)
			}
		}
	}
	if lines < 9 {
		t.Errorf("only %d lines were found", lines)
	}
}
