package query

import (
	"github.com/go-json-experiment/json"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/projections/documents"
)

// linesMost is how many log lines one answer holds.
const linesMost = 10_000

// listLogs returns log lines. Lines before the offset are skipped through the index.
func listLogs(a *asking, d events.ListLogs) (*events.LogList, error) {
	if err := a.about(d.ThreadID, nil, d.Fresh); err != nil {
		return nil, err
	}
	thread, err := a.threadOfIndex(d.ThreadID)
	if err != nil {
		return nil, err
	}
	most := min(limit(d.Limit, linesMost), linesMost)
	w := listWalk{
		asking: a, list: documents.LogList, kind: documents.TraceEvents, end: thread.Version, desc: d.Order != "asc",
		skip: limit(d.Offset, 0), usual: most + 1,
	}
	if w.desc {
		w.next = w.end
	}
	w.match = func(e *documents.ListEntry) bool {
		return (d.FlowID == "" || e.Of == d.FlowID) && (d.Level == "" || e.As == string(d.Level))
	}
	list := &events.LogList{Logs: []events.Log{}}
	room := a.answerBytes()
	err = w.each(func(f found, _ *documents.ListEntry) (bool, error) {
		l := events.LogOf(f.doc.(*events.TraceEvent))
		raw, err := json.Marshal(l)
		if err != nil {
			return false, err
		}
		if room -= len(raw) + 1; room < 0 || len(list.Logs) == most {
			list.HasMore = true
			return false, nil
		}
		list.Logs = append(list.Logs, *l)
		return true, nil
	})
	return list, err
}
