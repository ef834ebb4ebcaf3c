package chaos

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
)

// form is what two runs of the same talk must agree on: a thread's items, executions,
// steps and parts, as the read models show them.
//
// Left out are: times, versions and sequences; which worker ran an execution and
// how often it was claimed; ids that are made of the time, instead of which steps
// are named by their iteration and calls by their callId; and the place of a
// call's result among the results of its step, since calls of a step run at the
// same time. Approvals, retries and traces are no part of it. Where a person
// denied a call because its work was done already, only the existence of a result
// is compared.
type form struct {
	Thread string
	Turns  []turnForm
	Items  []itemForm // in order, but for those of calls
}

type turnForm struct {
	Execution, Agent, Trigger, Reaction string
	Status                              events.ExecutionStatus
	ErrorText                           string
	Finished, Stopped                   bool
	Steps                               []stepForm
}

type stepForm struct {
	Iteration int64
	Status    events.StepStatus
	Writes    string
	Continue  bool
	ErrorText string
	Calls     string
	Results   string
	Parts     []partForm
}

type partForm struct {
	Idx  int64
	Type string
	Part string
}

type itemForm struct {
	ID      string // or, of a call, its callId
	Type    events.ItemType
	Role    events.Role
	Status  events.ItemStatus
	Parent  string
	Content string
	Flags   string
}

// formOf returns the form of a thread. denied are the calls, as execution:call, whose
// results are not compared.
func formOf(ctx context.Context, c *client.Client, thread string, denied map[string]bool) (*form, error) {
	t, err := client.Read(ctx, c, events.GetThread{ThreadID: thread})
	if err != nil {
		return nil, err
	}
	f := &form{Thread: string(t.Status)}
	list, err := client.Read(ctx, c, events.ListExecutions{ThreadID: thread})
	if err != nil {
		return nil, err
	}
	calls := map[string]bool{} // that were denied, by callId: unique in a thread
	for _, x := range list.Executions {
		for key := range denied {
			if call, ok := strings.CutPrefix(key, x.ID+":"); ok {
				calls[call] = true
			}
		}
	}
	for _, x := range list.Executions {
		turn := turnForm{
			Execution: x.ID, Agent: x.AgentID, Trigger: x.TriggerItemID, Reaction: x.ReactionItemID, Status: x.Status,
			ErrorText: x.ErrorText, Finished: x.Finished, Stopped: x.Stopped,
		}
		if turn.Steps, err = stepsOf(ctx, c, thread, x.ID, calls); err != nil {
			return nil, err
		}
		f.Turns = append(f.Turns, turn)
	}
	f.Items, err = itemsOf(ctx, c, thread, calls)
	return f, err
}

func stepsOf(ctx context.Context, c *client.Client, thread, execution string, denied map[string]bool) ([]stepForm, error) {
	steps, err := client.Read(ctx, c, events.ListSteps{ThreadID: thread, ExecutionID: execution})
	if err != nil {
		return nil, err
	}
	var out []stepForm
	for _, s := range steps.Steps {
		name := fmt.Sprintf("step%d", s.Iteration)
		step := stepForm{
			Iteration: s.Iteration, Status: s.Status, Writes: s.EventID, Continue: s.ContinueLoop != nil && *s.ContinueLoop, ErrorText: s.ErrorText,
			Calls: strings.ReplaceAll(string(s.ToolCalls), s.ID, name), Results: strings.ReplaceAll(string(s.ToolExecutionResults), s.ID, name),
		}
		parts, err := client.Read(ctx, c, events.ListParts{ThreadID: thread, StepID: s.ID})
		if err != nil {
			return nil, err
		}
		for _, p := range parts.Parts {
			one, err := undenied(p.Part, denied)
			if err != nil {
				return nil, err
			}
			step.Parts = append(step.Parts, partForm{p.Idx, p.Type, one})
		}
		out = append(out, step)
	}
	return out, nil
}

func itemsOf(ctx context.Context, c *client.Client, thread string, denied map[string]bool) ([]itemForm, error) {
	var said, calls []itemForm
	q := events.ListItems{ThreadID: thread}
	for {
		page, err := client.Read(ctx, c, q)
		if err != nil {
			return nil, err
		}
		for _, i := range page.Items {
			item := itemForm{
				ID: i.ID, Type: i.Type, Role: i.Role, Status: i.Status, Parent: i.ParentItemID,
				Flags: fmt.Sprintf("depth %d, silent %t, failed %t", i.Depth, i.Silent, i.Failed),
			}
			if item.Content, err = undenied(i.Content, denied); err != nil {
				return nil, err
			}
			if i.Type == events.Message {
				said = append(said, item)
				continue
			}
			var call struct {
				CallID string `json:"callId"`
			}
			if err := json.Unmarshal(i.Content, &call); err != nil {
				return nil, err
			}
			item.ID = call.CallID
			calls = append(calls, item)
		}
		if q.Cursor = page.NextCursor; q.Cursor == "" {
			break
		}
	}
	slices.SortFunc(calls, func(a, b itemForm) int { return strings.Compare(a.ID+string(a.Type), b.ID+string(b.Type)) })
	return append(said, calls...), nil
}

// undenied returns content in its canonical form, without the results of denied calls.
func undenied(content events.JSON, denied map[string]bool) (string, error) {
	var v any
	if err := json.Unmarshal(content, &v); err != nil {
		return "", err
	}
	hide(v, denied)
	raw, err := json.Marshal(v, json.Deterministic(true))
	return string(raw), err
}

func hide(v any, denied map[string]bool) {
	switch v := v.(type) {
	case []any:
		for _, one := range v {
			hide(one, denied)
		}
	case map[string]any:
		id, _ := v["toolCallId"].(string) // of a part
		if id == "" {
			id, _ = v["callId"].(string) // of an item
		}
		if _, ended := v["output"]; ended && denied[id] {
			v["output"] = "denied"
			delete(v, "isError")
			delete(v, "errorText")
			if v["state"] != nil {
				v["state"] = "denied"
			}
		}
	}
}

// differences describes in a few lines where two forms differ.
func differences(a, b *form) string {
	one, err := json.Marshal(a, jsontext.WithIndent(" "))
	if err != nil {
		return err.Error()
	}
	two, err := json.Marshal(b, jsontext.WithIndent(" "))
	if err != nil {
		return err.Error()
	}
	if string(one) == string(two) {
		return ""
	}
	x, y := strings.Split(string(one), "\n"), strings.Split(string(two), "\n")
	for i := 0; ; i++ {
		if i >= len(x) || i >= len(y) || x[i] != y[i] {
			show := func(lines []string) string {
				return strings.Join(lines[min(max(i-8, 0), len(lines)):min(i+4, len(lines))], "\n")
			}
			return fmt.Sprintf("undisturbed, line %d:\n%s\ndisturbed:\n%s", i, show(x), show(y))
		}
	}
}

// callIn is a call as a step lists it.
type callIn struct {
	CallID string `json:"callId"`
	Name   string `json:"name"`
}
