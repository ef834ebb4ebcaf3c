package console

import (
	"cmp"
	"html/template"
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/console/markdown"
	"github.com/skein-threads/skein/console/page"
	"github.com/skein-threads/skein/events"
)

// state is the tab with the documents of a thread.
func state() page.Page {
	return page.Page{
		Path: "/threads/{thread}/state", Name: "State", In: page.Tabs, Template: "state",
		JSON: "/api/threads/{thread}/contexts{at}", CLI: "skein thread get {thread}{at}",
		Panels: []page.Panel{{
			ID: "state-documents", Load: loadState,
			On: []string{"context.*", "state.*", "profile.*", "thread.*", "item.*", "agent.*", "skill.*", "queue.*"},
		}},
	}
}

// stateData is the data of the tab.
type stateData struct {
	Documents []stateDocument
	From      int64 // the version to compare with; 0: none
}

// stateDocument is a document, or the differences in it.
type stateDocument struct {
	Name, Note string
	HTML       template.HTML
}

// namedDocument is a document and its name.
type namedDocument struct {
	name, note string
	json       []byte
}

func loadState(a *page.Ask) (any, error) {
	now, err := documentsAt(a, a.At)
	if err != nil {
		return nil, err
	}
	d := &stateData{}
	from, err := strconv.ParseInt(cmp.Or(a.Query("from"), "0"), 10, 64)
	if err != nil || from < 0 {
		return nil, events.Invalid("/from", "from is %.40q; it takes a version of the thread", a.Query("from"))
	}
	if d.From = min(from, a.Shown()); d.From == 0 {
		for _, doc := range now {
			d.Documents = append(d.Documents, stateDocument{doc.name, doc.note, whole(doc.json)})
		}
		return d, nil
	}
	was, err := documentsAt(a, &events.At{Version: &d.From})
	if err != nil {
		return nil, err
	}
	d.Documents = compared(was, now)
	return d, nil
}

// compared pairs documents by name. A document that exists at one of the versions only is compared
// with nothing.
func compared(was, now []namedDocument) (out []stateDocument) {
	before := map[string][]byte{}
	for _, doc := range was {
		before[doc.name] = doc.json
	}
	for _, doc := range now {
		out = append(out, stateDocument{doc.name, doc.note, page.JSONDiff(before[doc.name], doc.json)})
		delete(before, doc.name)
	}
	for _, doc := range was {
		if raw, gone := before[doc.name]; gone {
			out = append(out, stateDocument{doc.name, "no longer there", page.JSONDiff(raw, nil)})
		}
	}
	return out
}

// whole returns a document as it is.
func whole(raw []byte) template.HTML {
	return `<pre class="code" tabindex="0">` + template.HTML(template.HTMLEscapeString(markdown.Visible(shorten(page.Indented(raw))))) + `</pre>`
}

// maxDocument is how many bytes of a document the page shows.
const maxDocument = 64 << 10

func shorten(text string) string {
	if len(text) <= maxDocument {
		return text
	}
	return text[:maxDocument] + "\n… the rest is in the JSON"
}

// documentsAt returns the documents of the thread at a version or time.
func documentsAt(a *page.Ask, at *events.At) ([]namedDocument, error) {
	t, err := client.Read(a.Context(), a.Client, events.GetThread{ThreadID: a.Thread.ID, At: at})
	if err != nil {
		return nil, err
	}
	contexts, err := a.Client.ListContexts(a.Context(), events.ListContexts{ThreadID: a.Thread.ID, At: at})
	if err != nil {
		return nil, err
	}
	raw, err := json.Marshal(t)
	if err != nil {
		return nil, err
	}
	out := []namedDocument{{"Thread", "its profile, its run and what it counts", raw}}
	for _, c := range contexts.Contexts {
		name, note := "Context "+page.Short(c.ID), string(c.Status)
		if c.Key != nil {
			name = "Context " + *c.Key
		}
		if c.ID == t.ContextID {
			note += ", the default one"
		}
		content := c.Content
		if jsontext.Value(content).Kind() == 'n' {
			note += ", without content"
		}
		out = append(out, namedDocument{name, note, content})
	}
	return out, nil
}
