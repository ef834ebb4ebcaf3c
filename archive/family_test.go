package archive_test

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/skein-threads/skein/archive"
	"github.com/skein-threads/skein/audit"
	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/projections/documents"
	"github.com/skein-threads/skein/projections/rebuild"
)

// related is a thread with a fork, a handoff, a mention, a thread that works for it, a share, a
// session and two lives of its state, of which the first waits for a listener.
type related struct {
	id, fork, next, mentioned, works, token string
	at                                      int64 // its version when it had all of these

	long, heir string // a long thread, and a fork that has inherited its history
}

func (w *world) related() related {
	w.t.Helper()
	r := related{id: threadID(1), mentioned: threadID(2), works: threadID(3), long: threadID(4)}
	w.do("thread.create", r.mentioned, `{"title":"two"}`)
	w.do("thread.create", r.id, `{"title":"one"}`)
	for n := range 3 {
		w.say(r.id, fmt.Sprintf("itm_%d", n), fmt.Sprintf("hello %d", n))
	}
	r.fork = w.do("thread.fork", r.id, `{"messageIndex":1}`).Result.ChildID
	r.next = w.do("thread.handoff", r.id, `{"summary":"it was lost","comment":"the refund"}`).Result.ChildID
	w.do("thread.create", r.works, `{"mainThreadId":"`+r.id+`"}`)
	w.do("thread.mention", r.id, `{"mentionedId":"`+r.mentioned+`","comment":"see there"}`)
	r.token = w.do("thread.share", r.id, `{}`).Result.Token
	w.do("state.merge", r.id, `{"operations":[{"op":"set","key":"first","value":1}],"listeners":["shop"]}`)
	w.do("state.destroy", r.id, `{}`)
	merged := w.do("state.merge", r.id, `{"operations":[{"op":"set","key":"a","value":{"b":[1,2]}},{"op":"push","key":"l","value":"x","max":3}],"session":{"id":"sess_0a","completed":true}}`)
	r.at = merged.Version
	w.do("thread.create", r.long, `{"title":"long"}`)
	for n := range 12 {
		w.say(r.long, fmt.Sprintf("itm_long_%d", n), fmt.Sprintf("%d %s", n, strings.Repeat("x", 60<<10)))
	}
	r.heir = w.do("thread.fork", r.long, `{"messageIndex":11}`).Result.ChildID
	w.do("message.edit", r.heir, `{"itemId":"`+w.items(r.heir)[1].ID+`","content":[{"type":"input_text","text":"changed in the fork"}]}`)
	return r
}

// threads are all that are related.
func (r related) threads() []string {
	return []string{r.id, r.fork, r.next, r.mentioned, r.works, r.long, r.heir}
}

// items returns the items of a thread.
func (w *world) items(id string) (all []events.Item) {
	w.t.Helper()
	w.shown()
	for cursor := ""; ; {
		page, err := client.Read(w.ctx, w.c, events.ListItems{ThreadID: id, Cursor: cursor})
		if err != nil {
			w.t.Fatal(err)
		}
		all = append(all, page.Items...)
		if cursor = page.NextCursor; cursor == "" {
			return all
		}
	}
}

var sequence = regexp.MustCompile(`"(seq|version)":[0-9]+,?`)

// shows is what queries say of the relationships, shares and states of threads, and who reads a
// share.
func (w *world) shows(r related) map[string]string {
	w.t.Helper()
	w.shown()
	out := map[string]string{}
	then := &events.At{Version: &r.at}
	for name, q := range map[string]struct {
		query string
		data  any
	}{
		"relationships":            {"relationship.list", events.ListRelationships{ThreadID: r.id}},
		"relationships of fork":    {"relationship.list", events.ListRelationships{ThreadID: r.fork}},
		"relationships of mention": {"relationship.list", events.ListRelationships{ThreadID: r.mentioned}},
		"relationships of next":    {"relationship.list", events.ListRelationships{ThreadID: r.next}},
		"relationships of heir":    {"relationship.list", events.ListRelationships{ThreadID: r.heir}},
		"shares":                   {"share.list", events.ListShares{ThreadID: r.id}},
		"shared":                   {"thread.shared", events.ReadShared{Token: r.token}},
		"state":                    {"state.get", events.GetState{ThreadID: r.id}},
		"first life":               {"state.get", events.GetState{ThreadID: r.id, Life: 1}},
		"document":                 {"thread.document", events.GetThreadDocument{ThreadID: r.id}},
		"document of fork":         {"thread.document", events.GetThreadDocument{ThreadID: r.fork}},
		"document of next":         {"thread.document", events.GetThreadDocument{ThreadID: r.next}},
		"document of mention":      {"thread.document", events.GetThreadDocument{ThreadID: r.mentioned}},
		"document of works":        {"thread.document", events.GetThreadDocument{ThreadID: r.works}},
		"document of heir":         {"thread.document", events.GetThreadDocument{ThreadID: r.heir, FromMessage: to(int64(0))}},
		"rest of heir":             {"thread.document", events.GetThreadDocument{ThreadID: r.heir, FromMessage: to(int64(8))}},
		"items of heir":            {"item.list", events.ListItems{ThreadID: r.heir, Limit: to(int64(8))}},
		"sessions":                 {"event.list", events.ListEvents{ThreadID: r.id, Types: []string{"session.*"}}},
		"thread then":              {"thread.get", events.GetThread{ThreadID: r.id, At: then}},
		"items then":               {"item.list", events.ListItems{ThreadID: r.id, At: then}},
		"relationships then":       {"relationship.list", events.ListRelationships{ThreadID: r.id, At: then}},
		"shares then":              {"share.list", events.ListShares{ThreadID: r.id, At: then}},
		"state then":               {"state.get", events.GetState{ThreadID: r.id, At: then}},
		"items of heir then":       {"item.list", events.ListItems{ThreadID: r.heir, Limit: to(int64(8)), At: &events.At{Version: to(int64(3))}}},
	} {
		raw, err := w.c.Query(w.ctx, q.query, q.data)
		if err != nil {
			out[name] = "refused: " + string(events.AsError(err).Code)
			continue
		}
		out[name] = sequence.ReplaceAllString(string(raw), "")
	}
	return out
}

// logName is the name of the log in a list of events, of which each log has its own.
var logName = regexp.MustCompile(`,"log":"[^"]*"`)

func compareShown(t *testing.T, what string, got, want map[string]string) {
	t.Helper()
	for name := range want {
		if strings.HasPrefix(want[name], "refused") {
			t.Errorf("%s: %s", name, want[name])
		}
		if logName.ReplaceAllString(got[name], "") != logName.ReplaceAllString(want[name], "") {
			t.Errorf("%s, %s is\n%s\nand was\n%s", what, name, got[name], want[name])
		}
	}
}

func (w *world) lifeDocuments() (list []string) {
	w.t.Helper()
	for _, doc := range w.documents() {
		if strings.HasPrefix(doc, "lives ") {
			list = append(list, sequence.ReplaceAllString(doc, ""))
		}
	}
	return list
}

// A thread that is exported and imported has its relationships, shares and the lives of its state
// there: the token of a share opens it, the life that waits for a listener is released, and a
// merge goes on.
func TestRelatedThreads_ExportedAndImported(t *testing.T) {
	t.Parallel()
	w := start(t)
	r := w.related()
	before := w.shows(r)
	var file bytes.Buffer
	if _, err := audit.Export(w.ctx, w.log, &file, audit.ExportOptions{Tenant: "acme", Contents: true}); err != nil {
		t.Fatal(err)
	}
	other := start(t)
	if sum, err := audit.Import(other.ctx, other.log, other.validator(), bytes.NewReader(file.Bytes()), audit.ImportOptions{}); err != nil || sum.Imported != 7 || sum.Absent != 0 {
		t.Fatalf("%+v, %v", sum, err)
	}
	other.clean()
	compareShown(t, "imported", other.shows(r), before)
	if a, b := w.lifeDocuments(), other.lifeDocuments(); len(a) != 2 || fmt.Sprint(a) != fmt.Sprint(b) {
		t.Errorf("the lives are %v, and were %v", b, a)
	}
	other.do("state.release", r.id, `{"life":1,"listener":"shop"}`)
	other.do("state.merge", r.id, `{"operations":[{"op":"push","key":"l","value":"y","max":3}]}`)
	other.do("thread.truncate", r.id, `{"messageIndex":0}`)
	after := other.shows(r)
	if !strings.Contains(after["state"], `["x","y"]`) || len(other.lifeDocuments()) != 1 {
		t.Errorf("the state goes on as %s, with the lives %v", after["state"], other.lifeDocuments())
	}
	if strings.Contains(after["relationships"], r.fork) || strings.Contains(after["relationships of fork"], r.id) {
		t.Errorf("after a truncation there: %s and %s", after["relationships"], after["relationships of fork"])
	}
	other.clean()
}

// Read models that are rebuilt have the relationships, the shares and the lives that were there.
func TestRelatedThreads_Rebuilt(t *testing.T) {
	t.Parallel()
	w := start(t)
	r := w.related()
	before, lives := w.shows(r), w.lifeDocuments()
	if len(lives) != 2 {
		t.Fatalf("the lives are %v", lives)
	}
	if got, err := rebuild.Verify(w.ctx, w.log, rebuild.Scope{}); err != nil || got.Found != 0 {
		t.Errorf("verify: %+v, %v", got, err)
	}
	for _, p := range documents.NewModels().List() {
		stream, err := w.log.JetStream().Stream(w.ctx, "KV_"+p.Bucket)
		if err == nil {
			err = stream.Purge(w.ctx, jetstream.WithPurgeSubject("$KV."+p.Bucket+".acme.>"))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if got, err := rebuild.Repair(w.ctx, w.log); err != nil || got.Repaired == 0 {
		t.Errorf("rebuild: %+v, %v", got, err)
	}
	compareShown(t, "rebuilt", w.shows(r), before)
	if again := w.lifeDocuments(); fmt.Sprint(again) != fmt.Sprint(lives) {
		t.Errorf("the lives are %v, and were %v", again, lives)
	}
}

// A thread with a life of its state is not archived. An archived one keeps its relationships and
// shares, and is truncated, mentioned and forked as before.
func TestRelatedThreads_Archived(t *testing.T) {
	t.Parallel()
	w := start(t)
	r := w.related()
	for _, end := range []string{`{"op":"clear"}`, ""} {
		if end != "" {
			w.do("state.merge", r.id, `{"operations":[`+end+`]}`)
		} else {
			w.do("state.destroy", r.id, `{}`) // the first life waits for its listener
		}
		if got, err := w.archiver(nil).Thread(w.ctx, "acme", r.id, archive.Options{}); err != nil || got.Outcome != archive.Busy || got.Reason == "" {
			t.Errorf("with a life: %+v, %v", got, err)
		}
	}
	w.do("state.release", r.id, `{"life":1,"listener":"shop"}`)
	before := w.shows(r)
	delete(before, "first life") // it was cleared
	for _, id := range r.threads() {
		w.archive(id)
	}
	compareShown(t, "archived", w.shows(r), before)
	w.clean()
	w.do("thread.delete", r.long, `{"purge":true}`)
	w.erased(r.long)
	compareShown(t, "archived, with its parent erased", onlyOf("heir", w.shows(r)), onlyOf("heir", before))
	second := w.do("thread.fork", r.id, `{"messageIndex":0}`).Result.ChildID
	w.do("thread.truncate", r.id, `{"messageIndex":0}`)
	after := w.shows(r)
	if got := after["relationships"]; strings.Contains(got, r.next) || strings.Contains(got, r.fork) || strings.Contains(got, r.mentioned) || !strings.Contains(got, second) {
		t.Errorf("after a truncation to the first message its relationships are %s, and the second fork is %s", got, second)
	}
	if strings.Contains(after["relationships of fork"], r.id) || strings.Contains(after["relationships of mention"], r.id) {
		t.Errorf("half a relationship: %s, %s", after["relationships of fork"], after["relationships of mention"])
	}
	w.clean()
}

// An erased thread leaves no relationship, share or life of its own; those that it was related to
// name it still, and the audit finds nothing.
func TestRelatedThreads_Erased(t *testing.T) {
	t.Parallel()
	w := start(t)
	r := w.related()
	before := w.shows(r)
	w.do("thread.delete", r.id, `{"purge":true}`)
	after := w.shows(r)
	for _, name := range []string{"relationships", "shares", "shared", "state", "first life", "document"} {
		if after[name] != "refused: not_found" {
			t.Errorf("after the erasure, %s: %s", name, after[name])
		}
	}
	for _, name := range []string{"fork", "next", "mention", "heir"} { // what is related to it, and all of the others
		compareShown(t, "after the erasure", onlyOf("of "+name, after), onlyOf("of "+name, before))
	}
	for _, id := range []string{r.id, r.works} { // with it goes what works for it
		w.erased(id)
	}
	w.do("thread.delete", r.long, `{"purge":true}`)
	w.erased(r.long)
	compareShown(t, "after the erasure of the parent", onlyOf("heir", w.shows(r)), onlyOf("heir", before))
	if !slices.ContainsFunc(w.documents(), func(doc string) bool {
		return strings.HasPrefix(doc, "lives acme."+r.id) || strings.HasPrefix(doc, "shares acme."+r.fork) || strings.HasPrefix(doc, "items acme."+r.fork)
	}) {
		t.Error("no document has the name that is looked for:", w.documents())
	}
	w.until("documents of the erased thread are there", func() bool {
		for _, doc := range w.documents() {
			if at := strings.SplitN(doc, " ", 3)[1]; strings.HasPrefix(at, "acme."+r.id) || strings.HasPrefix(at, "acme._."+r.id) {
				return false
			}
		}
		return true
	})
	if lives := w.lifeDocuments(); len(lives) > 0 {
		t.Errorf("the lives %v are left", lives)
	}
	w.clean()
	if _, err := w.c.Query(w.ctx, "thread.shared", events.ReadShared{Token: r.token}); !errors.Is(err, &events.Error{Code: events.NotFound}) {
		t.Errorf("the token: %v", err)
	}
	w.do("thread.mention", r.mentioned, `{"mentionedId":"`+r.fork+`"}`)
	w.do("thread.delete", r.heir, `{"purge":true}`) // its pages go when they are old enough, see TestErase_PagesOfHistories
	w.clean()
}

// onlyOf returns the entries whose names contain a text.
func onlyOf(text string, shown map[string]string) map[string]string {
	out := maps.Clone(shown)
	maps.DeleteFunc(out, func(name, _ string) bool { return !strings.Contains(name, text) })
	return out
}

// erased waits until the log has the tombstone of a thread alone.
func (w *world) erased(id string) {
	w.t.Helper()
	w.until(id+" is not erased", func() bool {
		last, err := w.log.Last(w.ctx, "acme", id)
		return err == nil && last.Events[len(last.Events)-1].Type == events.LifecycleDeletedType && len(w.stored(id)) == 1
	})
}
