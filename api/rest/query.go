package rest

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/skein-threads/skein/api/edge"
	"github.com/skein-threads/skein/events"
)

// query serves a row that is a query: its parameters are the query's fields.
func (r Row) query(w http.ResponseWriter, req *http.Request, c *edge.Caller) error {
	data, err := r.queryData(req)
	if err != nil {
		return err
	}
	answer, err := c.Client.Query(req.Context(), r.Query, data)
	if err != nil {
		return err
	}
	return writeAnswer(w, req, r.Query, data, answer)
}

// queryData returns the data of a row's query.
func (r Row) queryData(req *http.Request) (object, error) {
	q, known := events.LookupQuery(r.Query)
	if !known {
		return nil, events.Errorf(events.Unavailable, "the query %s is not known here", r.Query)
	}
	own := r.pathValues(req)
	if r.hasThread() {
		own["threadId"] = req.PathValue("thread")
	}
	data, err := decodeParameters(req, fieldsOf(q.New()), own)
	if err != nil {
		return nil, err
	}
	return data, setMinSeq(req, data, fieldsOf(q.New()))
}

// decodeParameters returns the parameters of a request as JSON, typed by the fields that there
// are. own are fields that the path has.
func decodeParameters(req *http.Request, known []field, own map[string]string) (object, error) {
	parameters, err := parametersOf(req)
	if err != nil {
		return nil, err
	}
	data := object{}
	for name, values := range parameters {
		at := slices.IndexFunc(known, func(f field) bool { return f.name == name })
		if _, fixed := own[name]; at < 0 || fixed {
			return nil, unknownParameter(name, known, own)
		}
		if data[name], err = known[at].parse(values); err != nil {
			return nil, err
		}
	}
	for name, value := range own {
		if err := (objectSetter{data}).setText(name, value); err != nil {
			return nil, err
		}
	}
	return data, nil
}

// parametersOf returns the parameters of a request but the ticket, which is the edge's.
func parametersOf(req *http.Request) (url.Values, error) {
	parameters, err := url.ParseQuery(req.URL.RawQuery)
	if err != nil {
		return nil, events.Invalid("", "the query string is malformed: %w", err)
	}
	parameters.Del("ticket")
	return parameters, nil
}

func unknownParameter(name string, known []field, own map[string]string) error {
	var names []string
	for _, f := range known {
		if _, fixed := own[f.name]; !fixed {
			names = append(names, f.name)
		}
	}
	slices.Sort(names)
	if len(names) == 0 {
		return events.Invalid("/"+escapePointer(name), "there is no such parameter; this route takes none")
	}
	return events.Invalid("/"+escapePointer(name), "there is no such parameter; known are %s", strings.Join(names, ", "))
}

// setMinSeq sets minSeq as the header says, unless a query has no such field.
func setMinSeq(req *http.Request, data object, known []field) error {
	header := req.Header.Get(headerMinSeq)
	if header == "" || data["minSeq"] != nil || !slices.ContainsFunc(known, func(f field) bool { return f.name == "minSeq" }) {
		return nil
	}
	seq, ok := parseWhole(header)
	if !ok {
		return events.Invalid("/"+headerMinSeq, "%s is %.40q; it takes a sequence of the log, as Skein-Seq has it", headerMinSeq, header)
	}
	data["minSeq"] = jsontext.Value(strconv.FormatInt(seq, 10))
	return nil
}

// writeAnswer answers with what a query answered. A thread has its version as entity tag, and a
// definition its digest, unless an earlier state was asked for.
func writeAnswer(w http.ResponseWriter, req *http.Request, query string, data object, answer []byte) error {
	var stamp struct {
		Version int64  `json:"version"`
		Digest  string `json:"digest"`
		Seq     int64  `json:"seq"`
	}
	of := map[string]string{"thread.get": "at", "definition.get": "version"}
	if earlier, tagged := of[query]; !tagged || data[earlier] != nil {
		writeRaw(w, answer)
		return nil
	}
	if err := json.Unmarshal(answer, &stamp); err != nil {
		return err
	}
	tag, what := versionTag(stamp.Version), "this thread"
	if query == "definition.get" {
		tag, what = edge.ETag(stamp.Digest), "this definition"
	}
	w.Header().Set("ETag", tag)
	w.Header().Set(headerSeq, strconv.FormatInt(stamp.Seq, 10))
	if err := holdsTag(req.Header.Values("If-Match"), tag, what); err != nil {
		return refusal(w, req, err)
	}
	if namesTag(req.Header.Values("If-None-Match"), tag) {
		w.WriteHeader(http.StatusNotModified)
		return nil
	}
	writeRaw(w, answer)
	return nil
}

// writeRaw answers with JSON that is encoded already.
func writeRaw(w http.ResponseWriter, answer []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(answer)))
	_, _ = w.Write(answer) // the client may have gone
}

// anyQuery serves POST /api/queries/{name}: the body is the query's data.
func (s *service) anyQuery(w http.ResponseWriter, req *http.Request, c *edge.Caller) error {
	name := req.PathValue("name")
	q, known := events.LookupQuery(name)
	if !known {
		return unknown("query", name, queryNames())
	}
	body, err := readObject(req)
	if err == nil {
		err = setMinSeq(req, body, fieldsOf(q.New()))
	}
	if err != nil {
		return err
	}
	answer, err := c.Client.Query(req.Context(), name, body)
	if err != nil {
		return err
	}
	return writeAnswer(w, req, name, body, answer)
}

func queryNames() []string {
	var names []string
	for _, q := range events.Queries() {
		names = append(names, q.Name)
	}
	slices.Sort(names)
	return names
}

// decodeAnswer decodes the answer to a query.
func decodeAnswer[A any](answer []byte) (*A, error) {
	a := new(A)
	if err := json.Unmarshal(answer, a); err != nil {
		return nil, events.Errorf(events.Unavailable, "read the answer: %w", err)
	}
	return a, nil
}
