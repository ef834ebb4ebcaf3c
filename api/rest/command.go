package rest

import (
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/skein-threads/skein/api/edge"
	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
)

// Headers of commands and queries.
const (
	headerSeq    = edge.HeaderSeq  // of the commit
	headerMinSeq = "Skein-Min-Seq" // minSeq
)

// command serves a row that is a command: the body is its data.
func (r Row) command(w http.ResponseWriter, req *http.Request, c *edge.Caller) error {
	body, err := readObject(req)
	if err != nil {
		return err
	}
	call, err := r.call(req, body)
	if err != nil {
		return refusal(w, req, err)
	}
	reply, err := c.Client.Do(req.Context(), r.Command, call)
	if err != nil {
		return refusal(w, req, unwrapped(err, "/data"))
	}
	status := http.StatusOK
	if r.created != nil {
		var location string
		if status, location = r.created(reply); location != "" {
			w.Header().Set("Location", location)
		}
	}
	writeReply(w, status, reply, reply)
	return nil
}

// call returns a row's command as the request makes it.
func (r Row) call(req *http.Request, body object) (client.Request, error) {
	if err := refuseActor(body); err != nil {
		return client.Request{}, err
	}
	own := r.pathValues(req)
	for field, value := range own {
		if err := (objectSetter{body}).setText(field, value); err != nil {
			return client.Request{}, err
		}
	}
	if err := r.addParameters(req, body, own); err != nil {
		return client.Request{}, err
	}
	return r.callWith(req, body)
}

// addParameters adds parameters to a command's data. Only a DELETE has any: many clients send
// no body with it.
func (r Row) addParameters(req *http.Request, body object, own map[string]string) error {
	var known []field
	if r.Method == http.MethodDelete {
		command, _ := events.LookupCommand(r.Command)
		known = fieldsOf(command.New())
	}
	parameters, err := decodeParameters(req, known, own)
	if err != nil {
		return err
	}
	for name, value := range parameters {
		if _, fixed := own[name]; fixed {
			continue
		}
		if _, twice := body[name]; twice {
			return events.Invalid("/"+name, "%s is both a parameter and in the body", name)
		}
		body[name] = value
	}
	return nil
}

// callWith returns a row's command with its data.
func (r Row) callWith(req *http.Request, data object) (client.Request, error) {
	call := client.Request{Data: data}
	if r.hasThread() {
		call.ThreadID = req.PathValue("thread")
	}
	return call, conditions(req, &call)
}

// commandKey returns the commandId of a request, which its header or its body may have.
func commandKey(req *http.Request, ofBody string) (string, error) {
	key := req.Header.Get(edge.HeaderKey)
	switch {
	case key == "":
		return ofBody, nil
	case !events.Pattern(events.PatternCommandID).MatchString(key):
		return "", events.Invalid("/"+edge.HeaderKey, "%s is %.80q; it takes 1 to 128 letters, digits and _ . : -, the first a letter or digit", edge.HeaderKey, key)
	case ofBody != "" && ofBody != key:
		return "", events.Invalid("/commandId", "the body's commandId and the header %s differ", edge.HeaderKey)
	}
	return key, nil
}

// conditions sets what the headers of a request say of its command.
func conditions(req *http.Request, call *client.Request) (err error) {
	if call.CommandID, err = commandKey(req, call.CommandID); err != nil {
		return err
	}
	match := req.Header.Values("If-Match")
	if len(match) == 0 || len(match) == 1 && match[0] == "*" && call.ThreadID != "" { // a thread that is not there is a not_found
		return nil
	}
	version, ok := quotedVersion(match)
	switch {
	case !ok && len(match) == 1 && isTag(match[0]):
		return otherTag(match[0], "this thread")
	case !ok:
		return events.Invalid("/If-Match", `If-Match takes one version, as in If-Match: "7"`)
	case call.ExpectedVersion != nil && *call.ExpectedVersion != version:
		return events.Invalid("/expectedVersion", "the body's expectedVersion and the header If-Match differ")
	}
	call.ExpectedVersion = &version
	return nil
}

// quotedVersion parses an entity tag that is a version.
func quotedVersion(tags []string) (int64, bool) {
	if len(tags) != 1 || len(tags[0]) < 3 || tags[0][0] != '"' || tags[0][len(tags[0])-1] != '"' {
		return 0, false
	}
	return parseWhole(tags[0][1 : len(tags[0])-1])
}

// parseWhole parses a whole number from 0 that every JSON reader represents exactly.
func parseWhole(s string) (int64, bool) {
	n, err := strconv.ParseInt(s, 10, 64)
	return n, err == nil && n >= 0 && n <= 1<<53-1 && s[0] >= '0'
}

// writeReply answers with what a command replied, and its headers.
func writeReply(w http.ResponseWriter, status int, reply *events.Reply, body any) {
	w.Header().Set(headerSeq, strconv.FormatInt(reply.Seq, 10))
	if reply.ThreadID != "" {
		w.Header().Set("ETag", versionTag(reply.Version))
	}
	edge.WriteJSON(w, status, body)
}

// versionTag returns a version as an entity tag.
func versionTag(version int64) string { return `"` + strconv.FormatInt(version, 10) + `"` }

// refusal answers with an error: a conflict that a header asked for is 412.
func refusal(w http.ResponseWriter, req *http.Request, err error) error {
	asked := len(req.Header.Values("If-Match"))+len(req.Header.Values("If-None-Match")) > 0
	if problem, _ := edge.ProblemOf(err); asked && problem.Code == string(events.VersionConflict) {
		edge.WriteJSON(w, http.StatusPreconditionFailed, struct {
			Error edge.Problem `json:"error"`
		}{problem})
		return nil
	}
	return err
}

// unwrapped returns a refusal whose path is the caller's own: a service sees the body of a
// resource inside another one, at the first of these paths that the refusal is of.
func unwrapped(err error, around ...string) error {
	e := events.AsError(err)
	if e.Details == nil {
		return e
	}
	for _, outer := range around {
		path, inside := strings.CutPrefix(e.Details.Path, outer)
		if !inside || path != "" && path[0] != '/' {
			continue
		}
		inner, details := *e, *e.Details
		if text, is := strings.CutPrefix(inner.Message, details.Path+": "); is {
			inner.Message = strings.TrimPrefix(path+": "+text, ": ")
		}
		details.Path, inner.Details = path, &details
		return &inner
	}
	return e
}

// anyCommand serves POST /api/commands/{name}: the body is that of the command over NATS.
func (s *service) anyCommand(w http.ResponseWriter, req *http.Request, c *edge.Caller) error {
	name := req.PathValue("name")
	if _, known := events.LookupCommand(name); !known {
		return unknown("command", name, commandNames())
	}
	body, err := readObject(req)
	if err != nil {
		return err
	}
	call, err := commandOf(body)
	if err == nil {
		err = conditions(req, &call)
	}
	if err != nil {
		return err
	}
	reply, err := c.Client.Do(req.Context(), name, call)
	if err != nil {
		return refusal(w, req, err)
	}
	writeReply(w, http.StatusOK, reply, reply)
	return nil
}

// commandOf decodes the body of a command. What it does not check, the service does.
func commandOf(body object) (client.Request, error) {
	if err := refuseActor(body); err != nil {
		return client.Request{}, err
	}
	var call client.Request
	fields := map[string]any{
		"commandId": &call.CommandID, "threadId": &call.ThreadID, "writerToken": &call.WriterToken,
		"expectedVersion": &call.ExpectedVersion,
	}
	for name, value := range body {
		into, known := fields[name]
		switch {
		case name == "data":
			call.Data = events.JSON(value)
		case !known:
			return call, events.Invalid("/"+escapePointer(name), "there is no such field; known are commandId, data, expectedVersion, threadId, writerToken")
		case json.Unmarshal(value, into) != nil:
			return call, events.Invalid("/"+name, "%s has the wrong type; see docs/commands.md", name)
		}
	}
	return call, nil
}

// escapePointer escapes a name for a JSON pointer, and shortens it.
func escapePointer(name string) string {
	if len(name) > 80 {
		name = strings.ToValidUTF8(name[:80], "") + "..."
	}
	return strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
}

func commandNames() []string {
	var names []string
	for _, c := range events.Commands() {
		names = append(names, c.Name)
	}
	slices.Sort(names)
	return names
}
