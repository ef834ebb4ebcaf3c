package main_test

import (
	"strings"
	"testing"
)

// Forks, mentions and truncations on the command line, and the family that they make.
func TestThread_Family(t *testing.T) {
	t.Parallel()
	s := start(t, t.TempDir())
	s.ok("thread", "create", "--key", "one", "--title", "Order 42")
	s.ok("thread", "create", "--key", "two", "--title", "Order\x1b[31m 17")
	for _, text := range []string{"first", "second", "third"} {
		s.ok("item", "add", "key:one", text)
	}
	child := strings.TrimSpace(s.ok("thread", "fork", "key:one", "--message", "1", "--key", "fork"))
	s.ok("thread", "mention", "key:one", "key:two", "--comment", "the same parcel")
	if got := s.ok("item", "list", child); strings.Contains(got, "third") || !strings.Contains(got, "second") {
		t.Errorf("the fork holds %s", got)
	}
	s.ok("thread", "fork", child, "--message", "0", "--key", "fork of the fork")
	tree := s.ok("thread", "tree", "key:fork")
	lines := strings.Split(strings.TrimSpace(tree), "\n")
	if len(lines) != 4 || !strings.Contains(lines[0], "Order 42") || !strings.HasPrefix(lines[1], "├─ "+child+" * fork at 1  Forked: Order 42") ||
		!strings.HasPrefix(lines[2], "│  └─ ") || !strings.HasSuffix(lines[2], " fork at 0  Forked(2): Order 42") ||
		!strings.HasPrefix(lines[3], "└─ ") || !strings.HasSuffix(lines[3], " mention at 2  Order[31m 17  the same parcel") {
		t.Errorf("the family is\n%s", tree)
	}
	var root struct {
		Title    string
		Children []struct {
			ThreadID, Type string
			Children       []struct{ Type string }
		}
	}
	decode(t, s.ok("thread", "tree", child, "--json"), &root)
	if len(root.Children) != 2 || root.Children[0].ThreadID != child || len(root.Children[0].Children) != 1 || root.Children[1].Type != "mention" {
		t.Errorf("as JSON it is %+v", root)
	}
	next := strings.TrimSpace(s.ok("thread", "handoff", child, "--summary", "It was lost.", "--comment", "refund", "--key", "next"))
	if got := s.ok("thread", "tree", next); !strings.Contains(got, next+" * handoff at 1  refund\n") {
		t.Errorf("after the handoff the family is\n%s", got)
	}
	if got := s.ok("item", "list", "key:next"); !strings.Contains(got, "It was lost.") || strings.Contains(got, "second") {
		t.Errorf("the new thread holds %s", got)
	}
	s.ok("thread", "truncate", "key:one", "0")
	if got := strings.TrimSpace(s.ok("thread", "tree", "key:one")); strings.Contains(got, "\n") {
		t.Errorf("after the truncation the family is\n%s", got)
	}
}

// An exported thread is the document of package threads, or Markdown in which nothing that a
// message or a tool says can leave its place.
func TestThread_Export(t *testing.T) {
	t.Parallel()
	s := start(t, t.TempDir())
	s.ok("thread", "create", "--key", "one", "--title", "Order\n# 42")
	s.ok("item", "add", "key:one", "Where is it?")
	s.ok("cmd", "message.add", "--thread", "key:one", `{"role":"assistant","content":"I look.","toolCalls":"[{\"id\":\"c1\",\"type\":\"function\",\"function\":{\"name\":\"find\",\"arguments\":\"{\\\"order\\\":42}\"}}]"}`)
	s.ok("cmd", "message.add", "--thread", "key:one", `{"role":"tool","toolCallId":"c1","content":"lost\n`+"```"+`\n# here"}`)
	var doc struct {
		ID, Title string
		Messages  []struct{ Role string }
	}
	decode(t, s.ok("thread", "export", "key:one"), &doc)
	if doc.Title != "Order\n# 42" || len(doc.Messages) != 3 || doc.Messages[1].Role != "assistant" {
		t.Errorf("the document is %+v", doc)
	}
	got := s.ok("thread", "export", "key:one", "--markdown")
	head, body, _ := strings.Cut(got, "\n\n## user\n")
	if !strings.HasPrefix(head, "# Order # 42\n\n"+doc.ID+", created 20") || body != `
Where is it?

## assistant

I look.

Calls find:

`+"```\n"+`{"order":42}`+"\n```"+`

## user

Result of find:

`+"````\n"+`"lost\n`+"```"+`\n# here"`+"\n````\n" {
		t.Errorf("as Markdown it is\n%s", got)
	}
	if o := run(t, s.env, "", "thread", "export", "key:none"); o.code != 1 || !strings.Contains(o.err, "not found") {
		t.Errorf("a thread that is not there: %d %s", o.code, o.err)
	}
}
