package main_test

import (
	"html"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
)

// Every page of the console names the same as JSON and as a command: the link answers, and the
// command runs against the same server.
func TestConsole_PagesNameTheirJSONAndCommand(t *testing.T) {
	t.Parallel()
	s := start(t, t.TempDir(), "--tenant", "acme")
	c, err := client.Connect(s.NATS, client.Options{Tenant: "acme", Timeout: 5 * time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Send(t.Context(), "", events.ApplyDefinitions{Definitions: []events.NewDefinition{
		{Kind: events.AgentKind, Definition: events.JSON(`{"name":"support","type":"ai_human","reactor":"support"}`)},
	}}); err != nil {
		t.Fatal(err)
	}
	reply, err := c.Send(t.Context(), "", events.ResolveThread{Key: "links", AgentID: "support", Title: "Links", UserID: "ada"})
	if err != nil {
		t.Fatal(err)
	}
	id := reply.ThreadID
	for range 4 {
		if _, err := c.Send(t.Context(), id, events.CreateItem{Item: events.NewItem{Type: events.Message, Role: events.User, Content: events.MessageText(false, new("Where?"))}}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := c.Files(id).WriteFile(t.Context(), "/notes/a.txt", []byte("a"), "text/plain", events.WriteFileOptions{}); err != nil {
		t.Fatal(err)
	}
	link := regexp.MustCompile(`The same as <a href="([^"]+)">JSON</a>`)
	command := regexp.MustCompile(`on the command line <code class="command">([^<]+)</code>`)
	next := []string{"/console/threads", "/console/threads?status=open&agentId=support&keyPrefix=l", "/console/threads/" + id, "/console/threads/" + id + "?at=3", "/console/threads/" + id + "/files?path=/notes", "/console/threads/" + id + "/files?path=/notes/a.txt", "/console/agents/agent/support"}
	navigation := regexp.MustCompile(`<li><a href="(/console/[^"]*)"`)
	seen, tested := map[string]bool{}, 0
	for len(next) > 0 {
		address := next[0]
		if next = next[1:]; seen[address] {
			continue
		}
		seen[address] = true
		page := s.page(address)
		for _, found := range navigation.FindAllStringSubmatch(page, -1) {
			next = append(next, html.UnescapeString(found[1]))
		}
		if found := link.FindStringSubmatch(page); found == nil {
			t.Errorf("%s has no link to its JSON", address)
		} else if body := s.page(html.UnescapeString(found[1])); len(body) == 0 {
			t.Errorf("%s: %s answers with nothing", address, found[1])
		}
		found := command.FindStringSubmatch(page)
		if found == nil {
			if !strings.Contains(address, "at=") { // some commands show the present only
				t.Errorf("%s names no command", address)
			}
			continue
		}
		call := html.UnescapeString(found[1])
		tested++
		args := strings.Fields(strings.TrimPrefix(call, "skein "))
		for i := range args {
			args[i] = strings.Trim(args[i], "'")
		}
		if args[0] == "tail" { // it stays until Ctrl-C
			args = append(args, "--follow=false")
		}
		if got := run(t, s.env, "", args...); got.code != 0 {
			t.Errorf("%s: %s ends with %d: %s", address, call, got.code, got.err)
		}
	}
	pages := []string{}
	for address := range seen {
		pages = append(pages, address)
	}
	slices.Sort(pages)
	if tested < 15 {
		t.Errorf("only %d pages named a command, of %q", tested, pages)
	}
}

// page returns the body of an address, whose status must be 200.
func (s *server) page(address string) string {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, s.HTTP+address, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	req.Header.Set("Accept", "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8") // as a browser does
	r, err := http.DefaultClient.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer r.Body.Close()
	body, err := io.ReadAll(r.Body)
	if err != nil || r.StatusCode != http.StatusOK {
		s.t.Errorf("%s: %s %v %.300s", address, r.Status, err, body)
	}
	return string(body)
}
