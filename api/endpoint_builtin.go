package api

import (
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/skein-threads/skein/api/edge"
	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
)

// builtIn returns the endpoints that every server has.
func builtIn() map[string]http.Handler {
	return map[string]http.Handler{
		"summary":  reading(summary),
		"messages": reading(messages),
		"export":   reading(export),
		"files":    reading(files),
	}
}

// reading returns an endpoint that is only read.
func reading(f endpointHandler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			edge.WriteJSON(w, http.StatusMethodNotAllowed, struct {
				Error edge.Problem `json:"error"`
			}{edge.Problem{
				Type: "invalid_request", Code: "method_not_allowed", Message: "this endpoint is read with GET",
			}})
			return
		}
		f.ServeHTTP(w, r)
	})
}

// summary answers with the number of a thread's messages.
func summary(w http.ResponseWriter, r *http.Request, state *client.ThreadState) error {
	limit := int64(10)
	list, err := state.GetMessages(r.Context(), events.GetMessagesOptions{Limit: &limit})
	if err != nil {
		return err
	}
	edge.WriteJSON(w, http.StatusOK, struct {
		ThreadID     string `json:"threadId"`
		MessageCount int64  `json:"messageCount"`
	}{state.ThreadID(), list.Total})
	return nil
}

// defaultMessages is how many messages are returned without a limit.
const defaultMessages = 50

// messages answers with a page of a thread's messages, newest first.
func messages(w http.ResponseWriter, r *http.Request, state *client.ThreadState) error {
	query := r.URL.Query()
	limit, err := number(query, "limit", defaultMessages)
	if err != nil {
		return err
	}
	offset, err := number(query, "offset", 0)
	if err != nil {
		return err
	}
	list, err := state.GetMessages(r.Context(), events.GetMessagesOptions{Limit: &limit, Offset: &offset, Order: "desc"})
	if err != nil {
		return err
	}
	edge.WriteJSON(w, http.StatusOK, list)
	return nil
}

// number returns a parameter of the query as a number, or a default if it is absent or empty.
func number(query url.Values, name string, otherwise int64) (int64, error) {
	text := query.Get(name)
	if text == "" {
		return otherwise, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		return 0, events.Invalid("/"+name, "%s is a whole number from 0, not %.32q", name, text)
	}
	return n, nil
}

// files answers with the entries of a thread's root directory.
func files(w http.ResponseWriter, r *http.Request, state *client.ThreadState) error {
	list, err := state.ReaddirFile(r.Context(), "/")
	if err != nil {
		return err
	}
	entries := list.Entries
	if entries == nil {
		entries = []events.ThreadFile{}
	}
	edge.WriteJSON(w, http.StatusOK, struct {
		Files []events.ThreadFile `json:"files"`
	}{entries})
	return nil
}

// exported is the thread in an export.
type exported struct {
	ID        string  `json:"id"`
	Agent     *string `json:"agent"` // null if it has none
	User      *string `json:"user"`
	CreatedAt int64   `json:"createdAt"` // in microseconds since the epoch
}

// exportPage is how many messages an export reads at once.
const exportPage = 500

// export answers with a thread and all its messages, oldest first. It holds one page of them
// at a time.
func export(w http.ResponseWriter, r *http.Request, state *client.ThreadState) error {
	thread := exported{ID: state.ThreadID(), User: state.UserID(), CreatedAt: state.CreatedAt()}
	if agent := state.AgentID(); agent != "" {
		thread.Agent = &agent
	}
	head, err := json.Marshal(struct {
		ExportedAt string   `json:"exportedAt"`
		Thread     exported `json:"thread"`
	}{time.Now().UTC().Format("2006-01-02T15:04:05.000Z"), thread})
	if err != nil {
		return err
	}
	limit := int64(exportPage)
	q := events.ListMessages{ThreadID: thread.ID, GetMessagesOptions: events.GetMessagesOptions{Limit: &limit, Order: "asc"}}
	now, err := requestOf(r.Context()).caller.Client.UpToDate(r.Context())
	if err != nil {
		return err
	}
	for first := true; ; first = false {
		page, err := client.Read(r.Context(), now, q)
		if err != nil {
			return err
		}
		if first {
			w.Header().Set("Content-Type", "application/json")
			if _, err := w.Write(append(head[:len(head)-1], `,"messages":[`...)); err != nil {
				return err
			}
		}
		if err := writeList(w, page.Messages, first); err != nil {
			return err
		}
		if page.NextCursor == "" {
			break
		}
		q.Cursor = page.NextCursor
	}
	_, err = io.WriteString(w, "]}\n")
	return err
}

// writeList writes messages as elements of a JSON array that may have some already.
func writeList(w io.Writer, list []events.ThreadMessage, first bool) error {
	for i := range list {
		raw, err := json.Marshal(&list[i])
		if err != nil {
			return err
		}
		if !first || i > 0 {
			raw = append([]byte{','}, raw...)
		}
		if _, err := w.Write(jsontext.Value(raw)); err != nil {
			return err
		}
	}
	return nil
}
