package a2a

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/skein-threads/skein/api/runstream"
	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
)

// Bounds of lists of tasks.
const (
	mostListed = 1000 // runs of which a list is made: those that changed last
	pageSize   = 50
	mostOfPage = 100
)

// listed are the parameters of a list of tasks.
type listed struct {
	ContextID string `json:"contextId"`
	Status    string `json:"status"`
	PageSize  *int   `json:"pageSize"`
	PageToken string `json:"pageToken"` // orderOf the last task of the page before
	History   *int   `json:"historyLength"`
	After     string `json:"statusTimestampAfter"`
	Artifacts bool   `json:"includeArtifacts"`
}

// check refuses parameters that make no list.
func (in *listed) check() error {
	if in.Status == "TASK_STATE_UNSPECIFIED" {
		in.Status = ""
	}
	states := []string{"", submitted, working, inputRequired, completed, failed, canceled, "TASK_STATE_REJECTED", "TASK_STATE_AUTH_REQUIRED"}
	switch {
	case in.PageSize != nil && (*in.PageSize < 1 || *in.PageSize > mostOfPage):
		return events.Invalid("/pageSize", "pageSize is 1 to %d, and not %d", mostOfPage, *in.PageSize)
	case !slices.Contains(states, in.Status):
		return events.Invalid("/status", "there is no state %.64q", in.Status)
	case in.PageToken != "" && !isOrder(in.PageToken):
		return events.Invalid("/pageToken", "%.64q is not the nextPageToken of a list", in.PageToken)
	case in.After != "":
		if _, err := events.ParseTime(in.After); err != nil {
			return events.Invalid("/statusTimestampAfter", "%s", err)
		}
	}
	return checkHistory(in.History)
}

// listTasks answers with the tasks of a context, or of the agent, that changed last first.
func (o *operation) listTasks() error {
	var in listed
	if err := decode(o.params, &in); err != nil {
		return err
	}
	if err := in.check(); err != nil {
		return err
	}
	ctx := o.r.Context()
	now, err := o.c.Client.UpToDate(ctx)
	if err != nil {
		return err
	}
	if _, err := agentNamed(ctx, now, o.c, o.agent); err != nil {
		return err
	}
	list, err := o.candidates(ctx, now, &in)
	if err != nil {
		return err
	}
	out := struct {
		Tasks     []task `json:"tasks"`
		NextToken string `json:"nextPageToken"`
		PageSize  int    `json:"pageSize"`
		TotalSize int    `json:"totalSize"`
	}{[]task{}, "", pageSize, len(list)}
	if in.PageSize != nil {
		out.PageSize = *in.PageSize
	}
	contexts, last := map[string]string{}, ""
	for _, x := range list {
		if in.PageToken != "" && orderOf(x) >= in.PageToken {
			continue
		}
		if len(out.Tasks) == out.PageSize {
			out.NextToken = last
			break
		}
		one, err := o.listedTask(ctx, now, x, contexts, &in)
		if events.IsNotFound(err) { // it was deleted meanwhile
			continue
		}
		if err != nil {
			return err
		}
		out.Tasks, last = append(out.Tasks, one), orderOf(x)
	}
	o.result(o.w, out)
	return nil
}

// listedTask returns a task of a page.
func (o *operation) listedTask(ctx context.Context, now *client.Client, x *events.Execution, contexts map[string]string, in *listed) (task, error) {
	if contexts[x.ThreadID] == "" {
		t, err := client.Read(ctx, now, events.GetThread{ThreadID: x.ThreadID})
		if err != nil {
			return task{}, err
		}
		contexts[x.ThreadID] = contextOf(t)
	}
	if x.TriggerItemID == "" && !runstream.IsQueued(x) { // it is only listed
		whole, err := client.Read(ctx, now, events.GetExecution{ThreadID: x.ThreadID, ExecutionID: x.ID})
		if err != nil {
			return task{}, err
		}
		x = whole
	}
	return o.site().taskOf(ctx, now, x, contexts[x.ThreadID], in.History, in.Artifacts)
}

// candidates returns the executions that a list is of, that changed last first. Only what is listed of
// them is known of some.
func (o *operation) candidates(ctx context.Context, now *client.Client, in *listed) ([]*events.Execution, error) {
	read := o.runs
	if in.ContextID != "" {
		read = o.runsOf
	}
	all, err := read(ctx, now, in)
	if err != nil {
		return nil, err
	}
	after, _ := events.ParseTime(cmp.Or(in.After, "1970-01-01T00:00:00Z")) // it was checked
	var list []*events.Execution
	for _, x := range all {
		at, _ := events.ParseTime(changedAt(x)) // a document's time is well-formed
		if x.AgentID != o.agent || at < after {
			continue
		}
		if in.Status != "" && x.TriggerItemID == "" && !runstream.IsQueued(x) && (x.Status == events.ExecutionCompleted) == (in.Status == completed) {
			if x, err = client.Read(ctx, now, events.GetExecution{ThreadID: x.ThreadID, ExecutionID: x.ID}); events.IsNotFound(err) {
				continue
			}
			if err != nil {
				return nil, err
			}
		}
		if in.Status == "" || stateOf(x) == in.Status {
			list = append(list, x)
		}
	}
	slices.SortStableFunc(list, func(a, b *events.Execution) int { return strings.Compare(orderOf(b), orderOf(a)) })
	return list, nil
}

// runs returns the runs of the agent.
func (o *operation) runs(ctx context.Context, now *client.Client, _ *listed) (list []*events.Execution, err error) {
	page, err := client.Read(ctx, now, events.ListRuns{AgentID: o.agent, Limit: new(int64(mostListed))})
	if err != nil {
		return nil, err
	}
	for _, r := range page.Runs {
		list = append(list, &events.Execution{
			ID: r.ExecutionID, ThreadID: r.ThreadID, AgentID: r.AgentID, Status: r.Status, CreatedAt: r.CreatedAt, UpdatedAt: r.UpdatedAt, Finished: r.Status != events.Executing,
		})
	}
	return list, nil
}

// runsOf returns the runs of a context, and those that wait for it.
func (o *operation) runsOf(ctx context.Context, now *client.Client, in *listed) (list []*events.Execution, err error) {
	t, err := threadOf(ctx, now, in.ContextID)
	if t == nil || err != nil {
		if events.IsNotFound(err) {
			err = nil
		}
		return nil, err
	}
	page, err := client.Read(ctx, now, events.ListExecutions{ThreadID: t.ID, Order: "desc", Limit: new(int64(mostListed))})
	if err != nil {
		return nil, err
	}
	for i := range page.Executions {
		list = append(list, &page.Executions[i])
	}
	waiting, err := now.ListQueue(ctx, events.ListQueue{ThreadID: t.ID})
	if err != nil {
		return nil, err
	}
	for _, q := range waiting.Queued {
		x, err := runstream.Queued(ctx, now, q.ExecutionID)
		if events.IsNotFound(err) { // it is not of this protocol
			continue
		}
		if err != nil {
			return nil, err
		}
		list = append(list, x)
	}
	return list, nil
}

// changedAt returns when an execution last changed.
func changedAt(x *events.Execution) string { return cmp.Or(x.UpdatedAt, x.CreatedAt) }

// orderOf returns what a list is sorted by.
func orderOf(x *events.Execution) string { return changedAt(x) + " " + x.ID }

// isOrder reports whether a text may be what orderOf returns.
func isOrder(token string) bool {
	at, id, _ := strings.Cut(token, " ")
	_, err := events.ParseTime(at)
	return err == nil && strings.HasPrefix(id, events.ExecutionPrefix)
}
