package mcp

import (
	"errors"
	"strings"
	"testing"

	"github.com/skein-threads/skein/events"
)

func TestDefinitionsThatAreRefused(t *testing.T) {
	t.Parallel()
	for want, def := range map[string]Server{
		"/name":      {Name: "a__b", Command: "x"},
		"/name ":     {Name: "", Command: "x"},
		"/name  ":    {Name: "a_", Command: "x"},
		"/name   ":   {Name: "a.b", Command: "x"},
		"/name    ":  {Name: strings.Repeat("a", 25), Command: "x"},
		"/command":   {Name: "a"},
		"/command ":  {Name: "a", Command: "x", URL: "http://x"},
		"/args":      {Name: "a", URL: "http://x", Args: []string{"y"}},
		"/headers":   {Name: "a", Command: "x", Headers: map[string]string{"A": "B"}},
		"/headers ":  {Name: "a", URL: "http://x", Headers: map[string]string{"Authorization": "Bearer topsecret123"}},
		"/headers  ": {Name: "a", URL: "http://x", Headers: map[string]string{"Mcp-Session-Id": "B"}},
		"/headers. ": {Name: "a", URL: "http://x", Headers: map[string]string{"host": "B"}},
		"/headers: ": {Name: "a", URL: "http://x", Headers: map[string]string{"A\r\nB": "B"}},
		"/env/1":     {Name: "a", Command: "x", Env: []string{"GOOD", "TOKEN=topsecret123"}},
		"/url":       {Name: "a", URL: "file:///etc/passwd"},
		"/url ":      {Name: "a", URL: "https://user:topsecret123@x"},
		"/url  ":     {Name: "a", URL: "http://"},
		"/timeoutMs": {Name: "a", Command: "x", TimeoutMs: -1},
		"/approval":  {Name: "a", Command: "x", Approval: "sometimes"},
	} {
		_, err := New(Options{}, def)
		var refused *events.Error
		if path := strings.TrimRight(want, " .:"); !errors.As(err, &refused) || refused.Code != events.InvalidRequest || refused.Details.Path != path || strings.Contains(err.Error(), "topsecret123") {
			t.Errorf("%s: %v", want, err)
		}
	}
	twice := Server{Name: "a", Command: "x"}
	if _, err := New(Options{}, twice, twice); !errors.Is(err, &events.Error{Code: events.AlreadyExists}) {
		t.Error(err)
	}
	if _, err := New(Options{MaxSessions: -1}); !errors.Is(err, &events.Error{Code: events.InvalidRequest}) {
		t.Error(err)
	}
}

// A name depends only on the server and the tool, and is always valid.
func TestNamesOfTools(t *testing.T) {
	t.Parallel()
	seen := map[string]string{}
	for _, server := range []string{"a", "a_b", "a-b", "b", strings.Repeat("s", 24)} {
		for _, tool := range []string{"b", "_b", "b__c", "b.c", "b/c", "b_c", "é", "日本", strings.Repeat("x", 64), strings.Repeat("x", 65), "read file", ""} {
			name := toolName(server, tool)
			if len(name) > 64 || plain(name) != name || !strings.HasPrefix(name, server+"__") {
				t.Errorf("%s of %s is %s", tool, server, name)
			}
			if other, ok := seen[name]; ok {
				t.Errorf("%s of %s and %s are both %s", tool, server, other, name)
			}
			seen[name] = tool + " of " + server
		}
	}
	if toolName("files", "read") != "files__read" {
		t.Error(toolName("files", "read"))
	}
}

func TestSecretsAreMasked(t *testing.T) {
	t.Parallel()
	values := map[string]string{"TOKEN": "Token abcdef123", "LONG": "abcdef123456", "SHORT": "on"}
	for text, want := range map[string]string{
		"bad Token abcdef123!":     "bad [TOKEN]!",
		"bad abcdef123456 is on":   "bad [LONG] is on",
		"abcdef123 and abcdef1234": "[TOKEN] and [TOKEN]4",
	} {
		if got := masked(text, values); got != want {
			t.Errorf("%s: %s", text, got)
		}
	}
}
