package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Every call of skein in the docs is one that the command line accepts.
func TestDocs_CommandsParse(t *testing.T) {
	t.Parallel()
	var pages []string
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/adr/*.md", "docs/start/*.md", "deploy/*.md"} {
		list, err := filepath.Glob(filepath.Join("..", "..", pattern))
		if err != nil {
			t.Fatal(err)
		}
		pages = append(pages, list...)
	}
	calls := 0
	for _, page := range pages {
		raw, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range shellLines(string(raw)) {
			for _, call := range callsOf(line) {
				calls++
				if err := parses(call); err != nil {
					t.Errorf("%s: %s: %v", filepath.Base(page), line, err)
				}
			}
		}
	}
	if calls < 50 {
		t.Errorf("only %d calls were found", calls)
	}
}

// shellLines returns the lines of a page that are shell: fenced blocks in sh, and
// indented ones.
func shellLines(page string) (out []string) {
	fence, shell, before := false, false, ""
	for line := range strings.Lines(page) {
		text := strings.TrimSpace(line)
		if language, ok := strings.CutPrefix(text, "```"); ok {
			shell, fence = !fence && language == "sh", !fence
			continue
		}
		if !shell && (fence || !strings.HasPrefix(line, "    ")) {
			continue
		}
		if joined, more := strings.CutSuffix(before+text, `\`); more {
			before = joined
			continue
		}
		out, before = append(out, before+text), ""
	}
	return out
}

// callsOf returns the calls of skein in a shell line.
func callsOf(line string) (out []string) {
	for _, part := range regexp.MustCompile(`\s*(?:\||&&|;)\s+`).Split(line, -1) {
		part = regexp.MustCompile(`^(?:[A-Z_]+=\S+ +)*`).ReplaceAllString(strings.TrimSpace(part), "")
		for _, name := range []string{"skein ", "bin/skein ", "./bin/skein "} {
			if strings.HasPrefix(part, name) {
				out = append(out, "skein "+strings.TrimPrefix(part, name))
			}
		}
	}
	return out
}

// parses checks a call without running it. The shell splits it, as a reader's does.
func parses(call string) error {
	call = regexp.MustCompile(`\s+#.*$`).ReplaceAllString(call, "")
	call = regexp.MustCompile(`\s{4,}.*$`).ReplaceAllString(call, "") // a description in a column of its own
	call = regexp.MustCompile(`\s+[<>]+\s*\S+|\s*&$`).ReplaceAllString(call, "")
	call = regexp.MustCompile(`\$\([^)]*\)|\$\w+`).ReplaceAllString(call, "x") // what the shell would expand
	out, err := exec.Command("sh", "-c", `skein() { for a in "$@"; do printf '%s\n' "$a"; done; }; `+call).Output()
	if err != nil {
		return err
	}
	args := strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
	cmd, rest, err := root().Find(args)
	if err != nil {
		return err
	}
	if err := cmd.ParseFlags(rest); err != nil {
		return err
	}
	return cmd.ValidateArgs(cmd.Flags().Args())
}
