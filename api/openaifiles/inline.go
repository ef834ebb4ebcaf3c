package openaifiles

import (
	"bytes"
	"context"
	"mime"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/skein-threads/skein/api/edge"
	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/attachment"
)

// Inliner puts the contents of files in the place of their ids, for one request.
type Inliner struct {
	client *client.Client
	left   int64
}

// NewInliner returns an Inliner for a request of a client. All its files have at most as many bytes as
// the body of a request.
func NewInliner(c *client.Client) *Inliner { return &Inliner{c, edge.MaxMessageBody} }

// Bytes returns how much was put in place.
func (in *Inliner) Bytes() int { return int(edge.MaxMessageBody - in.left) }

// Content returns a list of parts with the contents of files. A part keeps the id of its file, by which
// a client compares what it has sent. path is where the list is in the request; ids of other services
// stay as they are.
func (in *Inliner) Content(ctx context.Context, raw events.JSON, path string) (events.JSON, error) {
	if jsontext.Value(raw).Kind() != '[' || !bytes.Contains(raw, []byte(idPrefix)) {
		return raw, nil
	}
	var parts []events.JSON
	if json.Unmarshal(raw, &parts) != nil {
		return raw, nil // it is refused elsewhere
	}
	changed := false
	for i := range parts {
		out, err := in.part(ctx, parts[i], path+"/"+strconv.Itoa(i)+"/file_id")
		if err != nil {
			return nil, err
		}
		changed = changed || out != nil
		if out != nil {
			parts[i] = out
		}
	}
	if !changed {
		return raw, nil
	}
	return json.Marshal(parts, json.Deterministic(true))
}

// part returns a part with the content of its file; nil if it refers to none.
func (in *Inliner) part(ctx context.Context, raw events.JSON, path string) (events.JSON, error) {
	var fields map[string]events.JSON
	if jsontext.Value(raw).Kind() != '{' || json.Unmarshal(raw, &fields, jsontext.AllowDuplicateNames(true)) != nil {
		return nil, nil
	}
	var kind, id string
	_ = json.Unmarshal(fields["type"], &kind) // anything else is no such part
	_ = json.Unmarshal(fields["file_id"], &id)
	if kind != events.InputImage && kind != events.InputFile || !IsID(id) {
		return nil, nil
	}
	f, err := in.File(ctx, id, path)
	if err != nil {
		return nil, err
	}
	if kind == events.InputImage {
		if !strings.HasPrefix(f.MediaType, "image/") {
			return nil, events.Invalid(path, "the file %s is of the type %s, and no image; send it as an input_file", id, f.MediaType)
		}
		fields["image_url"] = events.Quote(f.URL)
	} else {
		delete(fields, "file_url")
		fields["file_data"] = events.Quote(f.URL)
		if name := fields["filename"]; name == nil || jsontext.Value(name).Kind() == 'n' || string(name) == `""` {
			fields["filename"] = events.Quote(f.Name)
		}
	}
	return json.Marshal(fields, json.Deterministic(true))
}

// Inline is a file with its content.
type Inline struct{ Name, MediaType, URL string } // a data URL

// File returns the file of an id. path is where the request names it.
func (in *Inliner) File(ctx context.Context, id, path string) (*Inline, error) {
	f, err := find(ctx, in.client, id)
	if events.IsNotFound(err) {
		return nil, events.Invalid(path, "there is no file %s; upload it with POST %s", id, edge.FilesPath)
	}
	if err != nil {
		return nil, err
	}
	if f.Bytes > min(in.left, attachment.MaxBytes) {
		large := events.TooLarge("the file "+f.Filename, f.Bytes, min(in.left, attachment.MaxBytes))
		large.Details.Path = path
		return nil, large
	}
	record, err := f.record(ctx, in.client)
	if err != nil {
		return nil, err
	}
	data, err := in.client.Files(f.thread).ReadFile(ctx, contentPath)
	if err != nil {
		return nil, err
	}
	if data == nil {
		return nil, events.Invalid(path, "there is no file %s; upload it with POST %s", id, edge.FilesPath)
	}
	in.left -= int64(len(data))
	kind, _, err := mime.ParseMediaType(record.MimeType)
	if err != nil {
		kind = "application/octet-stream"
	}
	return &Inline{f.Filename, kind, attachment.DataURL(kind, data)}, nil
}
