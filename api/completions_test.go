package api_test

import (
	"net/http"
	"strings"
	"testing"
)

// A chat of another tenant or user does not exist for a caller, and a limited credential begins none.
func TestHandler_CompletionsOfOthers(t *testing.T) {
	t.Parallel()
	s := strangers(t)
	made := s.made("globex", "", "")
	for _, c := range []struct {
		name, who, chat string
		want            int
		code            string
	}{
		{"a user's chat", "ann", "c", http.StatusOK, ""},
		{"the same chat id of another user", "bob", "c", http.StatusNotFound, "not_found"},
		{"the same chat id of another tenant", "globex", "c", http.StatusOK, ""},
		{"another tenant's thread", "acme", made.thread, http.StatusNotFound, "not_found"},
		{"a reader's chat", "reader", "r", http.StatusForbidden, "forbidden"},
		{"a reader's question", "reader", "", http.StatusForbidden, "forbidden"},
		{"a chat of a credential for one thread", "one", "o", http.StatusNotFound, "not_found"},
		{"a question of a credential for one thread", "one", "", http.StatusForbidden, "makes no others"},
	} {
		status, text := s.ask(c.who, "POST", "/v1/chat/completions", `{"model":"teller","messages":[{"role":"user","content":"x"}]}`, "Skein-Thread", c.chat)
		if status != c.want || !strings.Contains(text, c.code) {
			t.Errorf("%s: %d %.300s, want %d %s", c.name, status, text, c.want, c.code)
		}
	}
}
