package query

import (
	"fmt"
	"testing"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/readtest"
	"github.com/skein-threads/skein/projections"
	"github.com/skein-threads/skein/projections/documents"
)

// A deleted thread is not found, whatever a bucket holds of it: by its name, and by the
// ids of its documents.
func TestQueries_DeletedThreadIsNotFoundWhateverABucketHolds(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	r, _ := h.Run(projections.Config{})
	a := h.asker(Config{Progress: r.Progress()})
	id, docs := h.FullThread(r.Progress())
	kept := h.Do("thread.create", "", `{}`).ThreadID
	h.React(kept, 2)
	end := h.Do("thread.delete", id, `{}`)
	ask[events.ThreadList](a, "thread.list", `{`+seqOf(end)+`}`)
	h.BringBack(docs)

	var exe, step, item string
	for _, doc := range docs[documents.Steps] {
		var s events.Step
		readtest.Unmarshal(t, doc, &s)
		step, exe = s.ID, s.ExecutionID
	}
	for _, doc := range docs[documents.Items] {
		var i events.Item
		readtest.Unmarshal(t, doc, &i)
		item = i.ID
	}
	of := func(thread string) []string {
		ref := fmt.Sprintf(`"threadId":%q`, thread)
		return []string{
			`thread.get {` + ref + `}`, `context.get {` + ref + `}`, `context.list {` + ref + `}`, `item.list {` + ref + `}`,
			`message.list {` + ref + `}`, `execution.list {` + ref + `}`, `effect.list {` + ref + `}`, `log.list {` + ref + `}`,
			`file.list {` + ref + `,"path":"/"}`, `file.stats {` + ref + `}`, `file.find {` + ref + `,"pattern":"**"}`,
		}
	}
	ref := fmt.Sprintf(`"threadId":%q`, id)
	queries := append(of(id),
		`item.get {`+ref+`,"itemId":"`+item+`"}`, `item.get {"itemId":"`+item+`"}`,
		`execution.get {`+ref+`,"executionId":"`+exe+`"}`, `execution.get {"executionId":"`+exe+`"}`,
		`step.list {`+ref+`,"executionId":"`+exe+`"}`, `step.list {"executionId":"`+exe+`"}`,
		`part.list {`+ref+`,"stepId":"`+step+`"}`, `part.list {"stepId":"`+step+`"}`,
		`message.get {`+ref+`,"messageId":"`+item+`"}`,
		`file.stat {`+ref+`,"path":"/d/a.txt"}`, `file.list {`+ref+`,"path":"/d"}`,
	)
	for _, q := range queries {
		var name, body string
		if _, err := fmt.Sscanf(q, "%s", &name); err != nil {
			t.Fatal(err)
		}
		body = q[len(name)+1:]
		a.refused(events.NotFound, name, body)
	}
	for _, q := range of(kept) { // the same queries find what is there
		var name string
		if _, err := fmt.Sscanf(q, "%s", &name); err != nil {
			t.Fatal(err)
		}
		if _, err := a.q.decodeAndAnswer(t.Context(), acme, name, []byte(q[len(name)+1:])); err != nil {
			t.Errorf("%s: %v", q, err)
		}
	}
}
