package console

import (
	"cmp"
	"encoding/base64"
	"errors"
	"html/template"
	"io"
	"mime"
	"mime/multipart"
	"net/url"
	"path"
	"strings"
	"unicode/utf8"

	"github.com/skein-threads/skein/api/edge"
	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/console/markdown"
	"github.com/skein-threads/skein/console/page"
	"github.com/skein-threads/skein/events"
)

// previewBytes is the size of the largest text with a preview.
const previewBytes = 256 << 10

// files is the tab with the file system of a thread.
func files(texts *markdown.Renderer) page.Page {
	return page.Page{
		Path: "/threads/{thread}/files", Name: "Files", In: page.Tabs, Template: "files",
		JSON: "/api/threads/{thread}/files{query}", CLI: "skein files ls {thread} {path}", Query: []string{"path"},
		Load:   loadFolder,
		Panels: []page.Panel{{ID: "file-tree", On: []string{"file.*", "directory.*"}, Load: func(a *page.Ask) (any, error) { return loadFiles(a, texts) }}},
	}
}

// folder is the path of the directory that the page shows.
type folder string

// Param implements page.Params.
func (f folder) Param(string) string { return string(f) }

func loadFolder(a *page.Ask) (any, error) {
	at := path.Clean("/" + a.Query("path"))
	if at == "/" {
		return folder(at), nil
	}
	record, err := client.Read(a.Context(), a.Client, events.StatFile{ThreadID: a.Thread.ID, Path: at, At: a.At})
	if err != nil {
		return nil, err
	}
	if !record.IsDirectory {
		at = path.Dir(at)
	}
	return folder(at), nil
}

// filePage is a directory, and the selected file in it.
type filePage struct {
	Dir      string
	Crumbs   []page.Link
	Entries  []fileEntry
	File     *events.FileRecord
	Address  string        // of the content
	Put      string        // the address below which the script uploads files of the directory
	Text     template.HTML // the preview of a text file
	Image    bool
	MayWrite bool
}

func loadFiles(a *page.Ask, texts *markdown.Renderer) (any, error) {
	at := path.Clean("/" + a.Query("path"))
	p := &filePage{Dir: at, MayWrite: a.May(edge.Write) && a.Live()}
	if at != "/" {
		record, err := client.Read(a.Context(), a.Client, events.StatFile{ThreadID: a.Thread.ID, Path: at, At: a.At})
		if err != nil {
			return nil, err
		}
		if !record.IsDirectory {
			p.Dir = path.Dir(at)
			if err := p.look(a, record, texts); err != nil {
				return nil, err
			}
		}
	}
	list, err := client.Read(a.Context(), a.Client, events.ListFiles{ThreadID: a.Thread.ID, Path: p.Dir, At: a.At})
	if err != nil {
		return nil, err
	}
	for _, f := range list.Entries {
		p.Entries = append(p.Entries, entryIn(a, f))
	}
	p.Put = contentAddress(a, p.Dir)
	p.Crumbs = []page.Link{{Name: "Files", Address: a.With("path", "")}}
	for i, name := range strings.Split(strings.Trim(p.Dir, "/"), "/") {
		if name != "" {
			p.Crumbs = append(p.Crumbs, page.Link{Name: name, Address: a.With("path", "/"+strings.Join(strings.Split(strings.Trim(p.Dir, "/"), "/")[:i+1], "/"))})
		}
	}
	return p, nil
}

// thumbnailSize is the width and the height of thumbnails in pixels, at most.
const thumbnailSize = 96

// fileEntry is a file or a directory, as the list shows it.
type fileEntry struct {
	events.FileRecord
	Thumbnail string // the address of its thumbnail, if the file is an image that may have one
}

func entryIn(a *page.Ask, f events.FileRecord) fileEntry {
	e := fileEntry{FileRecord: f}
	switch kind, _, _ := mime.ParseMediaType(f.MimeType); kind { // other kinds have none
	case "image/png", "image/jpeg", "image/gif", "image/webp":
		if f.HasContent() && f.Width > 0 {
			q := url.Values{"path": {f.Path}}
			if at := a.Query("at"); at != "" {
				q.Set("at", at)
			}
			e.Thumbnail = page.LinkThread(a.Thread.ID, "/files/thumbnail?"+q.Encode())
		}
	}
	return e
}

// thumbnail is the picture that the list loads as the thumbnail of a file.
func thumbnail() page.Picture {
	return page.Picture{Path: "/threads/{thread}/files/thumbnail", Load: func(a *page.Ask) (*page.Image, error) {
		at := path.Clean("/" + a.Query("path"))
		file, err := client.Read(a.Context(), a.Client, events.StatFile{ThreadID: a.Thread.ID, Path: at, At: a.At})
		if err != nil {
			return nil, err
		}
		return &page.Image{Tag: file.Digest, Make: func() (string, []byte, error) {
			small, err := client.Read(a.Context(), a.Client, events.GetThumbnail{ThreadID: a.Thread.ID, Path: at, At: a.At, Size: new(int64(thumbnailSize))})
			if err != nil {
				return "", nil, err
			}
			content, err := base64.StdEncoding.DecodeString(small.Data)
			return small.MimeType, content, err
		}}, nil
	}}
}

// look adds the preview of a file.
func (p *filePage) look(a *page.Ask, record *events.FileRecord, texts *markdown.Renderer) error {
	p.File = record
	if record.External {
		return nil
	}
	p.Address = contentAddress(a, record.Path)
	kind, _, _ := mime.ParseMediaType(record.MimeType) // other kinds have no preview
	if strings.HasPrefix(kind, "image/") && kind != "image/svg+xml" {
		p.Image = true
		return nil
	}
	if record.Size > previewBytes {
		return nil
	}
	var content []byte
	for piece, err := range a.Client.Files(a.Thread.ID).ContentFrom(a.Context(), record, 0) {
		if err != nil {
			return err
		}
		content = append(content, piece...)
	}
	if utf8.Valid(content) {
		p.Text = texts.Code(string(content), strings.TrimPrefix(path.Ext(record.Path), "."))
	}
	return nil
}

// contentAddress returns the address of a file's content.
func contentAddress(a *page.Ask, file string) string {
	names := strings.Split(strings.Trim(file, "/"), "/")
	for i := range names {
		names[i] = url.PathEscape(names[i])
	}
	address := "/api/threads/" + url.PathEscape(a.Thread.ID) + "/files/" + strings.Join(names, "/")
	if at := a.Query("at"); at != "" {
		address += "?at=" + url.QueryEscape(at)
	}
	return address
}

func fileActions() []page.Action {
	return []page.Action{
		{Path: "/threads/{thread}/files", Do: uploadFile},
		{Path: "/threads/{thread}/files/delete", Do: deleteFile},
	}
}

// uploadFile writes the files of a form, while it reads them.
func uploadFile(a *page.Ask) (string, error) {
	form, err := a.Request.MultipartReader()
	if err != nil {
		return "", events.Invalid("/file", "the form has no file: %w", err)
	}
	dir := "/"
	for {
		field, err := form.NextPart()
		if errors.Is(err, io.EOF) {
			return a.ThreadLink("/files") + "?path=" + url.QueryEscape(dir), nil
		}
		if err != nil {
			return "", err
		}
		if field.FormName() == "dir" {
			raw, err := io.ReadAll(io.LimitReader(field, 4096))
			if err != nil {
				return "", err
			}
			dir = path.Clean("/" + string(raw))
			continue
		}
		if err := writeUpload(a, dir, field); err != nil {
			return "", err
		}
	}
}

func writeUpload(a *page.Ask, dir string, field *multipart.Part) error {
	name := path.Base(strings.ReplaceAll(field.FileName(), `\`, "/"))
	if field.FileName() == "" || name == "." || name == "/" {
		return events.Invalid("/file", "no file was chosen")
	}
	kind := cmp.Or(mime.TypeByExtension(path.Ext(name)), field.Header.Get("Content-Type"))
	_, err := a.Client.Files(a.Thread.ID).WriteFileFrom(a.Context(), path.Join(dir, name), field, kind, events.WriteFileOptions{})
	return err
}

func deleteFile(a *page.Ask) (string, error) {
	file := path.Clean("/" + a.Form("path"))
	err := a.Client.Files(a.Thread.ID).UnlinkFile(a.Context(), file)
	return a.ThreadLink("/files") + "?path=" + url.QueryEscape(path.Dir(file)), err
}
