package threadmcp

import (
	"cmp"
	"context"
	"errors"
	"strings"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/threads/threadtools"
)

// maxFetch bounds the text of fetch; what follows is read at the place that its end names.
const maxFetch = 128 << 10

// addConnectorTools adds the two tools that chat products look for in a connector, by their names and
// shapes.
func (s *Server) addConnectorTools() error {
	return errors.Join(
		add(s, "search", "Search threads", "Finds threads by words of their title, key, id, agent, tags and repositories.", reads(), (*Caller).search),
		add(s, "fetch", "Fetch a thread", "Returns a thread as Markdown, by an id that search returned. A long one says at its end where it continues: fetch that.", reads(), (*Caller).fetch),
	)
}

type searchArgs struct {
	Query string `json:"query" doc:"Words that all occur. Empty: the threads that were changed last."`
}

type searched struct {
	Results []searchResult `json:"results"`
}

type searchResult struct {
	ID    string `json:"id"`
	Title string `json:"title"`
	URL   string `json:"url"`
}

func (c *Caller) search(ctx context.Context, a searchArgs) (*searched, error) {
	found, err := c.threads.Find(ctx, threadtools.FindArgs{Query: a.Query})
	if err != nil {
		return nil, err
	}
	out := &searched{Results: []searchResult{}}
	for _, t := range found.Threads {
		out.Results = append(out.Results, searchResult{t.ThreadID, cmp.Or(oneLine(t.Title), t.Key, t.ThreadID), c.page(t.ThreadID)})
	}
	return out, nil
}

type fetchArgs struct {
	ID string `json:"id" doc:"The id of a result of search, or where a text continues."`
}

type fetched struct {
	ID    string `json:"id"`
	Title string `json:"title"`
	Text  string `json:"text"`
	URL   string `json:"url"`
}

func (c *Caller) fetch(ctx context.Context, a fetchArgs) (*fetched, error) {
	p := place{id: a.ID}
	if strings.HasPrefix(a.ID, prefix) {
		var err error
		if p, err = placeOf(a.ID); err != nil {
			return nil, err
		}
	}
	var out *fetched
	var text strings.Builder
	for {
		page, err := c.threads.Read(ctx, threadtools.ReadArgs{Thread: p.id, From: p.from, Skip: p.skip})
		if err != nil {
			return nil, atID(err)
		}
		if out == nil {
			out = &fetched{ID: page.ThreadID, Title: cmp.Or(oneLine(page.Title), page.Key, page.ThreadID), URL: c.page(page.ThreadID)}
			writeHead(&text, page)
		}
		writeMessages(&text, page)
		if page.Next == nil || text.Len() >= maxFetch {
			writeNext(&text, page)
			out.Text = text.String()
			return out, nil
		}
		p.from, p.skip = page.Next.From, int64(page.Next.Skip)
	}
}

// atID returns an error of the query for a thread as one of the argument id.
func atID(err error) error {
	e := *events.AsError(err)
	const path = "/threadId"
	if e.Details == nil || e.Details.Path != path {
		return err
	}
	details := *e.Details
	details.Path = "/id"
	e.Message, e.Details = strings.Replace(e.Message, path, details.Path, 1), &details
	return &e
}
