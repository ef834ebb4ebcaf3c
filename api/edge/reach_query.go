package edge

import (
	"context"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/skein-threads/skein/events"
)

// query holds a query, and what its answer shows, to the threads.
func (r *reach) query(ctx context.Context, row events.Query, request fields, send func([]byte) ([]byte, error)) ([]byte, error) {
	switch row.Scope {
	case events.WholeTenant:
		return nil, tenantwide(row.Name)
	case events.OfDefinitions:
		if kind, _ := text(request, "kind"); !r.defines && kind != string(events.AgentKind) && kind != string(events.ModelKind) {
			return nil, events.Errorf(events.Forbidden, "the credential is limited to some threads, and reads definitions of agents and models only")
		}
	case events.OneThread, events.ManyThreads:
		_, named := text(request, "threadId")
		if err := r.field(ctx, request, "threadId"); err != nil {
			return nil, err
		}
		if row.Scope == events.ManyThreads {
			return r.list(ctx, row, request, named, send)
		}
		if !named {
			answer, err := send(encodeFields(request))
			if err == nil {
				err = r.answer(ctx, answer)
			}
			if err != nil {
				return nil, err
			}
			return answer, nil
		}
	}
	return send(encodeFields(request))
}

// answer checks that what a query answers belongs to threads that the principal may use.
func (r *reach) answer(ctx context.Context, answer []byte) error {
	var one any
	if err := json.Unmarshal(answer, &one); err != nil {
		return err
	}
	top, _ := one.(map[string]any)
	documents := []any{top}
	for _, v := range top {
		if list, ok := v.([]any); ok {
			documents = append(documents, list...)
		}
	}
	for _, d := range documents {
		of, _ := d.(map[string]any)
		id, ok := of["threadId"].(string)
		if !ok {
			continue
		}
		if shown, err := r.shows(ctx, id); err != nil {
			return err
		} else if !shown {
			return events.MissingThread(id)
		}
	}
	return nil
}

// list leaves out of a list what belongs to other threads.
func (r *reach) list(ctx context.Context, row events.Query, request fields, named bool, send func([]byte) ([]byte, error)) ([]byte, error) {
	if row.Name == "thread.list" && r.who.User != "" {
		if user, set := text(request, "userId"); set && user != r.who.User {
			return nil, events.Errorf(events.Forbidden, "the credential is limited to the threads of one user; leave userId out")
		}
		request["userId"] = quoted(r.who.User)
	}
	body, err := send(encodeFields(request))
	if err != nil || named {
		return body, err
	}
	answer, err := decodeFields(body)
	if err != nil {
		return nil, err
	}
	var entries, kept []jsontext.Value
	if err := json.Unmarshal(answer[row.Entries.List], &entries); err != nil {
		return nil, err
	}
	kept = []jsontext.Value{}
	last := true
	for _, e := range entries {
		if last, err = r.showsEntry(ctx, row, e); err != nil {
			return nil, err
		} else if last {
			kept = append(kept, e)
		}
	}
	if !last { // the rest of its commit is not shown either
		skipRest(answer)
	}
	if answer[row.Entries.List], err = json.Marshal(kept); err != nil {
		return nil, err
	}
	return encodeFields(answer), nil
}

// showsEntry reports whether an entry of a list belongs to a thread that the principal may use.
func (r *reach) showsEntry(ctx context.Context, row events.Query, entry jsontext.Value) (bool, error) {
	of, err := decodeFields(entry)
	if err != nil {
		return false, err
	}
	id, set := text(of, row.Entries.Thread)
	if row.Entries.Thread == "" {
		id, set = text(of, "threadId") // of a commit that cannot be read
		if e, err := events.DecodeEvent(events.JSON(of["event"])); err == nil {
			id, set = e.ThreadID, true
		}
	}
	if !set {
		return false, nil
	}
	return r.shows(ctx, id)
}

// skipRest lets the next page of a history begin after the commit that this page ends in.
func skipRest(answer fields) {
	var seq int64
	if _, inside := answer["nextVersion"]; !inside || json.Unmarshal(answer["nextSeq"], &seq) != nil {
		return
	}
	delete(answer, "nextVersion")
	answer["nextSeq"], _ = json.Marshal(seq + 1)
}
