package user

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/schema"
)

// manifestEntry is a definition of a file.
type manifestEntry struct {
	events.NewDefinition

	file  string
	lines map[string]int // by JSON pointer in what stands in the file
	inner bool           // the definition is a member of what stands there
}

// document is a value of a file, as JSON, with the lines of its members.
type document struct {
	json  events.JSON
	lines map[string]int
}

// readManifest reads the definitions of one file; name is for errors, and its ending says
// what the file holds if it is .json. The error is an invalid_request that begins
// with file and line.
func readManifest(name string, raw []byte) ([]manifestEntry, error) {
	list, err := documents(name, raw)
	if err != nil {
		return nil, err
	}
	var entries []manifestEntry
	for _, d := range list {
		e, err := entry(name, d)
		if err != nil {
			return nil, err
		}
		entries = append(entries, e)
	}
	return entries, nil
}

func documents(name string, raw []byte) ([]document, error) {
	raw = bytes.TrimPrefix(raw, []byte("\xef\xbb\xbf"))
	trimmed := bytes.TrimSpace(raw)
	if strings.EqualFold(filepath.Ext(name), ".json") {
		return readJSON(name, raw)
	}
	if len(trimmed) > 0 && (trimmed[0] == '{' || trimmed[0] == '[') {
		if list, err := readJSON(name, raw); err == nil {
			return list, nil
		}
	}
	return readYAML(name, raw)
}

// entry makes a definition of what stands in a file.
func entry(file string, d document) (manifestEntry, error) {
	e := manifestEntry{file: file, lines: d.lines}
	var members map[string]events.JSON
	if jsontext.Value(d.json).Kind() != '{' || json.Unmarshal(d.json, &members) != nil {
		return e, wrong(file, d.lines[""], "a definition is an object with a kind")
	}
	var kind string
	if err := json.Unmarshal(members["kind"], &kind); err != nil || kind == "" {
		return e, wrong(file, d.lines[""], "a definition has a kind: %s", strings.Join(events.ModelKind.Enum(), ", "))
	}
	e.Kind = events.DefinitionKind(kind)
	delete(members, "kind")
	if inner, ok := members["definition"]; ok {
		e.inner = true
		if name, ok := members["name"]; ok && json.Unmarshal(name, &e.Name) != nil {
			return e, wrong(file, e.line("/name"), "a name is a text")
		}
		delete(members, "name")
		delete(members, "definition")
		for other := range members {
			return e, wrong(file, e.line("/"+other), "next to definition only kind and name are allowed")
		}
		e.Definition = inner
		return e, nil
	}
	raw, err := json.Marshal(members, json.Deterministic(true))
	if err != nil {
		return e, wrong(file, d.lines[""], "%v", err)
	}
	e.Definition = raw
	return e, nil
}

// wrong says what is wrong where.
func wrong(file string, line int, format string, args ...any) *events.Error {
	return events.Errorf(events.InvalidRequest, "%s:%d: %s", file, max(line, 1), fmt.Sprintf(format, args...))
}

// At returns the file and line of a path: a JSON pointer in the definition in the form of
// definition.apply, such as /definition/tools/1.
func (e *manifestEntry) At(path string) string { return fmt.Sprintf("%s:%d", e.file, e.line(path)) }

// line returns the line of a path, or of the closest value around it.
func (e *manifestEntry) line(path string) int {
	if !e.inner {
		path = strings.TrimPrefix(path, "/definition")
	}
	for {
		if line, ok := e.lines[path]; ok {
			return line
		}
		cut := strings.LastIndexByte(path, '/')
		if cut < 0 {
			return max(e.lines[""], 1)
		}
		path = path[:cut]
	}
}

// Blame adds the definition's file and line to a refusal.
func (e *manifestEntry) Blame(err error) error {
	var refusal *events.Error
	if !errors.As(err, &refusal) {
		return err
	}
	path := ""
	if refusal.Details != nil {
		path = refusal.Details.Path
	}
	told := *refusal
	told.Message = e.At(path) + ": " + strings.TrimPrefix(refusal.Message, "/definition")
	return &told
}

// checkManifest validates every definition as the server will, and replaces it by its canonical form.
// The error names file and line.
func checkManifest(validator *schema.Validator, entries []manifestEntry) error {
	seen := map[string]*manifestEntry{}
	for i := range entries {
		e := &entries[i]
		def, err := validator.Definition(e.NewDefinition)
		if err != nil {
			return e.Blame(err)
		}
		e.NewDefinition = def
		if other := seen[def.Ref().ID()]; other != nil {
			return e.Blame(events.Errorf(events.InvalidRequest, "the %s is already defined at %s", def.Ref(), other.At("")))
		}
		seen[def.Ref().ID()] = e
	}
	return nil
}
