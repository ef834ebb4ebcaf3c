package client

import (
	"context"

	"github.com/skein-threads/skein/events"
)

// Query asks a query, noun.verb, with what it takes, and gives the answer as
// JSON. The typed methods below do the same for each query there is.
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

// ask asks a query whose answer is a T.
func ask[T any](ctx context.Context, c *Client, name string, data any) (*T, error) {
	answer, err := c.Query(ctx, name, data)
	if err != nil {
		return nil, err
	}
	return decode[T](answer)
}

// fresh sets how new the answer must be, where the query does not say it.
func (c *Client) fresh(f *events.Fresh) {
	if c.minSeq > 0 && f.MinSeq == nil {
		f.MinSeq = new(c.minSeq)
	}
}

// GetThread asks for a thread's document, now or as it was.
func (c *Client) GetThread(ctx context.Context, q events.GetThread) (*events.Thread, error) {
	c.fresh(&q.Fresh)
	return ask[events.Thread](ctx, c, "thread.get", q)
}

// ListThreads asks for the tenant's threads, newest change first.
func (c *Client) ListThreads(ctx context.Context, q events.ListThreads) (*events.ThreadList, error) {
	c.fresh(&q.Fresh)
	return ask[events.ThreadList](ctx, c, "thread.list", q)
}

// GetContext asks for a context's document.
func (c *Client) GetContext(ctx context.Context, q events.GetContext) (*events.Context, error) {
	c.fresh(&q.Fresh)
	return ask[events.Context](ctx, c, "context.get", q)
}

// ListContexts asks for a thread's contexts.
func (c *Client) ListContexts(ctx context.Context, q events.ListContexts) (*events.ContextList, error) {
	c.fresh(&q.Fresh)
	return ask[events.ContextList](ctx, c, "context.list", q)
}

// GetItem asks for an item's document.
func (c *Client) GetItem(ctx context.Context, q events.GetItem) (*events.Item, error) {
	c.fresh(&q.Fresh)
	return ask[events.Item](ctx, c, "item.get", q)
}

// ListItems asks for a thread's items.
func (c *Client) ListItems(ctx context.Context, q events.ListItems) (*events.ItemList, error) {
	c.fresh(&q.Fresh)
	return ask[events.ItemList](ctx, c, "item.list", q)
}

// GetExecution asks for an execution's document.
func (c *Client) GetExecution(ctx context.Context, q events.GetExecution) (*events.Execution, error) {
	c.fresh(&q.Fresh)
	return ask[events.Execution](ctx, c, "execution.get", q)
}

// ListExecutions asks for a thread's executions.
func (c *Client) ListExecutions(ctx context.Context, q events.ListExecutions) (*events.ExecutionList, error) {
	c.fresh(&q.Fresh)
	return ask[events.ExecutionList](ctx, c, "execution.list", q)
}

// ListSteps asks for an execution's steps.
func (c *Client) ListSteps(ctx context.Context, q events.ListSteps) (*events.StepList, error) {
	c.fresh(&q.Fresh)
	return ask[events.StepList](ctx, c, "step.list", q)
}

// ListParts asks for a step's parts.
func (c *Client) ListParts(ctx context.Context, q events.ListParts) (*events.PartList, error) {
	c.fresh(&q.Fresh)
	return ask[events.PartList](ctx, c, "part.list", q)
}

// ListEvents asks for a part of a thread's history.
func (c *Client) ListEvents(ctx context.Context, q events.ListEvents) (*events.EventList, error) {
	c.fresh(&q.Fresh)
	return ask[events.EventList](ctx, c, "event.list", q)
}

// GetDefinition asks for a definition of the tenant, now or as it was.
func (c *Client) GetDefinition(ctx context.Context, q events.GetDefinition) (*events.Definition, error) {
	c.fresh(&q.Fresh)
	return ask[events.Definition](ctx, c, "definition.get", q)
}

// GetAgent asks whether there is an agent of that name. The error is not_found if
// there is none: see events.GetAgent.
func (c *Client) GetAgent(ctx context.Context, q events.GetAgent) (*events.Agent, error) {
	c.fresh(&q.Fresh)
	return ask[events.Agent](ctx, c, "agent.get", q)
}

// ListDefinitions asks for a page of the tenant's definitions, by kind and name.
func (c *Client) ListDefinitions(ctx context.Context, q events.ListDefinitions) (*events.DefinitionList, error) {
	c.fresh(&q.Fresh)
	return ask[events.DefinitionList](ctx, c, "definition.list", q)
}
