package examples_test

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// skein apply accepts the definitions that the README prints into it, and the form of those that the
// pages show in blocks: what they refer to may be defined elsewhere.
func TestDocs_DefinitionsApply(t *testing.T) {
	binary := buildSkein(t)
	url := serveReadme(t, binary)
	elsewhere := regexp.MustCompile(`refers to the \w+ \w+, which is not defined|names the endpoint \w+, which does not exist here`)
	apply := func(t *testing.T, definitions string, whole bool) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), binary, "apply", "--tenant", "acme", "--server", url, "--dry-run", "-f", "-")
		cmd.Stdin = strings.NewReader(definitions)
		if out, err := cmd.CombinedOutput(); err != nil && (whole || !elsewhere.Match(out)) {
			t.Errorf("%v: %s\n%s", err, out, definitions)
		}
	}
	t.Run("README.md", func(t *testing.T) {
		line := regexp.MustCompile(`(?m)^printf '(.+)' \| skein apply -f -$`).FindStringSubmatch(read(t, "../README.md"))
		if line == nil {
			t.Fatal("it prints no definitions into skein apply")
		}
		apply(t, strings.ReplaceAll(line[1], `\n`, "\n"), true)
	})
	pages, err := filepath.Glob("../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	shown := 0
	for _, page := range pages {
		for _, block := range strings.Split(read(t, page), "\n```yaml\n")[1:] {
			if block, _, _ = strings.Cut(block, "```"); strings.HasPrefix(block, "kind: ") {
				shown++
				t.Run(filepath.Base(page), func(t *testing.T) { apply(t, block, false) })
			}
		}
	}
	if shown < 3 {
		t.Errorf("the pages show %d blocks of definitions: the test has lost what it looks for", shown)
	}
}
