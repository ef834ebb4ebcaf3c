package mcp

import (
	"bytes"
	"context"
	"io"
	"net/http"

	"github.com/skein-threads/skein/api/edge"
	"github.com/skein-threads/skein/console/page"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/build"
	"github.com/skein-threads/skein/threads/threadmcp"
)

// Path is where threads are served. The metadata of the resource (RFC 9728) are at the second path,
// and at the same one followed by the first.
const (
	Path         = "/mcp"
	metadataPath = "/.well-known/oauth-protected-resource"
)

// Options configures Routes.
type Options struct {
	Issuer string // whose tokens are taken; default none
}

// Routes adds the routes of MCP, which one server of the protocol serves.
func Routes(e *edge.Edge, o Options) error {
	s, err := threadmcp.New(threadmcp.Options{Version: build.This().Version})
	if err != nil {
		return err
	}
	threads := s.HTTP()
	serve := func(w http.ResponseWriter, r *http.Request, c *edge.Caller) error {
		body, err := edge.Body(r, edge.MaxBody)
		if err != nil {
			return err
		}
		if bytes.HasPrefix(bytes.TrimLeft(body, " \t\r\n"), []byte("[")) { // one request would be many, for every limit
			return events.Invalid("", "batches are not taken: send each request of JSON-RPC by itself")
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		base := e.BaseURL(r)
		o := threadmcp.CallerOptions{
			During: r.Context(),
			Page:   func(id string) string { return base + page.LinkThread(id, "") },
			Awaits: func() error { return c.Awaits(false) },
		}
		if key := r.Header.Get(edge.HeaderKey); key != "" {
			o.ID = c.Keyed(Path + "\x00" + key)
		}
		// The server ends the request with its caller. The transport would end it without an answer.
		ctx := threadmcp.WithCaller(context.WithoutCancel(r.Context()), threadmcp.NewCaller(c.Client, o))
		threads.ServeHTTP(w, r.WithContext(ctx))
		return nil
	}
	refuse := func(w http.ResponseWriter, r *http.Request, err error) {
		if events.HasCode(err, events.Unauthorized) {
			w.Header().Set("WWW-Authenticate", `Bearer resource_metadata="`+e.BaseURL(r)+metadataPath+Path+`"`)
		}
		edge.WriteError(w, err)
	}
	e.HandlePages("POST "+Path, serve, refuse)
	for _, at := range []string{metadataPath, metadataPath + Path} {
		e.HandlePublic("GET "+at, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			m := metadata{Resource: e.BaseURL(r) + Path, Name: "Skein threads", Bearer: []string{"header"}}
			if o.Issuer != "" {
				m.Issuers = []string{o.Issuer}
			}
			edge.WriteJSON(w, http.StatusOK, m)
		}))
	}
	return nil
}

// metadata are those of a protected resource.
type metadata struct {
	Resource string   `json:"resource"`
	Name     string   `json:"resource_name"`
	Issuers  []string `json:"authorization_servers,omitempty"`
	Bearer   []string `json:"bearer_methods_supported"`
}
