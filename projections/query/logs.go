package query

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/projections/documents"
)

// linesMost is how many log lines one answer holds.
const linesMost = 10_000

// listLogs returns log lines. There is no index of them: all that was recorded of the
// thread is read, a page at a time, and only what the answer may need is kept.
func (a *asking) listLogs(d events.ListLogs) (*events.LogList, error) {
	if err := a.about(d.ThreadID, nil, d.Fresh); err != nil {
		return nil, err
	}
	if _, err := a.ofThread(d.ThreadID); err != nil {
		return nil, err
	}
	offset, most := 0, linesMost
	if d.Offset != nil {
		offset = int(*d.Offset)
	}
	if d.Limit != nil {
		most = min(most, int(*d.Limit))
	}
	w := logWindow{most: offset + most + 1, asc: d.Order == "asc"}
	err := a.eachTrace(func(t *events.TraceEvent) {
		if t.Kind == string(events.TraceLog) && (d.FlowID == "" || t.RunID == d.FlowID) && (d.Level == "" || events.LogOf(t).Level == d.Level) {
			w.add(t)
		}
	})
	if err != nil {
		return nil, err
	}
	lines := w.lines()
	lines = lines[min(offset, len(lines)):]
	list := &events.LogList{Logs: []events.Log{}}
	room := a.answerBytes()
	for n, t := range lines {
		l := events.LogOf(t)
		raw, err := json.Marshal(l)
		if err != nil {
			return nil, err
		}
		if room -= len(raw) + 1; room < 0 || n == most {
			list.HasMore = true
			break
		}
		list.Logs = append(list.Logs, *l)
	}
	return list, nil
}

// eachTrace calls see with everything that was recorded of the thread, in the order of
// the bucket. What a rebuild writes meanwhile may be seen twice.
func (a *asking) eachTrace(see func(*events.TraceEvent)) error {
	model := a.models.Of(documents.TraceEvents)
	const page = 500
	for from := uint64(1); ; {
		got, err := a.log.Bucket(model.Bucket).Range(a.ctx, a.name()+".*", from, page)
		if err != nil {
			return fmt.Errorf("reading log lines: %w", err)
		}
		for _, m := range got {
			doc, _, err := model.Decode(m.Data)
			if err != nil {
				return err
			}
			see(doc.(*events.TraceEvent))
		}
		if len(got) < page {
			return nil
		}
		from = got[len(got)-1].Seq + 1
	}
}

// logWindow keeps the first lines of a list that arrives in any order.
type logWindow struct {
	most int // how many are kept
	asc  bool
	kept []*events.TraceEvent
}

// add adds a line. Twice as many as are needed may be kept for a moment.
func (w *logWindow) add(t *events.TraceEvent) {
	w.kept = append(w.kept, t)
	if len(w.kept)/2 >= w.most+64 {
		w.kept = slices.Clone(w.lines())
	}
}

// lines returns what is kept, in order.
func (w *logWindow) lines() []*events.TraceEvent {
	slices.SortFunc(w.kept, func(a, b *events.TraceEvent) int {
		order := cmp.Compare(a.Place, b.Place)
		if !w.asc {
			return -order
		}
		return order
	})
	w.kept = slices.CompactFunc(w.kept, func(a, b *events.TraceEvent) bool { return a.ID == b.ID })
	w.kept = w.kept[:min(len(w.kept), w.most)]
	return w.kept
}
