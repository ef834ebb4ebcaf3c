package rest

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/skein-threads/skein/api/edge"
	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
)

func fileRows() []Row {
	const files = "/api/threads/{thread}/files"
	const one = files + "/{path...}"
	return []Row{
		{Method: "GET", Path: files, Query: "file.list"},
		{Method: "GET", Path: one, serve: (*service).getFile, Doc: "The content of a file; parts of it with Range.", shows: shown{parameters: fileParameters(), answer: fileAnswer}},
		{Method: "HEAD", Path: one, serve: (*service).getFile, Doc: "The headers of a file.", shows: shown{parameters: fileParameters(), answer: noAnswer}},
		{Method: "PUT", Path: one, serve: (*service).putFile, Doc: "Writes a file: the body is its content.", shows: shown{body: fileBody, answer: "file"}},
		{Method: "DELETE", Path: one, Command: "file.delete", serve: (*service).deleteFile, shows: shown{body: noBody}},
	}
}

func fileParameters() []field { return []field{{name: "at", kind: atKind}} }

// getFile answers with a file's content.
func (s *service) getFile(w http.ResponseWriter, req *http.Request, c *edge.Caller) error {
	row := Row{Path: "{thread}", Query: "file.stat", fill: fills("path", "path")}
	data, err := row.queryData(req)
	if err != nil {
		return err
	}
	record, err := statFile(req.Context(), c.Client, data)
	if err != nil {
		return err
	}
	switch {
	case record.IsDirectory:
		return events.Errorf(events.IllegalTransition, "%s is a directory, and has no content; list it with GET %s/files?path=%s", record.Path, threadPath(record.ThreadID), record.Path)
	case record.External:
		return events.Errorf(events.IllegalTransition, "the content of %s is not stored here but at %s", record.Path, record.Storage)
	}
	edge.DescribeFile(w.Header(), record)
	return edge.ServeFile(w, req, c.Client, record)
}

// statFile returns the record of a file. The error is a not_found if there is none.
func statFile(ctx context.Context, c *client.Client, query object) (*events.FileRecord, error) {
	answer, err := c.Query(ctx, "file.stat", query)
	if err != nil {
		return nil, err
	}
	return decodeAnswer[events.FileRecord](answer)
}

// putFile writes a file.
func (s *service) putFile(w http.ResponseWriter, req *http.Request, c *edge.Caller) error {
	path, expected, err := fileToChange(req, c.Client)
	if err != nil {
		return refusal(w, req, err)
	}
	o := events.WriteFileOptions{ExpectedDigest: expected, CommandID: req.Header.Get(edge.HeaderKey)}
	files := c.Client.Files(req.PathValue("thread"))
	body := &upload{r: req.Body, alive: http.NewResponseController(w), stall: c.Stall}
	var record *events.FileRecord
	if kind := contentType(req); req.ContentLength >= 0 && req.ContentLength <= events.InlineFileBytes {
		var data []byte
		if data, err = io.ReadAll(body); err == nil {
			record, err = files.WriteFile(req.Context(), path, data, kind, o)
		}
	} else {
		record, err = files.WriteFileFrom(req.Context(), path, body, kind, o)
	}
	if body.err != nil {
		return bodyError(body.err, c.Stall)
	}
	if err != nil {
		return refusal(w, req, unwrapped(err, "/data"))
	}
	if record == nil {
		return events.Errorf(events.Unavailable, "the reply to the command names no file")
	}
	c.Acknowledged(record.ThreadID, record.Seq)
	w.Header().Set("ETag", edge.ETag(record.Digest))
	w.Header().Set(headerSeq, strconv.FormatInt(record.Seq, 10))
	status := http.StatusOK
	if record.CreatedAt == record.UpdatedAt {
		status = http.StatusCreated
		w.Header().Set("Location", req.URL.EscapedPath())
	}
	edge.WriteJSON(w, status, record)
	return nil
}

// contentType returns the media type that a request states for its content. Forms are what
// curl states on its own: then the first bytes decide.
func contentType(req *http.Request) string {
	kind := req.Header.Get("Content-Type")
	if kind == "application/x-www-form-urlencoded" {
		return ""
	}
	return kind
}

// upload reads a body, for as long as it comes.
type upload struct {
	r     io.Reader
	alive *http.ResponseController
	stall time.Duration // it may come to a halt for so long
	err   error
}

func (u *upload) Read(p []byte) (int, error) {
	_ = u.alive.SetReadDeadline(time.Now().Add(u.stall)) // a recorder in a test has none
	n, err := u.r.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		u.err = err
	}
	return n, err
}

// fileToChange returns the path of a request that writes or deletes a file, and the digest that
// it must hold; see expectedDigest.
func fileToChange(req *http.Request, c *client.Client) (path string, expected *string, err error) {
	if _, err := decodeParameters(req, nil, nil); err != nil {
		return "", nil, err
	}
	if path, err = events.FilePath(req.PathValue("path")); err != nil {
		return "", nil, err
	}
	expected, err = expectedDigest(req, c, path)
	return path, expected, err
}

// expectedDigest returns the digest that a path must hold, as the request's headers say: nil if
// they say nothing, empty if it must hold nothing.
func expectedDigest(req *http.Request, c *client.Client, path string) (*string, error) {
	match, none := req.Header.Values("If-Match"), req.Header.Values("If-None-Match")
	switch {
	case len(match) == 0 && len(none) == 0:
		return nil, nil
	case len(match) > 0 && len(none) > 0:
		return nil, events.Invalid("/If-Match", "If-Match and If-None-Match exclude one another")
	case len(none) > 0:
		if len(none) != 1 || none[0] != "*" {
			return nil, events.Invalid("/If-None-Match", "If-None-Match takes *: the file must not exist")
		}
		return new(string), nil
	case len(match) != 1:
		return nil, events.Invalid("/If-Match", "If-Match takes one digest, or *")
	case match[0] == "*":
		return presentDigest(req, c, path)
	}
	tag := match[0]
	switch {
	case !isTag(tag):
		return nil, events.Invalid("/If-Match", "If-Match takes the ETag of a file, or *")
	case len(tag) != 66:
		return nil, otherTag(tag, path)
	}
	tag = tag[1:65]
	return &tag, nil
}

// presentDigest returns the digest of the file at a path. The error is a version_conflict if
// there is none.
func presentDigest(req *http.Request, c *client.Client, path string) (*string, error) {
	now, err := c.UpToDate(req.Context())
	if err != nil {
		return nil, err
	}
	record, err := now.Files(req.PathValue("thread")).StatFile(req.Context(), path)
	if err != nil {
		return nil, err
	}
	if record == nil || !record.HasContent() {
		return nil, events.Errorf(events.VersionConflict, "there is no file at %s", path)
	}
	return &record.Digest, nil
}

// deleteFile deletes a file.
func (s *service) deleteFile(w http.ResponseWriter, req *http.Request, c *edge.Caller) error {
	path, expected, err := fileToChange(req, c.Client)
	if err != nil {
		return refusal(w, req, err)
	}
	call := client.Request{ThreadID: req.PathValue("thread"), Data: events.DeleteFile{Path: path, ExpectedDigest: expected}, CommandID: req.Header.Get(edge.HeaderKey)}
	reply, err := c.Client.Do(req.Context(), "file.delete", call)
	if err != nil {
		return refusal(w, req, unwrapped(err, "/data"))
	}
	w.Header().Set(headerSeq, strconv.FormatInt(reply.Seq, 10))
	edge.WriteJSON(w, http.StatusOK, reply)
	return nil
}
