package rest_test

import (
	"encoding/json"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/skein-threads/skein/api/rest"
	"github.com/skein-threads/skein/events"
)

// operation is what the tests read of an operation.
type operation struct {
	OperationID string
	Summary     string
	Parameters  []struct {
		Name, In string
		Required bool
		Schema   map[string]any
	}
	Responses map[string]any
}

type openAPI struct {
	OpenAPI    string
	Paths      map[string]map[string]operation
	Components struct{ Schemas map[string]any }
}

// refusal sends a request, and returns the answer: its body only if it is a refusal, as others
// may be streams.
func (s *site) refusal(method, path, body string, headers ...string) answer {
	s.t.Helper()
	r := s.open(method, path, body, headers...)
	defer r.Body.Close()
	a := answer{t: s.t, what: method + " " + path, status: r.StatusCode, header: r.Header}
	if r.StatusCode >= http.StatusBadRequest {
		a.body, _ = io.ReadAll(r.Body)
	}
	return a
}

// querySchema returns the name of the schema of a query's data.
func querySchema(name string) string {
	out := ""
	for word := range strings.FieldsFuncSeq(name, func(r rune) bool { return r == '.' || r == '_' || r == '-' }) {
		out += strings.ToUpper(word[:1]) + word[1:]
	}
	return out + "Query"
}

// Generators of clients read the schemas: no two names that they would write alike, no schema that
// is a boolean, and every event has a type of its own.
func TestOpenAPI_SuitsGenerators(t *testing.T) {
	t.Parallel()
	raw, err := rest.OpenAPI()
	if err != nil {
		t.Fatal(err)
	}
	var doc openAPI
	if err := json.Unmarshal(raw, &doc); err != nil {
		t.Fatal(err)
	}
	names := map[string]string{}
	for name := range doc.Components.Schemas {
		plain := strings.ToLower(name)
		if other := names[plain]; other != "" || regexp.MustCompile(`[^A-Za-z0-9]`).MatchString(name) {
			t.Errorf("schema %s: like %q, or with signs", name, other)
		}
		names[plain] = name
	}
	var walk func(at string, is any)
	walk = func(at string, is any) {
		switch is := is.(type) {
		case map[string]any:
			for name, value := range is {
				if _, boolean := value.(bool); boolean && (strings.HasSuffix(at, "/properties") || name == "items") {
					t.Errorf("%s/%s is a boolean schema", at, name)
				}
				walk(at+"/"+name, value)
			}
		case []any:
			for _, value := range is {
				walk(at, value)
			}
		}
	}
	walk("", doc.Components.Schemas)
	list := doc.Components.Schemas["EventList"].(map[string]any)["properties"].(map[string]any)["events"].(map[string]any)
	if of := list["items"].(map[string]any)["$ref"]; of != "#/components/schemas/Event" {
		t.Errorf("the events of a list are %v", of)
	}
	if n := len(doc.Components.Schemas["Event"].(map[string]any)["oneOf"].([]any)); n != len(events.Catalog()) {
		t.Errorf("an event is one of %d types, not %d", n, len(events.Catalog()))
	}
}

// Every route of the router is described, with all of its parameters, and nothing else is.
func TestOpenAPI_IsComplete(t *testing.T) {
	t.Parallel()
	s := start(t)
	raw := s.ask("GET", "/api/openapi.json", "").want(http.StatusOK).has("Content-Type", "application/json")
	var doc openAPI
	raw.to(&doc)
	if doc.OpenAPI != "3.1.0" {
		t.Errorf("openapi: %q", doc.OpenAPI)
	}
	for _, c := range events.Commands() {
		if doc.Paths["/api/commands/"+c.Name]["post"].Summary != c.Doc {
			t.Errorf("the command %s is not described", c.Name)
		}
	}
	for _, q := range events.Queries() {
		if doc.Paths["/api/queries/"+q.Name]["post"].Summary != q.Doc {
			t.Errorf("the query %s is not described", q.Name)
		}
	}
	described := 0
	for _, r := range rest.Rows() {
		path := strings.ReplaceAll(r.Path, "...}", "}")
		if strings.HasSuffix(path, "s/{name}") && strings.Count(path, "/") == 3 && r.Method == "POST" {
			continue // all of them stand above
		}
		described++
		if doc.Paths[path][strings.ToLower(r.Method)].OperationID == "" {
			t.Errorf("%s %s is not described", r.Method, r.Path)
		}
	}
	var seen []string
	value := regexp.MustCompile(`\{[a-zA-Z]+\}`)
	for path, methods := range doc.Paths {
		for method, o := range methods {
			if !strings.HasPrefix(path, "/api/") { // of another protocol
				described++
			}
			if seen = append(seen, o.OperationID); o.Summary == "" || len(o.Responses) < 2 {
				t.Errorf("%s %s: %+v", method, path, o)
			}
			a := s.refusal(strings.ToUpper(method), value.ReplaceAllString(path, "x"), "")
			if a.status == http.StatusMethodNotAllowed || strings.Contains(string(a.body), "there is no route") {
				t.Errorf("%s %s: %d %s", method, path, a.status, a.body)
			}
			var values []string
			for _, p := range o.Parameters {
				if p.In == "path" {
					values = append(values, "{"+p.Name+"}")
				}
			}
			if want := value.FindAllString(path, -1); !slices.Equal(values, want) {
				t.Errorf("%s %s has the values %v", method, path, values)
			}
		}
	}
	slices.Sort(seen)
	if doc.Paths["/api/tickets"]["post"].OperationID == "" {
		t.Error("POST /api/tickets, a route of the edge, is not described")
	}
	if len(slices.Compact(seen)) != len(seen) || len(seen) != 1+described+len(events.Commands())+len(events.Queries()) {
		t.Errorf("%d operations, some twice or too many: %v", len(seen), seen)
	}
	for _, ref := range regexp.MustCompile(`"\$ref":"([^"]+)"`).FindAllStringSubmatch(string(raw.body), -1) {
		name, ok := strings.CutPrefix(ref[1], "#/components/schemas/")
		if doc.Components.Schemas[name] == nil || !ok {
			t.Errorf("%s is not there", ref[1])
		}
	}
}

// Each parameter that is described is taken, and what is taken is described.
func TestOpenAPI_Parameters(t *testing.T) {
	t.Parallel()
	s := start(t)
	var doc openAPI
	s.ask("GET", "/api/openapi.json", "").want(http.StatusOK).to(&doc)
	thread := s.thread()
	for path, methods := range doc.Paths {
		at := strings.NewReplacer("{thread}", id(thread), "{kind}", "agent", "{name}", "x", "{path}", "x", "{call}", "x").Replace(path)
		at = regexp.MustCompile(`\{[a-z]+\}`).ReplaceAllString(at, "itm_0195e5d03c1a7b2e9f441d2e3f405164")
		for method, o := range methods {
			if method != "get" || strings.HasSuffix(path, "/socket") || !strings.HasPrefix(path, "/api/") {
				continue
			}
			for _, p := range o.Parameters {
				if p.In == "query" {
					a := s.refusal("GET", at+"?"+p.Name+"=%01", "")
					if strings.Contains(string(a.body), "no such parameter") || strings.Contains(string(a.body), "no such field") {
						t.Errorf("%s does not take %s: %s", path, p.Name, a.body)
					}
				}
			}
			s.ask("GET", at+"?nothing=1", "").problem(http.StatusBadRequest, "invalid_request", "nothing")
		}
	}
}

// Every field of a query can be a parameter.
func TestOpenAPI_EveryFieldIsAParameter(t *testing.T) {
	t.Parallel()
	var doc openAPI
	raw, err := rest.OpenAPI()
	if err == nil {
		err = json.Unmarshal(raw, &doc)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rest.Rows() {
		if r.Query == "" || r.Method != "GET" {
			continue
		}
		schema, _ := doc.Components.Schemas[querySchema(r.Query)].(map[string]any)
		properties, _ := schema["properties"].(map[string]any)
		if len(properties) == 0 {
			t.Errorf("%s has no fields", r.Query)
		}
		path := strings.ReplaceAll(r.Path, "...}", "}")
		taken := strings.Count(path, "{")
		if path == "/api/agents" {
			taken++ // the route sets the kind
		}
		for _, p := range doc.Paths[path]["get"].Parameters {
			if p.In == "query" {
				taken++
			}
		}
		if taken != len(properties) {
			t.Errorf("%s takes %d of the %d fields of %s", path, taken, len(properties), r.Query)
		}
	}
}
