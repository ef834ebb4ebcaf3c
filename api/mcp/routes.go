package mcp

import (
	"net/http"

	"github.com/skein-threads/skein/api/edge"
	"github.com/skein-threads/skein/console/page"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/build"
	"github.com/skein-threads/skein/internal/threadmcp"
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

// Routes adds the routes of MCP.
func Routes(e *edge.Edge, o Options) {
	schemas := threadmcp.NewSchemas()
	serve := func(w http.ResponseWriter, r *http.Request, c *edge.Caller) error {
		base := e.BaseURL(r)
		s, err := threadmcp.New(c.Client, threadmcp.Options{
			Version: build.This().Version, Schemas: schemas, Caller: r.Context(),
			Page: func(id string) string { return base + page.LinkThread(id, "") },
		})
		if err != nil {
			return err
		}
		s.HTTP().ServeHTTP(w, r)
		return nil
	}
	refuse := func(w http.ResponseWriter, r *http.Request, err error) {
		if events.HasCode(err, events.Unauthorized) {
			w.Header().Set("WWW-Authenticate", `Bearer resource_metadata="`+e.BaseURL(r)+metadataPath+Path+`"`)
		}
		edge.WriteError(w, err)
	}
	for _, method := range []string{"POST ", "GET ", "DELETE "} {
		e.HandlePages(method+Path, serve, refuse)
	}
	for _, at := range []string{metadataPath, metadataPath + Path} {
		e.HandlePublic("GET "+at, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			m := metadata{Resource: e.BaseURL(r) + Path, Name: "Skein threads", Bearer: []string{"header"}}
			if o.Issuer != "" {
				m.Issuers = []string{o.Issuer}
			}
			edge.WriteJSON(w, http.StatusOK, m)
		}))
	}
}

// metadata are those of a protected resource.
type metadata struct {
	Resource string   `json:"resource"`
	Name     string   `json:"resource_name"`
	Issuers  []string `json:"authorization_servers,omitempty"`
	Bearer   []string `json:"bearer_methods_supported"`
}
