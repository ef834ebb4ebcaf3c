package rest_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v5"

	"github.com/skein-threads/skein/api/rest"
)

// description is what /api/openapi.json says of requests and answers.
type description struct {
	mux      *http.ServeMux // of the rows
	doc      map[string]any
	compiler *jsonschema.Compiler

	mu      sync.Mutex // guards compiled, and the compiler
	schemas map[string]*jsonschema.Schema
}

const documentURL = "skein:///openapi.json"

// described is the description, which the tests share: it takes as long as starting a server.
var described = sync.OnceValues(func() (*description, error) {
	raw, err := rest.OpenAPI()
	if err != nil {
		return nil, err
	}
	d := &description{mux: http.NewServeMux(), compiler: jsonschema.NewCompiler(), schemas: map[string]*jsonschema.Schema{}}
	d.compiler.Draft = jsonschema.Draft2020
	if err := d.compiler.AddResource(documentURL, bytes.NewReader(raw)); err != nil {
		return nil, err
	}
	for _, r := range rest.Rows() {
		d.mux.Handle(r.Method+" "+r.Path, http.NotFoundHandler())
	}
	return d, json.Unmarshal(raw, &d.doc)
})

// operation returns the place of a request's operation in the document, and false for paths that
// no route has.
func (d *description) operation(req *http.Request) (at []string, ok bool) {
	_, pattern := d.mux.Handler(req)
	method, path, ok := strings.Cut(pattern, " ")
	if !ok {
		return nil, false
	}
	if strings.HasSuffix(path, "s/{name}") && method == "POST" {
		path = req.URL.Path // each command and query has an operation of its own
	}
	return []string{"paths", strings.ReplaceAll(path, "...}", "}"), strings.ToLower(method)}, true
}

// at returns what is at a place in the document.
func (d *description) at(place ...string) map[string]any {
	node := d.doc
	for _, name := range place {
		node, _ = node[name].(map[string]any)
	}
	return node
}

// check returns how an answer, or a request that was taken, differs from the document.
func (d *description) check(req *http.Request, sent string, a answer) error {
	operation, ok := d.operation(req)
	if !ok || d.at(operation...) == nil {
		return nil // refused before any route
	}
	if err := d.checkAnswer(operation, a); err != nil {
		return err
	}
	if a.status >= 300 || sent == "" || req.Method == http.MethodDelete {
		return nil
	}
	content := append(operation, "requestBody", "content")
	if d.at(append(content, "*/*")...) != nil {
		return nil
	}
	if err := d.checkJSON([]byte(sent), append(content, "application/json")...); err != nil {
		return fmt.Errorf("the request was taken: %w", err)
	}
	return nil
}

func (d *description) checkAnswer(operation []string, a answer) error {
	status := strconv.Itoa(a.status)
	if d.at(append(operation, "responses", status)...) == nil {
		if a.status < http.StatusBadRequest {
			return fmt.Errorf("the status %d is not described", a.status)
		}
		status = "default"
	}
	content := append(operation, "responses", status, "content")
	if len(d.at(content...)) == 0 {
		if len(a.body) > 0 {
			return fmt.Errorf("%d has a body of %d bytes, and none is described", a.status, len(a.body))
		}
		return nil
	}
	if d.at(append(content, "*/*")...) != nil {
		return nil
	}
	kind, _, err := mime.ParseMediaType(a.header.Get("Content-Type"))
	if err != nil || d.at(append(content, kind)...) == nil {
		return fmt.Errorf("the type %q of %d is not described", a.header.Get("Content-Type"), a.status)
	}
	if kind != "application/json" {
		return nil
	}
	return d.checkJSON(a.body, append(content, kind)...)
}

// checkJSON checks a body against the schema of a media type of the document.
func (d *description) checkJSON(body []byte, place ...string) error {
	pointer := documentURL + "#"
	for _, name := range append(place, "schema") {
		pointer += "/" + strings.NewReplacer("~", "~0", "/", "~1", "{", "%7B", "}", "%7D").Replace(name)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	schema := d.schemas[pointer]
	if schema == nil {
		var err error
		if schema, err = d.compiler.Compile(pointer); err != nil {
			return fmt.Errorf("compile %s: %w", pointer, err)
		}
		d.schemas[pointer] = schema
	}
	var value any
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber()
	if err := decoder.Decode(&value); err != nil {
		return err
	}
	if err := schema.Validate(value); err != nil {
		return fmt.Errorf("%.300s is not what %s says: %w", body, strings.Join(place, " "), err)
	}
	return nil
}
