package api

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

// mcpPath is where threads are served. The metadata of the resource (RFC 9728) are at the second path,
// and at the same one followed by the first.
const (
	mcpPath         = "/mcp"
	mcpMetadataPath = "/.well-known/oauth-protected-resource"
)

// mcpRoutes adds the routes of the Model Context Protocol, which one server of it serves: at /mcp, what
// `skein mcp` serves to one user, with the keys and tokens of the edge.
//
//   - A request acts with its credential alone, as every other of the edge: keys, rights, quotas
//     and idempotency are those of commands and queries.
//   - A request without a credential is refused with the address of the protocol's metadata,
//     which name the issuer of accepted tokens; none if it is empty.
//   - It keeps no sessions: each request is answered by itself, and the server sends nothing else.
func mcpRoutes(e *edge.Edge, issuer string) error {
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
			o.ID = c.Keyed(mcpPath + "\x00" + key)
		}
		// The server ends the request with its caller. The transport would end it without an answer.
		ctx := threadmcp.WithCaller(context.WithoutCancel(r.Context()), threadmcp.NewCaller(c.Client, o))
		threads.ServeHTTP(w, r.WithContext(ctx))
		return nil
	}
	refuse := func(w http.ResponseWriter, r *http.Request, err error) {
		if events.HasCode(err, events.Unauthorized) {
			w.Header().Set("WWW-Authenticate", `Bearer resource_metadata="`+e.BaseURL(r)+mcpMetadataPath+mcpPath+`"`)
		}
		edge.WriteError(w, err)
	}
	e.HandlePages("POST "+mcpPath, serve, refuse)
	for _, at := range []string{mcpMetadataPath, mcpMetadataPath + mcpPath} {
		e.HandlePublic("GET "+at, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			m := mcpMetadata{Resource: e.BaseURL(r) + mcpPath, Name: "Skein threads", Bearer: []string{"header"}}
			if issuer != "" {
				m.Issuers = []string{issuer}
			}
			edge.WriteJSON(w, http.StatusOK, m)
		}))
	}
	return nil
}

// mcpMetadata is the metadata of a protected resource.
type mcpMetadata struct {
	Resource string   `json:"resource"`
	Name     string   `json:"resource_name"`
	Issuers  []string `json:"authorization_servers,omitempty"`
	Bearer   []string `json:"bearer_methods_supported"`
}
