package query

import (
	"math"
	"strconv"
	"strings"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/projections/documents"
)

// threadsUsual is the default number of threads on a page.
const threadsUsual = 50

// listThreads returns a page of threads.
func listThreads(a *asking, d events.ListThreads) (*events.ThreadList, error) {
	list := &events.ThreadList{Threads: []events.Thread{}}
	next, err := a.eachThread("thread.list", d, func(t *events.Thread) { list.Threads = append(list.Threads, *shown(t)) })
	if err != nil {
		return nil, err
	}
	list.NextCursor = next
	return list, nil
}

// listThreadHistory is listThreads with summaries instead of documents. It only reads the read
// model threads.
func listThreadHistory(a *asking, d events.ListThreadHistory) (*events.ThreadHistory, error) {
	of := events.ListThreads{Archived: d.Archived, Limit: d.Limit, Cursor: d.Cursor, Fresh: d.Fresh}
	list := &events.ThreadHistory{Threads: []events.ThreadSummary{}}
	next, err := a.eachThread("thread.history", of, func(t *events.Thread) {
		list.Threads = append(list.Threads, t.Summary(messagesIn(t)))
	})
	if err != nil {
		return nil, err
	}
	list.NextCursor = next
	return list, nil
}

// messagesIn returns how many messages the thread's document has.
func messagesIn(t *events.Thread) (n int64) {
	for _, block := range t.MessageBlocks {
		count, _ := documents.MessageFilter{}.Count(block)
		n += count
	}
	return n
}

// eachThread selects threads from the directory, reads the documents of one page, passes each to
// add, and returns the cursor of the next page. A thread that changes between pages moves to the
// front: the following pages may miss it, but never show a thread twice.
func (a *asking) eachThread(list string, d events.ListThreads, add func(*events.Thread)) (next string, err error) {
	if d.MinVersion != nil {
		return "", events.Invalid("/minVersion", "a list of threads has no version; use minSeq")
	}
	if d.Archived == nil {
		d.Archived = new(bool)
	}
	w, err := wishOf(d)
	if err != nil {
		return "", err
	}
	query := mark(list, a.tenant, string(d.Status), triple(d.Archived), d.AgentID, d.UserID, d.KeyPrefix, d.UpdatedAfter)
	if d.Cursor != "" {
		if w.Before, err = decodeCursor(d.Cursor, query); err != nil {
			return "", err
		}
	}
	if err := a.awaitDirectory(d.MinSeq); err != nil {
		return "", err
	}
	most := limit(d.Limit, threadsUsual)
	picked := a.directory.Pick(a.tenant, w, most+1)
	more := uint64(0)
	if len(picked) > most {
		picked = picked[:most]
		more = picked[most-1].Seq
	}
	cut, err := a.readThreads(picked, d, add)
	if err != nil {
		return "", err
	}
	if cut > 0 {
		more = cut
	}
	if more == 0 {
		return "", nil
	}
	return encodeCursor(query, more), nil
}

func wishOf(d events.ListThreads) (directoryWish, error) {
	w := directoryWish{Status: d.Status, Archived: d.Archived, Agent: d.AgentID, User: d.UserID, KeyPrefix: d.KeyPrefix}
	if d.UpdatedAfter != "" {
		t, err := events.ParseTime(d.UpdatedAfter)
		if err != nil {
			return w, events.Invalid("/updatedAfter", "%w", err)
		}
		w.After = t
	}
	return w, nil
}

// triple returns "true", "false" or, if b is nil, "".
func triple(b *bool) string {
	if b == nil {
		return ""
	}
	return strconv.FormatBool(*b)
}

// awaitDirectory blocks until the directory is loaded and shows a sequence.
func (a *asking) awaitDirectory(least *int64) error {
	if err := a.awaitStart(math.MaxUint64); err != nil {
		return err
	}
	ctx, done := a.waiting()
	defer done()
	seq := a.cfg.Progress.Started()
	if least != nil {
		seq = max(seq, uint64(*least))
	}
	if a.directory.Await(ctx, seq) != nil {
		e := a.behind("the list of threads shows the log up to %d, not yet %d", a.directory.Shown(), seq)
		e.Details.Seq = int64(a.directory.Shown())
		return e
	}
	return nil
}

// readThreads passes the documents to add. If they do not fit into one answer, it returns the
// sequence of the last that does. A document that is newer than the directory may no longer match
// the query.
func (a *asking) readThreads(picked []pickedThread, d events.ListThreads, add func(*events.Thread)) (cut uint64, err error) {
	if len(picked) == 0 {
		return 0, nil
	}
	places := make([]documents.Place, len(picked))
	for i, p := range picked {
		places[i] = documents.Place{Kind: documents.Threads, Thread: documents.ThreadName(a.tenant, p.ID)}
	}
	got, err := (&live{q: a.Queries, list: true}).get(a.ctx, places...)
	if err != nil {
		return 0, err
	}
	room, added := a.answerBytes(), 0
	for i, f := range got {
		if f.doc == nil {
			continue
		}
		doc := f.doc.(*events.Thread)
		if !fits(doc, d) {
			continue
		}
		if room -= f.bytes + 1; room < 0 && added > 0 {
			return picked[i-1].Seq, nil
		}
		add(doc)
		added++
	}
	return 0, nil
}

func fits(t *events.Thread, d events.ListThreads) bool {
	key := ""
	if t.Key != nil {
		key = *t.Key
	}
	return (d.Status == "" || t.Status == d.Status) && (d.Archived == nil || t.Archived == *d.Archived) &&
		(d.AgentID == "" || t.AgentID == d.AgentID) && (d.UserID == "" || t.UserID == d.UserID) && strings.HasPrefix(key, d.KeyPrefix)
}
