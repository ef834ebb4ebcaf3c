package main

import (
	"strings"
	"testing"
)

func TestPage_ProseIsWrapped(t *testing.T) {
	p := &page{}
	p.line("## A heading that is not wrapped, because %s", strings.Repeat("it must stay on its line ", 5))
	p.line("%s\n\n- a list that stays as it is, %s", strings.Repeat("é ", 100), strings.Repeat("word ", 30))
	lines := strings.Split(p.String(), "\n")
	if len(lines[0]) < 100 || !strings.HasPrefix(lines[5], "- a list") || len(lines[5]) < 150 {
		t.Errorf("a heading or a list was wrapped:\n%s", p)
	}
	if first := []rune(lines[2]); len(first) != 99 || strings.TrimSpace(lines[3]) != strings.TrimSpace(strings.Repeat("é ", 50)) {
		t.Errorf("the paragraph is not wrapped at 100 columns:\n%s", p)
	}
}
