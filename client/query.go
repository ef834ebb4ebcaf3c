package client

import (
	"cmp"
	"context"
	"reflect"

	"github.com/skein-threads/skein/events"
)

// Query executes a query, named noun.verb, and returns the answer as JSON. [Read] and
// the typed methods return Go values.
func (c *Client) Query(ctx context.Context, name string, data any) ([]byte, error) {
	body, err := encode(data)
	if err != nil {
		return nil, err
	}
	answer, refusal := c.request(ctx, c.opts.Names.Query(c.opts.Tenant, name), body)
	if refusal != nil {
		return nil, refusal
	}
	return answer, nil
}

// query executes a query whose answer is a T.
func query[T any](ctx context.Context, c *Client, name string, data any) (*T, error) {
	answer, err := c.Query(ctx, name, data)
	if err != nil {
		return nil, err
	}
	return decode[T](answer)
}

// fresh sets how recent the answer must be, unless the query sets it.
func (c *Client) fresh(f *events.Fresh) {
	if c.minSeq > 0 && f.MinSeq == nil {
		f.MinSeq = new(c.minSeq)
	}
}

// Read executes the query whose data is q, such as an events.ListContexts, and returns
// its answer, an A. It serves every query, also one that has no method of its own here.
func Read[A, Q any](ctx context.Context, c *Client, q Q) (*A, error) {
	row, ok := events.QueryOf(q)
	if !ok {
		return nil, events.Invalid("", "no query has data of type %T; see events.Queries", q)
	}
	if want := reflect.TypeOf(row.Answer); want != reflect.TypeFor[A]() {
		return nil, events.Invalid("", "%s is answered with %s, not with %s", row.Name, want, reflect.TypeFor[A]())
	}
	if f := reflect.ValueOf(&q).Elem().FieldByName("Fresh"); f.IsValid() {
		c.fresh(f.Addr().Interface().(*events.Fresh))
	}
	return query[A](ctx, c, row.Name, q)
}

// GetThread returns a thread's document, now or at an earlier point.
func (c *Client) GetThread(ctx context.Context, q events.GetThread) (*events.Thread, error) {
	c.fresh(&q.Fresh)
	return query[events.Thread](ctx, c, "thread.get", q)
}

// ListThreads returns a page of the tenant's threads, the latest changed first.
func (c *Client) ListThreads(ctx context.Context, q events.ListThreads) (*events.ThreadList, error) {
	c.fresh(&q.Fresh)
	return query[events.ThreadList](ctx, c, "thread.list", q)
}

// GetContext returns a context's document.
func (c *Client) GetContext(ctx context.Context, q events.GetContext) (*events.Context, error) {
	c.fresh(&q.Fresh)
	return query[events.Context](ctx, c, "context.get", q)
}

// ListContexts returns a thread's contexts: all of them, or with a limit or a cursor a page.
func (c *Client) ListContexts(ctx context.Context, q events.ListContexts) (*events.ContextList, error) {
	c.fresh(&q.Fresh)
	return allPages(q.Limit != nil || q.Cursor != "", func(cursor string) (*events.ContextList, error) {
		q.Cursor = cmp.Or(cursor, q.Cursor)
		return query[events.ContextList](ctx, c, "context.list", q)
	}, func(l *events.ContextList) *string { return &l.NextCursor }, func(all, page *events.ContextList) {
		all.Contexts = append(all.Contexts, page.Contexts...)
	})
}

// GetItem returns an item's document.
func (c *Client) GetItem(ctx context.Context, q events.GetItem) (*events.Item, error) {
	c.fresh(&q.Fresh)
	return query[events.Item](ctx, c, "item.get", q)
}

// ListItems returns a page of a thread's items.
func (c *Client) ListItems(ctx context.Context, q events.ListItems) (*events.ItemList, error) {
	c.fresh(&q.Fresh)
	return query[events.ItemList](ctx, c, "item.list", q)
}

// GetExecution returns an execution's document.
func (c *Client) GetExecution(ctx context.Context, q events.GetExecution) (*events.Execution, error) {
	c.fresh(&q.Fresh)
	return query[events.Execution](ctx, c, "execution.get", q)
}

// ListExecutions returns a page of a thread's executions.
func (c *Client) ListExecutions(ctx context.Context, q events.ListExecutions) (*events.ExecutionList, error) {
	c.fresh(&q.Fresh)
	return query[events.ExecutionList](ctx, c, "execution.list", q)
}

// ListSteps returns a page of an execution's steps.
func (c *Client) ListSteps(ctx context.Context, q events.ListSteps) (*events.StepList, error) {
	c.fresh(&q.Fresh)
	return query[events.StepList](ctx, c, "step.list", q)
}

// ListParts returns a page of a step's parts.
func (c *Client) ListParts(ctx context.Context, q events.ListParts) (*events.PartList, error) {
	c.fresh(&q.Fresh)
	return query[events.PartList](ctx, c, "part.list", q)
}

// ListEvents returns a page of a thread's history.
func (c *Client) ListEvents(ctx context.Context, q events.ListEvents) (*events.EventList, error) {
	c.fresh(&q.Fresh)
	return query[events.EventList](ctx, c, "event.list", q)
}

// GetDefinition returns a definition of the tenant, now or at an earlier point.
func (c *Client) GetDefinition(ctx context.Context, q events.GetDefinition) (*events.Definition, error) {
	c.fresh(&q.Fresh)
	return query[events.Definition](ctx, c, "definition.get", q)
}

// GetAgent returns an agent with that name, defined or served by a reactor. The error
// is not_found if there is none; see events.GetAgent.
func (c *Client) GetAgent(ctx context.Context, q events.GetAgent) (*events.Agent, error) {
	c.fresh(&q.Fresh)
	return query[events.Agent](ctx, c, "agent.get", q)
}

// ListDefinitions returns a page of the tenant's definitions, by kind and name.
func (c *Client) ListDefinitions(ctx context.Context, q events.ListDefinitions) (*events.DefinitionList, error) {
	c.fresh(&q.Fresh)
	return query[events.DefinitionList](ctx, c, "definition.list", q)
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
