package main

import "testing"

func TestFenced_IndentedCode(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"code", "a\n\n    b\n      c\n\nd\n", "a\n\n```text\nb\n  c\n```\n\nd\n"},
		{"with a blank line", "    a\n\n    b\nc", "```text\na\n\nb\n```\nc"},
		{"at the end", "a\n\n    b", "a\n\n```text\nb\n```"},
		{"in an item of a list", "- a\n\n    b\n\nc\n", "- a\n\n    b\n\nc\n"},
		{"in a numbered item", "12. a\n\n    b\n", "12. a\n\n    b\n"},
		{"a line that goes on", "a\n    b\n", "a\n    b\n"},
		{"between fences", "```go\n\n    a\n```\n", "```go\n\n    a\n```\n"},
	} {
		if got := fenced(c.text); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}
