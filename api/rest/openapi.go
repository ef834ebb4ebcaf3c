package rest

import (
	"net/http"
	"slices"
	"strings"
	"unicode"

	"github.com/go-json-experiment/json"

	"github.com/skein-threads/skein/api/edge"
	"github.com/skein-threads/skein/api/stream"
	"github.com/skein-threads/skein/events"
)

// openAPI serves the description of all routes.
func (s *service) openAPI(w http.ResponseWriter, req *http.Request, _ *edge.Caller) error {
	if _, err := decodeParameters(req, nil, nil); err != nil {
		return err
	}
	raw, err := s.described()
	if err != nil {
		return err
	}
	writeRaw(w, raw)
	return nil
}

// node is a part of the description.
type node = map[string]any

// OpenAPI returns the description of all routes, an OpenAPI 3.1 document in JSON.
func OpenAPI() ([]byte, error) {
	d := &description{schemas: node{"Problem": problemSchema(), "RunBegun": begunSchema()}}
	if err := d.addSchemas(); err != nil {
		return nil, err
	}
	paths := node{}
	for _, r := range Rows() {
		for _, one := range expand(r) {
			path := strings.ReplaceAll(one.Path, "...}", "}")
			if paths[path] == nil {
				paths[path] = node{}
			}
			paths[path].(node)[strings.ToLower(r.Method)] = d.operation(one)
		}
	}
	for _, r := range protocolRoutes() {
		path, method, operation := r.describe()
		if paths[path] == nil {
			paths[path] = node{}
		}
		paths[path].(node)[method] = operation
	}
	paths["/api/tickets"] = node{"post": ticketOperation()}
	return json.Marshal(node{
		"openapi":           "3.1.0",
		"jsonSchemaDialect": "https://json-schema.org/draft/2020-12/schema",
		"info": node{
			"title": "Skein", "version": "1.0.0", "license": node{"name": "Apache-2.0", "identifier": "Apache-2.0"},
			"description": "Threads of agents over HTTP. Every command and query of the contract, resources for people, and the routes of other protocols, which their own specifications describe.",
		},
		"servers":  []node{{"url": "/"}},
		"security": []node{{"key": []string{}}, {"ticket": []string{}}, {"desk": []string{}}},
		"paths":    paths,
		"components": node{
			"schemas": d.schemas,
			"securitySchemes": node{
				"key":    node{"type": "http", "scheme": "bearer", "description": "An API key, skein_ID_SECRET, or a token of the identity provider."},
				"ticket": node{"type": "apiKey", "in": "query", "name": "ticket", "description": "A ticket, for one GET."},
				"desk":   node{"type": "apiKey", "in": "header", "name": edge.HeaderTenant, "description": "The tenant, where the server authenticates nobody and was started without --tenant."},
			},
		},
	}, json.Deterministic(true))
}

// expand returns the rows that a row stands for: one each for all commands and queries.
func expand(r Row) []Row {
	switch r.Path {
	case "/api/commands/{name}":
		var rows []Row
		for _, c := range events.Commands() {
			rows = append(rows, Row{Method: r.Method, Path: "/api/commands/" + c.Name, Command: c.Name, Doc: c.Doc})
		}
		return rows
	case "/api/queries/{name}":
		var rows []Row
		for _, q := range events.Queries() {
			rows = append(rows, Row{Method: r.Method, Path: "/api/queries/" + q.Name, Query: q.Name, Doc: q.Doc})
		}
		return rows
	}
	return []Row{r}
}

// operation describes a row.
func (d *description) operation(r Row) node {
	o := node{
		"operationId": operationID(r), "summary": r.summary(), "tags": []string{tag(r)},
		"responses": d.responses(r),
	}
	if p := d.parameters(r); len(p) > 0 {
		o["parameters"] = p
	}
	if body := d.body(r); body != nil {
		o["requestBody"] = body
	}
	return o
}

// operationID names an operation by its method and path.
func operationID(r Row) string {
	id := strings.ToLower(r.Method)
	for _, word := range strings.FieldsFunc(strings.TrimPrefix(r.Path, "/api"), func(c rune) bool { return !unicode.IsLetter(c) }) {
		id += strings.ToUpper(word[:1]) + word[1:]
	}
	return id
}

func tag(r Row) string {
	return strings.Split(strings.TrimSuffix(strings.TrimPrefix(r.Path, "/api/"), ".json"), "/")[0]
}

// summary is the row's own summary, or the summary of its command or query.
func (r Row) summary() string {
	if r.Doc != "" {
		return r.Doc
	}
	if c, ok := events.LookupCommand(r.Command); ok {
		return c.Doc
	}
	q, _ := events.LookupQuery(r.Query)
	return q.Doc
}

func (d *description) parameters(r Row) []node {
	var list []node
	own := map[string]bool{"threadId": r.hasThread()}
	for part := range strings.SplitSeq(r.Path, "/") {
		if name, ok := strings.CutPrefix(part, "{"); ok {
			name = strings.TrimSuffix(strings.TrimSuffix(name, "}"), "...")
			own[r.fill[name]] = true
			list = append(list, node{"name": name, "in": "path", "required": true, "schema": node{"type": "string"}})
		}
	}
	for field := range r.fixed {
		own[field] = true
	}
	fields, of := r.shows.parameters, node{}
	switch command, ok := events.LookupCommand(r.Command); {
	case raw(r) || r.shows.body != "":
	case r.Query != "":
		q, _ := events.LookupQuery(r.Query)
		fields, of = fieldsOf(q.New()), d.properties(querySchema(r.Query))
	case ok && r.Method == http.MethodDelete:
		fields, of = fieldsOf(command.New()), d.properties(commandSchema(r.Command))
	}
	for _, f := range fields {
		if !own[f.name] {
			list = append(list, parameter(f, of))
		}
	}
	return append(list, headers(r)...)
}

// raw reports whether a row is a command or query as it is over NATS.
func raw(r Row) bool {
	return strings.HasPrefix(r.Path, "/api/commands/") || strings.HasPrefix(r.Path, "/api/queries/")
}

// headers describes the headers that a route takes.
func headers(r Row) []node {
	header := func(name, doc string) node {
		return node{"name": name, "in": "header", "description": doc, "schema": node{"type": "string"}}
	}
	switch {
	case r.Command != "" || r.shows.body == fileBody:
		match := `"VERSION": the version that the thread must have; otherwise 412.`
		if strings.Contains(r.Path, "/files/") {
			match = "The ETag of the content that the path must hold; otherwise 412."
		}
		return []node{header(edge.HeaderKey, "The commandId: makes a repeat safe."), header("If-Match", match)}
	case r.shows.answer == streamAnswer:
		return []node{header(stream.HeaderLast, "The id of the last event that was seen.")}
	case r.Query != "":
		return []node{header(headerMinSeq, "minSeq: the sequence in the log that the answer must show.")}
	}
	return nil
}

// properties returns the properties of a schema.
func (d *description) properties(name string) node {
	one, _ := d.schemas[name].(node)
	properties, _ := one["properties"].(node)
	return properties
}

// parameter describes a field as a parameter.
func parameter(f field, of node) node {
	p := node{"name": f.name, "in": "query"}
	is, _ := of[f.name].(node)
	if doc, ok := is["description"]; ok {
		p["description"] = doc
	}
	if f.required {
		p["required"] = true
	}
	switch f.kind {
	case wholeKind:
		p["schema"] = node{"type": "integer"}
	case flagKind:
		p["schema"] = node{"type": "boolean"}
	case listKind:
		p["schema"], p["style"], p["explode"] = node{"type": "array", "items": node{"type": "string"}}, "form", false
	default:
		text := node{"type": "string"}
		if values, ok := is["enum"].([]any); ok {
			text["enum"] = slices.DeleteFunc(slices.Clone(values), func(v any) bool { return v == nil || v == "" })
		}
		p["schema"] = text
	}
	return p
}

func ref(name string) node { return node{"$ref": "#/components/schemas/" + name} }

func mediaType(kind string, schema any) node { return node{kind: node{"schema": schema}} }

// body describes what a row takes.
func (d *description) body(r Row) node {
	switch r.shows.body {
	case noBody:
		return nil
	case anyObject:
		return node{"required": true, "content": mediaType("application/json", node{"type": "object"})}
	case fileBody:
		return node{"required": true, "content": mediaType("*/*", node{})}
	}
	switch {
	case r.Query != "" && raw(r):
		return node{"content": mediaType("application/json", ref(querySchema(r.Query)))}
	case r.Command != "" && raw(r):
		return node{"required": true, "content": mediaType("application/json", d.request(r.Command))}
	case r.Command != "" && r.Method != http.MethodDelete:
		return node{"content": mediaType("application/json", d.data(r))}
	}
	return nil
}

// request describes the body of a command: as in the contract, but without the actor.
func (d *description) request(command string) node {
	c, _ := events.LookupCommand(command)
	properties := node{}
	for name, is := range d.properties("Request") {
		if name != "actor" && !(name == "threadId" && c.Tenant) {
			properties[name] = is
		}
	}
	properties["data"] = ref(commandSchema(command))
	request := node{"type": "object", "additionalProperties": false, "properties": properties}
	if !c.Creates && !c.Tenant {
		request["required"] = []string{"threadId"}
	}
	return request
}

// data describes the data of a row's command, without what the path has.
func (d *description) data(r Row) node {
	if r.Path == "/api/threads/{thread}/queue" { // a call of a tool, or a message
		return node{"anyOf": []node{ref(commandSchema("tool.queue")), ref(commandSchema("thread.react"))}}
	}
	if len(r.fill) == 0 {
		return ref(commandSchema(r.Command))
	}
	data := node{}
	for name, is := range d.schemas[commandSchema(r.Command)].(node) {
		data[name] = is
	}
	properties := node{}
	for name, is := range d.properties(commandSchema(r.Command)) {
		properties[name] = is
	}
	var required []any
	if list, ok := data["required"].([]any); ok {
		required = slices.Clone(list)
	}
	for _, field := range r.fill {
		delete(properties, field)
		required = slices.DeleteFunc(required, func(name any) bool { return name == field })
	}
	data["properties"] = properties
	delete(data, "required")
	if len(required) > 0 {
		data["required"] = required
	}
	return data
}
