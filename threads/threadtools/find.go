package threadtools

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/excerpt"
)

// FindArgs are the arguments of find_thread.
type FindArgs struct {
	Query    string `json:"query" doc:"Words that all occur in the thread's title, key, id, agent, tags or repositories, in letters of either case. The texts of messages are not searched. Empty: every thread."`
	Limit    int64  `json:"limit,omitempty" doc:"How many threads to return: 1 to 50, default 10."`
	Agent    string `json:"agent,omitempty" doc:"Only threads of this agent."`
	Since    string `json:"since,omitempty" doc:"Only threads that changed at this time or later: 2026-02-20 or 2026-02-20T10:00:00Z."`
	Until    string `json:"until,omitempty" doc:"Only threads that did not change after this time."`
	Archived bool   `json:"archived,omitempty" doc:"The archived threads, instead of the others."`
	Cursor   string `json:"cursor,omitempty" doc:"next of the answer before, with the same other arguments."`
}

// Found is what find_thread returns, the last changed thread first.
type Found struct {
	Threads  []Thread `json:"threads"`
	Searched int64    `json:"searched"`       // how many threads were compared
	Next     string   `json:"next,omitempty"` // cursor of those that were not; absent: all were
}

// Thread is a thread in a list.
type Thread struct {
	ThreadID     string   `json:"threadId"`
	Key          string   `json:"key,omitempty"`
	Title        string   `json:"title,omitempty"`
	AgentID      string   `json:"agentId,omitempty"`
	CreatedAt    string   `json:"createdAt"`
	UpdatedAt    string   `json:"updatedAt"`
	Items        int64    `json:"items"` // messages, calls and their results
	Tags         []string `json:"tags,omitempty"`
	Repositories []string `json:"repositories,omitempty"`
	MainThreadID string   `json:"mainThreadId,omitempty"`
}

// The bounds of a search.
const (
	usualFound = 10
	maxFound   = 50
	findPage   = 100  // threads of one query
	maxCompare = 2000 // threads of one call
	maxQuery   = 500
	maxLabels  = 8
)

// Find returns the threads that a query names.
func (r *Reader) Find(ctx context.Context, a FindArgs) (*Found, error) {
	s, err := newSearch(a)
	if err != nil {
		return nil, err
	}
	if s.view, err = r.view(ctx); err != nil {
		return nil, err
	}
	for {
		next, err := s.page(ctx)
		if err != nil || next == "" {
			return s.found, err
		}
		if s.full() || s.found.Searched >= maxCompare {
			s.found.Next = next
			return s.found, nil
		}
	}
}

// search is one call of find_thread.
type search struct {
	view  *view
	query events.ListThreads
	words []string
	until events.Time
	most  int
	skip  int // threads of the first page that the calls before have compared
	found *Found
}

func newSearch(a FindArgs) (*search, error) {
	s := &search{words: strings.Fields(strings.ToLower(a.Query)), most: usualFound, found: &Found{Threads: []Thread{}}}
	if a.Limit != 0 {
		s.most = int(min(a.Limit, maxFound+1))
	}
	switch {
	case len(a.Query) > maxQuery:
		return nil, events.Invalid("/query", "the query has %d bytes; at most %d are allowed", len(a.Query), maxQuery)
	case s.most < 1 || s.most > maxFound:
		return nil, events.Invalid("/limit", "the limit is %d; it is 1 to %d", a.Limit, maxFound)
	}
	s.query = events.ListThreads{AgentID: a.Agent, Archived: &a.Archived, Limit: new(int64(findPage))}
	if a.Since != "" {
		since, err := moment("/since", a.Since)
		if err != nil {
			return nil, err
		}
		s.query.UpdatedAfter = (since - 1).String()
	}
	if a.Until != "" {
		var err error
		if s.until, err = moment("/until", a.Until); err != nil {
			return nil, err
		}
	}
	if a.Cursor != "" {
		skip, cursor, ok := strings.Cut(a.Cursor, ".")
		n, err := strconv.Atoi(skip)
		if !ok || err != nil || n < 0 || n > findPage {
			return nil, events.Invalid("/cursor", "%.80q is no cursor; pass next of the answer before", a.Cursor)
		}
		s.skip, s.query.Cursor = n, cursor
	}
	return s, nil
}

// moment parses a day or a time.
func moment(path, text string) (events.Time, error) {
	if day, err := time.Parse(time.DateOnly, text); err == nil {
		return events.Time(day.UnixMicro()), nil
	}
	t, err := events.ParseTime(text)
	if err != nil {
		return 0, events.Invalid(path, "%.80q is no time; write 2026-02-20 or 2026-02-20T10:00:00Z", text)
	}
	return t, nil
}

func (s *search) full() bool { return len(s.found.Threads) >= s.most }

// page compares the threads of one query, and returns the cursor of those that follow.
func (s *search) page(ctx context.Context) (next string, err error) {
	if s.view.run && s.view.user != "" {
		s.query.UserID = s.view.user
	}
	got, err := client.Read(ctx, s.view.c, s.query)
	if err != nil {
		return "", err
	}
	for i := range got.Threads {
		if i < s.skip {
			continue
		}
		if s.full() {
			return strconv.Itoa(i) + "." + s.query.Cursor, nil
		}
		s.found.Searched++
		t := &got.Threads[i]
		one := threadOf(t)
		if !s.matches(t, one) {
			continue
		}
		ok, err := s.view.mayRead(ctx, t)
		if err != nil {
			return "", err
		}
		if ok {
			s.found.Threads = append(s.found.Threads, one)
		}
	}
	if got.NextCursor == "" {
		return "", nil
	}
	s.skip, s.query.Cursor = 0, got.NextCursor
	return "0." + got.NextCursor, nil
}

// matches reports whether a thread was changed by then, and has every word.
func (s *search) matches(t *events.Thread, one Thread) bool {
	if s.until > 0 {
		if at, err := events.ParseTime(changedAt(t)); err != nil || at > s.until {
			return false
		}
	}
	text := strings.ToLower(strings.Join(append([]string{one.ThreadID, one.Key, t.Title, one.AgentID}, append(one.Tags, one.Repositories...)...), "\n"))
	for _, w := range s.words {
		if !strings.Contains(text, w) {
			return false
		}
	}
	return true
}

// threadOf returns a thread as lists show it.
func threadOf(t *events.Thread) Thread {
	one := Thread{
		ThreadID: t.ID, Title: excerpt.Of(t.Title, 200), AgentID: t.AgentID, CreatedAt: t.CreatedAt, UpdatedAt: changedAt(t), Items: t.Items, MainThreadID: t.MainThreadID,
	}
	if t.Key != nil {
		one.Key = *t.Key
	}
	var env struct {
		Initial struct {
			Tags  []any `json:"tags"`
			Trees []struct {
				Repository struct {
					URL any `json:"url"`
				} `json:"repository"`
			} `json:"trees"`
		} `json:"initial"`
	}
	if len(t.Env) == 0 || json.Unmarshal(t.Env, &env) != nil { // callers write it as they like
		return one
	}
	for _, tag := range env.Initial.Tags {
		one.Tags = label(one.Tags, tag)
	}
	for _, tree := range env.Initial.Trees {
		one.Repositories = label(one.Repositories, tree.Repository.URL)
	}
	return one
}

// label adds a text to a short list of short ones.
func label(list []string, value any) []string {
	text, ok := value.(string)
	if !ok || text == "" || len(list) >= maxLabels {
		return list
	}
	return append(list, excerpt.Of(text, 200))
}
