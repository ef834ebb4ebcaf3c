package clients_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
)

// The programs of docs/sessions.md run as they stand there. Each keeps both of its questions, and both
// answers, in one thread. Each run of the Agents SDK has another one.
func TestSessions_ProgramsOfThePage(t *testing.T) {
	dir, node := installFrom(t, "sessions/package.json")
	page, err := os.ReadFile("../../docs/sessions.md")
	if err != nil {
		t.Fatal(err)
	}
	s := openResponses(t)
	c := s.Client("acme")
	programs := strings.Split(string(page), "```js\n")[1:]
	if len(programs) != 3 {
		t.Fatalf("the page has %d programs", len(programs))
	}
	known := map[string]bool{}
	for n, text := range programs {
		text, _, _ = strings.Cut(text, "```")
		name := fmt.Sprintf("program%d.mjs", n)
		text = strings.ReplaceAll(text, "http://127.0.0.1:8420", s.Addresses().HTTP)
		s.Must(os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
		cmd := exec.CommandContext(t.Context(), node, name)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil || strings.TrimSpace(string(out)) != "Hello, you." {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
		now, err := c.UpToDate(t.Context())
		s.Must(err)
		list, err := client.Read(t.Context(), now, events.ListThreads{})
		s.Must(err)
		created, whole := 0, 0
		for _, thread := range list.Threads {
			if known[thread.ID] {
				continue
			}
			known[thread.ID] = true
			if created++; thread.Items == 4 {
				whole++
			}
		}
		if want := []int{3, 1, 1}[n]; created != want || whole == 0 {
			t.Errorf("%s: %d threads, and not %d; %d have all messages", name, created, want, whole)
		}
	}
}
