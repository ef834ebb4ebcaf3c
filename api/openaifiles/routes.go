package openaifiles

import (
	"cmp"
	"context"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/skein-threads/skein/api/edge"
	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
)

// Routes adds the routes under /v1/files.
func Routes(e *edge.Edge) {
	e.Handle("POST "+edge.FilesPath, upload)
	e.Handle("GET "+edge.FilesPath, list)
	e.Handle("GET "+edge.FilesPath+"/{id}", get)
	e.Handle("DELETE "+edge.FilesPath+"/{id}", remove)
	e.Handle("GET "+edge.FilesPath+"/{id}/content", content)
}

// Bounds of lists.
const (
	mostListed = 10_000 // of one answer, as at OpenAI
	pageSize   = 1000   // of threads
)

// page is a page of files.
type page struct {
	Object  string `json:"object"`
	Data    []file `json:"data"`
	FirstID string `json:"first_id"`
	LastID  string `json:"last_id"`
	HasMore bool   `json:"has_more"`
}

// list answers GET /v1/files.
func list(w http.ResponseWriter, r *http.Request, c *edge.Caller) error {
	q := r.URL.Query()
	limit := mostListed
	if text := q.Get("limit"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > mostListed {
			return events.Invalid("/limit", "limit is a number from 1 to %d, not %.32q", mostListed, text)
		}
		limit = n
	}
	order := cmp.Or(q.Get("order"), "desc")
	if order != "asc" && order != "desc" {
		return events.Invalid("/order", "order is asc or desc, not %.32q", order)
	}
	files, err := all(r.Context(), c.Client)
	if err != nil {
		return err
	}
	slices.SortFunc(files, func(a, b file) int { return cmp.Or(cmp.Compare(a.created, b.created), cmp.Compare(a.ID, b.ID)) })
	if order == "desc" {
		slices.Reverse(files)
	}
	if after := q.Get("after"); after != "" {
		at := slices.IndexFunc(files, func(f file) bool { return f.ID == after })
		if at < 0 {
			return events.Invalid("/after", "there is no file %.80q after which the list could go on", after)
		}
		files = files[at+1:]
	}
	if purpose := q.Get("purpose"); purpose != "" {
		files = slices.DeleteFunc(files, func(f file) bool { return f.Purpose != purpose })
	}
	p := page{Object: "list", Data: files[:min(limit, len(files))], HasMore: len(files) > limit}
	if len(p.Data) > 0 {
		p.FirstID, p.LastID = p.Data[0].ID, p.Data[len(p.Data)-1].ID
	}
	edge.WriteJSON(w, http.StatusOK, p)
	return nil
}

// all returns the files that a client may use.
func all(ctx context.Context, c *client.Client) ([]file, error) {
	files, now := []file{}, time.Now()
	for q := (events.ListThreads{KeyPrefix: keyPrefix, Archived: new(true), Limit: new(int64(pageSize))}); ; {
		threads, err := client.Read(ctx, c, q)
		if err != nil {
			return nil, err
		}
		for i := range threads.Threads {
			if f := fileOf(&threads.Threads[i], now); f != nil {
				files = append(files, *f)
			}
		}
		if q.Cursor = threads.NextCursor; q.Cursor == "" {
			return files, nil
		}
	}
}

// get answers GET /v1/files/{id}.
func get(w http.ResponseWriter, r *http.Request, c *edge.Caller) error {
	f, err := find(r.Context(), c.Client, r.PathValue("id"))
	if err != nil {
		return err
	}
	edge.WriteJSON(w, http.StatusOK, f)
	return nil
}

// remove answers DELETE /v1/files/{id}.
func remove(w http.ResponseWriter, r *http.Request, c *edge.Caller) error {
	f, err := find(r.Context(), c.Client, r.PathValue("id"))
	if err != nil {
		return err
	}
	if _, err := c.Client.Send(r.Context(), f.thread, events.DeleteThread{Purge: true}); err != nil {
		if events.IsNotFound(err) { // another request was faster
			err = events.Missing("file", f.ID)
		}
		return err
	}
	edge.WriteJSON(w, http.StatusOK, struct {
		ID      string `json:"id"`
		Object  string `json:"object"`
		Deleted bool   `json:"deleted"`
	}{f.ID, f.Object, true})
	return nil
}

// content answers GET /v1/files/{id}/content. Browsers store it, whatever it is.
func content(w http.ResponseWriter, r *http.Request, c *edge.Caller) error {
	f, err := find(r.Context(), c.Client, r.PathValue("id"))
	if err != nil {
		return err
	}
	record, err := f.record(r.Context(), c.Client)
	if err != nil {
		return err
	}
	edge.DescribeFile(w.Header(), record)
	w.Header().Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": f.Filename}))
	return edge.ServeFile(w, r, c.Client, record)
}
