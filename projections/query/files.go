package query

import (
	"context"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/projections/documents"
)

// Contents reads the contents of files. Package files implements it.
type Contents interface {
	// Grep searches files of a tenant, which all have content, in their order.
	Grep(ctx context.Context, tenant string, files []events.FileRecord, pattern string, limit int) (*events.GrepList, error)
	// Thumbnail returns a small picture of a file with content. The error is a not_found if the
	// file is not an image that can be decoded.
	Thumbnail(ctx context.Context, tenant string, file *events.FileRecord, size int) (*events.Thumbnail, error)
}

// Default and maximum sizes of answers.
const (
	findUsual  = 10_000
	grepUsual  = 1000
	thumbUsual = 256

	globParts = 8    // each part multiplies the work
	globWays  = 1000 // of the alternatives in braces, one for each brace
)

// statFile returns the record at a path.
func statFile(a *asking, d events.StatFile) (*events.FileRecord, error) {
	at, err := events.FilePath(d.Path)
	if err != nil {
		return nil, err
	}
	if err := a.about(d.ThreadID, d.At, d.Fresh); err != nil {
		return nil, err
	}
	return fileAt(a, d.ThreadID, at)
}

func fileAt(a *asking, ref, at string) (*events.FileRecord, error) {
	if at == events.FileRoot {
		return fileRoot(a, ref)
	}
	got, err := a.source.get(a.ctx, a.place(documents.Files, documents.FileID(at)))
	if err != nil {
		return nil, err
	}
	if got[0].doc == nil {
		return nil, a.missing("file", ref, at)
	}
	return got[0].doc.(*events.FileRecord), nil
}

// fileRoot returns the record of the root directory, which every thread has.
func fileRoot(a *asking, ref string) (*events.FileRecord, error) {
	thread, err := a.ofThread(ref)
	if err != nil {
		return nil, err
	}
	made, err := events.ParseTime(thread.CreatedAt)
	if err != nil {
		return nil, err
	}
	root := events.DirectoryCreated{Path: events.FileRoot}.Record(thread.ID, made)
	root.Stamp = thread.Stamp
	return &root, nil
}

// listFiles returns the entries of a directory, by name.
func listFiles(a *asking, d events.ListFiles) (*events.FileList, error) {
	dir, err := events.FilePath(d.Path)
	if err != nil {
		return nil, err
	}
	if err := a.about(d.ThreadID, d.At, d.Fresh); err != nil {
		return nil, err
	}
	if _, err := a.threadOfIndex(d.ThreadID); err != nil {
		return nil, err
	}
	names, err := namesIn(a, dir)
	if err != nil {
		return nil, err
	}
	if len(names) == 0 { // the directory is empty or missing, or a file
		record, err := fileAt(a, d.ThreadID, dir)
		if err != nil {
			return nil, err
		}
		if !record.IsDirectory {
			e := events.Errorf(events.IllegalTransition, "%s is a file, and holds no others", dir)
			e.Details = &events.ErrorDetails{Entity: "file", ID: dir}
			return nil, e
		}
	}
	query := mark("file.list", a.name(), dir)
	if d.Cursor != "" {
		last, err := decodeKeyCursor(d.Cursor, query)
		if err != nil {
			return nil, err
		}
		at, there := slices.BinarySearch(names, last)
		if names = names[at:]; there {
			names = names[1:]
		}
	}
	list := &events.FileList{Entries: []events.FileRecord{}}
	most, room := limit(d.Limit, len(names)), a.answerBytes()
	for len(names) > 0 {
		part := names[:min(len(names), max(most-len(list.Entries)+1, 1), documentsAtOnce)]
		names = names[len(part):]
		places := make([]documents.Place, len(part))
		for i, name := range part {
			places[i] = a.place(documents.Files, documents.FileIDIn(dir, name))
		}
		got, err := a.source.get(a.ctx, places...)
		if err != nil {
			return nil, err
		}
		for _, f := range got {
			if f.doc == nil { // removed meanwhile
				continue
			}
			room -= f.bytes + 1
			if n := len(list.Entries); n > 0 && (room < 0 || n == most) {
				list.NextCursor = encodeKeyCursor(query, list.Entries[n-1].Name)
				return list, nil
			}
			list.Entries = append(list.Entries, *f.doc.(*events.FileRecord))
		}
	}
	return list, nil
}

// namesIn returns the names in a directory, in their order.
func namesIn(a *asking, dir string) ([]string, error) {
	pages, err := a.indexed(documents.NamesIn(dir))
	if err != nil {
		return nil, err
	}
	var names []string
	for _, p := range pages {
		names = append(names, p.Names...)
	}
	slices.Sort(names)
	return names, nil
}

// filesOf returns all files and directories of the thread, by path.
func filesOf(a *asking, ref string, at *events.At, fresh events.Fresh) ([]events.FileRecord, error) {
	if err := a.about(ref, at, fresh); err != nil {
		return nil, err
	}
	got, err := a.source.find(a.ctx, documents.Files, a.name()+".*.*")
	if err != nil {
		return nil, err
	}
	if len(got) == 0 {
		_, err := a.ofThread(ref)
		return nil, err
	}
	list := make([]events.FileRecord, len(got))
	for i, f := range got {
		list[i] = *f.doc.(*events.FileRecord)
	}
	slices.SortFunc(list, func(a, b events.FileRecord) int { return strings.Compare(a.Path, b.Path) })
	return list, nil
}

// countFiles counts the files and directories of the thread.
func countFiles(a *asking, d events.CountFiles) (*events.FileStats, error) {
	list, err := filesOf(a, d.ThreadID, d.At, d.Fresh)
	if err != nil {
		return nil, err
	}
	stats := &events.FileStats{}
	for i := range list {
		if list[i].IsDirectory {
			stats.DirectoryCount++
			continue
		}
		stats.FileCount++
		stats.TotalSize += list[i].Size
	}
	return stats, nil
}

// findFiles returns the paths of the files that match a glob. Directories are found
// by a pattern that ends in a slash.
func findFiles(a *asking, d events.FindFiles) (*events.FindList, error) {
	match, err := globOf(d.Pattern, "/pattern")
	if err != nil {
		return nil, err
	}
	list, err := filesOf(a, d.ThreadID, d.At, d.Fresh)
	if err != nil {
		return nil, err
	}
	found := &events.FindList{Paths: []string{}}
	most, room := limit(d.Limit, findUsual), a.answerBytes()
	directories := strings.HasSuffix(d.Pattern, "/")
	for i := range list {
		if err := a.ctx.Err(); err != nil {
			return nil, err
		}
		if list[i].IsDirectory != directories || !match(list[i].Path) {
			continue
		}
		if room -= len(list[i].Path) + 8; room < 0 || len(found.Paths) == most {
			found.Truncated = true
			break
		}
		found.Paths = append(found.Paths, list[i].Path)
	}
	return found, nil
}

// globOf parses a glob, which is relative to the root, with or without a leading slash.
func globOf(glob, field string) (func(string) bool, error) {
	glob = strings.TrimPrefix(strings.TrimSuffix(glob, "/"), "/")
	if glob == "" {
		glob = "**"
	}
	if strings.Count(glob, "{") > globParts || strings.Count(glob, "**") > globParts {
		return nil, events.Invalid(field, "a glob has at most %d braces and %d times **", globParts, globParts)
	}
	if waysOf(glob) > globWays {
		return nil, events.Invalid(field, "the alternatives in the braces of a glob combine in at most %d ways; give several globs", globWays)
	}
	if !doublestar.ValidatePattern(glob) {
		return nil, events.Invalid(field, "%.80q is not a glob: a bracket or a brace is not closed, or a backslash is at its end", glob)
	}
	return func(p string) bool { return doublestar.MatchUnvalidated(glob, p[1:]) }, nil
}

// waysOf returns an upper bound of the number of combinations of the alternatives in a glob's
// braces: the matcher may try them all. It stops counting a little over globWays.
func waysOf(glob string) int {
	ways := 1
	var open []int // alternatives of each brace that is not closed
	for i := 0; i < len(glob); i++ {
		switch c := glob[i]; {
		case c == '\\':
			i++
		case c == '{':
			open = append(open, 1)
		case c == ',' && len(open) > 0:
			open[len(open)-1]++
		case c == '}' && len(open) > 0:
			ways = min(ways*open[len(open)-1], globWays+1)
			open = open[:len(open)-1]
		}
	}
	return ways
}

// grepFiles searches the content of files.
func grepFiles(a *asking, d events.GrepFiles) (*events.GrepList, error) {
	match, err := globOf(d.Glob, "/glob")
	if err != nil {
		return nil, err
	}
	if a.cfg.Contents == nil {
		return nil, events.Errorf(events.Unavailable, "this service keeps no files")
	}
	list, err := filesOf(a, d.ThreadID, d.At, d.Fresh)
	if err != nil {
		return nil, err
	}
	list = slices.DeleteFunc(list, func(f events.FileRecord) bool { return a.ctx.Err() != nil || !f.HasContent() || !match(f.Path) })
	if err := a.ctx.Err(); err != nil {
		return nil, err
	}
	return a.cfg.Contents.Grep(a.ctx, a.tenant, list, d.Pattern, limit(d.Limit, grepUsual))
}

// getThumbnail returns a small picture of an image.
func getThumbnail(a *asking, d events.GetThumbnail) (*events.Thumbnail, error) {
	file, err := statFile(a, events.StatFile{ThreadID: d.ThreadID, Path: d.Path, At: d.At, Fresh: d.Fresh})
	if err != nil {
		return nil, err
	}
	if a.cfg.Contents == nil || !file.HasContent() {
		return nil, events.Missing("thumbnail", file.Path)
	}
	return a.cfg.Contents.Thumbnail(a.ctx, a.tenant, file, limit(d.Size, thumbUsual))
}
