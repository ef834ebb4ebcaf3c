package openaifiles

import (
	"bytes"
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"path"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/skein-threads/skein/api/edge"
	"github.com/skein-threads/skein/events"
)

// Bounds of an upload.
const (
	maxBytes     = 512 << 20 // of a file, as at OpenAI
	formBytes    = 1 << 20   // of everything else in the form
	maxFields    = 64
	fieldBytes   = 1024
	maxFilename  = 512
	leastSeconds = 3600 // of expires_after, as at OpenAI
	mostSeconds  = 30 * 24 * 3600
)

// form is the body of an upload, which is read part by part.
type form struct {
	parts  *multipart.Reader
	body   *watched
	fields map[string]string
	n      int // fields so far
}

// watched notes why a body cannot be read.
type watched struct {
	io.ReadCloser
	err error
}

func (b *watched) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		b.err = err
	}
	return n, err
}

// newForm begins to read the body of an upload.
func newForm(w http.ResponseWriter, r *http.Request) (*form, error) {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "multipart/form-data" {
		return nil, events.Invalid("/Content-Type", "a file is sent as multipart/form-data, with the fields purpose and file, and not as %.80q", r.Header.Get("Content-Type"))
	}
	if r.ContentLength > maxBytes+formBytes {
		return nil, events.TooLarge("the file", r.ContentLength, maxBytes)
	}
	body := &watched{ReadCloser: http.MaxBytesReader(w, r.Body, maxBytes+formBytes)}
	r.Body = body
	parts, err := r.MultipartReader()
	if err != nil {
		return nil, events.Invalid("/Content-Type", "the Content-Type has no boundary of the form's parts")
	}
	return &form{parts: parts, body: body, fields: map[string]string{}}, nil
}

// next reads fields up to the file, and returns that; nil if there is none any more.
func (f *form) next() (*multipart.Part, error) {
	for {
		p, err := f.parts.NextPart()
		if errors.Is(err, io.EOF) {
			return nil, nil
		}
		if err != nil {
			return nil, f.broken(err)
		}
		name := p.FormName()
		if name == "file" {
			return p, nil
		}
		if f.n++; f.n > maxFields {
			return nil, events.Invalid("", "the form has more than %d fields", maxFields)
		}
		value, err := io.ReadAll(io.LimitReader(p, fieldBytes+1))
		if err != nil {
			return nil, f.broken(err)
		}
		if known := name == purposeField || strings.HasPrefix(name, expiresField); !known {
			continue
		}
		if len(value) > fieldBytes {
			return nil, events.Invalid("/"+purposeField, "a field of the form has more than %d bytes", fieldBytes)
		}
		f.fields[name] = string(value)
	}
}

// broken returns the refusal of a body that cannot be read.
func (f *form) broken(err error) error {
	var large *http.MaxBytesError
	switch {
	case errors.As(f.body.err, &large):
		return events.TooLarge("the file", large.Limit+1, maxBytes)
	case f.body.err != nil:
		return edge.Broken(f.body.err, "send it again, from its beginning")
	}
	return events.Invalid("", "the body is not multipart/form-data as its boundary says, or ends too early: %s", strings.ReplaceAll(err.Error(), "multipart: ", ""))
}

// The fields of the form.
const (
	purposeField = "purpose"
	expiresField = "expires_after"
)

// describe returns what the fields say of the file.
func (f *form) describe(filename string) (description, error) {
	d := description{Purpose: f.fields[purposeField], Filename: filename}
	switch {
	case d.Purpose == "":
		return d, events.Invalid("/"+purposeField, "a file has a purpose, such as user_data")
	case len(d.Purpose) > 64 || strings.Trim(d.Purpose, "abcdefghijklmnopqrstuvwxyz0123456789_-") != "":
		return d, events.Invalid("/"+purposeField, "a purpose is a word such as user_data or vision, not %.64q", d.Purpose)
	}
	anchor, seconds := "", ""
	for name, value := range f.fields {
		switch strings.Trim(strings.TrimPrefix(name, expiresField), "[].") {
		case "anchor":
			anchor = value
		case "seconds":
			seconds = value
		case purposeField:
		default:
			return d, events.Invalid("/"+expiresField, "expires_after has an anchor and seconds: the fields expires_after[anchor] and expires_after[seconds]")
		}
	}
	if anchor+seconds == "" {
		return d, nil
	}
	n, err := strconv.ParseInt(seconds, 10, 64)
	switch {
	case anchor != "created_at":
		return d, events.Invalid("/"+expiresField+"/anchor", "the anchor of expires_after is created_at, not %.32q", anchor)
	case err != nil || n < leastSeconds || n > mostSeconds:
		return d, events.Invalid("/"+expiresField+"/seconds", "the seconds of expires_after are a number from %d to %d, not %.32q", leastSeconds, mostSeconds, seconds)
	}
	d.ExpiresAfter = n
	return d, nil
}

// filenameOf returns the name of a part's file, without the folders that some clients send.
func filenameOf(p *multipart.Part) (string, error) {
	name := path.Base(strings.ReplaceAll(p.FileName(), `\`, "/"))
	if p.FileName() == "" || name == "." || name == "/" {
		return "", events.Invalid("/file", "the part file of the form has a filename")
	}
	if len(name) > maxFilename || !utf8.ValidString(name) || strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return "", events.Invalid("/file", "a filename is a text of at most %d bytes, without control characters", maxFilename)
	}
	return name, nil
}

// typeOf returns the media type of a part's content; empty if its first bytes decide.
func typeOf(p *multipart.Part, filename string) string {
	if kind, _, err := mime.ParseMediaType(p.Header.Get("Content-Type")); err == nil && kind != "application/octet-stream" {
		return kind
	}
	kind, _, _ := mime.ParseMediaType(mime.TypeByExtension(path.Ext(filename))) // none is empty
	return kind
}

// head reads the beginning of a content, and reports whether that is all of it.
func head(from io.Reader) (data []byte, whole bool, err error) {
	var b bytes.Buffer
	if _, err = io.CopyN(&b, from, events.InlineFileBytes+1); errors.Is(err, io.EOF) {
		return b.Bytes(), true, nil
	}
	return b.Bytes(), false, err
}
