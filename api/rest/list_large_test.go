package rest_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/skein-threads/skein/events"
)

// A list that no answer can hold is asked for page by page, and the Go client returns it whole.
func TestLists_LargerThanAnAnswer(t *testing.T) {
	t.Parallel()
	s := start(t)
	thread := s.thread()
	text := strings.Repeat("x", 400<<10)
	const made = 12
	var last answer
	for n := range made {
		last = s.ask("POST", "/api/commands/context.create", fmt.Sprintf(`{"threadId":%q,"data":{"key":"c%d","content":{"text":%q}}}`, id(thread), n, text)).want(http.StatusOK)
	}
	seen := map[string]bool{}
	pages := 0
	for cursor := ""; ; pages++ {
		var page struct {
			Contexts   []struct{ ID string }
			NextCursor string
		}
		s.ask("GET", thread+"/contexts?cursor="+url.QueryEscape(cursor), "", "Skein-Min-Seq", last.text("seq")).want(http.StatusOK).to(&page)
		for _, c := range page.Contexts {
			seen[c.ID] = true
		}
		if cursor = page.NextCursor; cursor == "" {
			break
		}
	}
	if len(seen) != made+1 || pages == 0 {
		t.Errorf("%d contexts on %d pages, and not %d", len(seen), pages+1, made+1)
	}
	whole, err := s.Client("acme").ListContexts(t.Context(), events.ListContexts{ThreadID: id(thread)})
	s.Must(err)
	if len(whole.Contexts) != made+1 || whole.NextCursor != "" {
		t.Errorf("the client returns %d contexts, and the cursor %q", len(whole.Contexts), whole.NextCursor)
	}
	most := int64(5)
	page, err := s.Client("acme").ListContexts(t.Context(), events.ListContexts{ThreadID: id(thread), Limit: &most})
	s.Must(err)
	if len(page.Contexts) != 5 || page.NextCursor == "" {
		t.Errorf("a page of five has %d, and the cursor %q", len(page.Contexts), page.NextCursor)
	}
}
