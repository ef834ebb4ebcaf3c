package page

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/skein-threads/skein/api/edge"
	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
)

// Root is the path of the console.
const Root = "/console"

// maxForm is the size of the largest form without files, in bytes.
const maxForm = edge.MaxBody

// Ask is one request for a page, a panel or an action. Its Client acts as the principal who
// is signed in.
type Ask struct {
	*edge.Caller
	Request *http.Request

	// Thread is the thread of the path, as it was at At; nil if the path has none.
	Thread *events.Thread
	At     *events.At // the version or time in the address (?at=); nil: now
	Last   int64      // the thread's version now
}

// newAsk returns the ask of a request. It reads the thread if the path has one.
func newAsk(r *http.Request, c *edge.Caller) (*Ask, error) {
	a := &Ask{Caller: c, Request: r}
	if r.PathValue("thread") == "" {
		return a, nil
	}
	var err error
	if a.At, err = parseAt(r.URL.Query().Get("at")); err != nil {
		return nil, err
	}
	if a.Thread, err = client.Read(r.Context(), c.Client, events.GetThread{ThreadID: r.PathValue("thread")}); err != nil {
		if code := events.AsError(err).Code; code == events.NotFound || code == events.InvalidRequest {
			return nil, &noThreadError{r.PathValue("thread"), err}
		}
		return nil, err
	}
	a.Last = a.Thread.Version
	if a.At != nil && a.At.Version != nil && *a.At.Version >= a.Last {
		a.At = nil
	}
	if a.At != nil {
		a.Thread, err = client.Read(r.Context(), c.Client, events.GetThread{ThreadID: a.Thread.ID, At: a.At})
	}
	return a, err
}

// noThreadError reports that there is no thread with the id or key of an address.
type noThreadError struct {
	ref string
	err error
}

func (e *noThreadError) Error() string { return "thread not found: " + e.ref }

func (e *noThreadError) Unwrap() error { return e.err }

// parseAt parses the parameter at of an address.
func parseAt(text string) (*events.At, error) {
	if text == "" {
		return nil, nil
	}
	if version, err := strconv.ParseInt(text, 10, 64); err == nil && version > 0 {
		return &events.At{Version: &version}, nil
	}
	when, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return nil, events.Invalid("/at", "at is %.40q; it takes a version of the thread, or a time such as 2026-02-20T12:00:00Z", text)
	}
	return &events.At{Time: when.UTC().Format("2006-01-02T15:04:05.000000Z")}, nil
}

// Context ends when the reader has gone, or the credential ends.
func (a *Ask) Context() context.Context { return a.Request.Context() }

// Path returns a value of the path.
func (a *Ask) Path(name string) string { return a.Request.PathValue(name) }

// Query returns a parameter of the address.
func (a *Ask) Query(name string) string { return a.Request.URL.Query().Get(name) }

// Form returns a field of the form that was posted.
func (a *Ask) Form(name string) string { return a.Request.PostFormValue(name) }

// Live reports whether the page shows the present, and not an earlier version.
func (a *Ask) Live() bool { return a.At == nil }

// Shown returns the version of the thread that the page shows.
func (a *Ask) Shown() int64 {
	if a.Thread == nil {
		return 0
	}
	return a.Thread.Version
}

// ThreadLink returns the address of a page of the thread, such as /files, at the version that the
// page shows. Empty means the conversation.
func (a *Ask) ThreadLink(tab string) string {
	if a.Thread == nil {
		return Root + "/"
	}
	return LinkThread(a.Thread.ID, tab) + a.atQuery()
}

// LinkThread returns the address of a page of a thread, such as /files; empty means the
// conversation.
func LinkThread(id, tab string) string { return Root + "/threads/" + url.PathEscape(id) + tab }

func (a *Ask) atQuery() string {
	if a.At == nil {
		return ""
	}
	if a.At.Version != nil {
		return "?at=" + strconv.FormatInt(*a.At.Version, 10)
	}
	return "?at=" + url.QueryEscape(a.At.Time)
}

// With returns the address of this page with parameters changed: names and values in turn.
// An empty value removes its parameter.
func (a *Ask) With(pairs ...string) string {
	q := a.Request.URL.Query()
	for i := 0; i+1 < len(pairs); i += 2 {
		if q.Del(pairs[i]); pairs[i+1] != "" {
			q.Set(pairs[i], pairs[i+1])
		}
	}
	return join(a.Request.URL.EscapedPath(), q)
}

// Here returns the address of this page.
func (a *Ask) Here() string { return join(a.Request.URL.EscapedPath(), a.Request.URL.Query()) }

func join(path string, q url.Values) string {
	if len(q) == 0 {
		return path
	}
	return path + "?" + q.Encode()
}

// Back returns the address of this origin's page that a form names as the one to return to,
// or else other.
func (a *Ask) Back(other string) string { return cmp.Or(ownAddress(a.Form("back")), other) }

// at returns the ask with reads that show a commit.
func (a *Ask) at(seq int64) *Ask {
	next := *a
	next.Caller = &edge.Caller{Principal: a.Principal, Client: a.Client.WithMinSeq(seq)}
	return &next
}

// refreshed returns the ask with its thread read again.
func (a *Ask) refreshed(e client.Event) (*Ask, error) {
	next := a.at(e.Seq)
	if a.Thread == nil {
		return next, nil
	}
	var err error
	if next.Thread, err = client.Read(a.Context(), next.Client, events.GetThread{ThreadID: a.Thread.ID}); err != nil {
		return nil, err
	}
	next.Last = next.Thread.Version
	return next, nil
}
