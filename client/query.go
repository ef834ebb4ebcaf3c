package client

import (
	"bytes"
	"cmp"
	"context"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/skein-threads/skein/events"
)

// Query executes a query, named noun.verb, and returns the answer as JSON. data is a struct such
// as events.GetThread, or any value that encodes as a JSON object. [Read] takes the name from the
// type of the data, and returns a Go value.
func (c *Client) Query(ctx context.Context, name string, data any) ([]byte, error) {
	if err := checkName("query", name); err != nil {
		return nil, err
	}
	body, err := encode(data)
	if err != nil {
		return nil, err
	}
	request := c.request
	if !repeatable(name) {
		request = c.requestSingly
	}
	answer, refusal := request(ctx, events.KindQuery, name, c.fresh(name, body))
	if refusal != nil {
		return nil, refusal
	}
	return answer, nil
}

// Read executes the query whose data is q, such as an events.GetThread, and returns its
// answer, here an *events.Thread. The answer is nil where the query's is null: an
// events.GetMessage of a message that does not exist.
func Read[A any](ctx context.Context, c *Client, q events.QueryFor[A]) (*A, error) {
	row, ok := events.QueryOf(q)
	if !ok {
		return nil, events.Invalid("", "no query has data of type %T; see events.Queries", q)
	}
	answer, err := c.Query(ctx, row.Name, q)
	if err != nil {
		return nil, err
	}
	a, err := decode[*A](answer)
	if err != nil {
		return nil, err
	}
	return *a, nil
}

// fresh returns the body of a query with the client's minSeq, unless the body has one, or the
// query waits for no read model. A body that is no JSON object stays for the service to refuse.
func (c *Client) fresh(name string, body []byte) []byte {
	row, ok := events.LookupQuery(name)
	if c.minSeq == 0 || !ok || !row.Waits() {
		return body
	}
	has := struct {
		MinSeq jsontext.Value `json:"minSeq"`
	}{}
	if string(body) == "null" { // no data
		body = []byte("{}")
	}
	if json.Unmarshal(body, &has) != nil || has.MinSeq != nil {
		return body
	}
	rest, separator := bytes.TrimLeft(body[1:], " \t\r\n"), ","
	if rest[0] == '}' {
		separator = ""
	}
	return slices.Concat([]byte(`{"minSeq":`+strconv.FormatInt(c.minSeq, 10)+separator), rest)
}

// ListContexts returns a thread's contexts: all of them, or with a limit or a cursor a page.
func (c *Client) ListContexts(ctx context.Context, q events.ListContexts) (*events.ContextList, error) {
	return allPages(q.Limit != nil || q.Cursor != "", func(cursor string) (*events.ContextList, error) {
		q.Cursor = cmp.Or(cursor, q.Cursor)
		return Read(ctx, c, q)
	}, func(l *events.ContextList) *string { return &l.NextCursor }, func(all, page *events.ContextList) {
		all.Contexts = append(all.Contexts, page.Contexts...)
	})
}

// allPages returns a list with all its pages, unless its query names a limit or a cursor: then the page
// that it asks for. read returns the page after a cursor, more the cursor of the page after a list,
// and join appends a page.
func allPages[T any](one bool, read func(cursor string) (*T, error), more func(*T) *string, join func(all, page *T)) (*T, error) {
	all, err := read("")
	if err != nil || one {
		return all, err
	}
	for next := more(all); *next != ""; {
		page, err := read(*next)
		if err != nil {
			return nil, err
		}
		join(all, page)
		*next = *more(page)
	}
	return all, nil
}
