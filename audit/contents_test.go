package audit

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/files"
)

// withFiles makes threads with files, two of which share a content, and one of which
// has several pieces.
func withFiles(h *house) {
	h.t.Helper()
	store, err := files.Open(h.ctx, h.log)
	if err != nil {
		h.t.Fatal(err)
	}
	large, err := store.Keep(h.ctx, "acme", bytes.Repeat([]byte("0123456789abcdef"), events.FilePieceBytes/16+7))
	if err != nil {
		h.t.Fatal(err)
	}
	for _, id := range []string{threadOne, threadTwo} {
		h.do("thread.create", fmt.Sprintf(`{"threadId":%q,"data":{}}`, id))
		h.do("file.write", fmt.Sprintf(`{"threadId":%q,"data":{"path":"/hello","content":"aGVsbG8="}}`, id))
		h.do("file.write", fmt.Sprintf(`{"threadId":%q,"data":{"path":"/empty","content":""}}`, id))
		h.do("file.write", fmt.Sprintf(`{"threadId":%q,"data":{"path":"/own","content":"%s"}}`, id, base64.StdEncoding.EncodeToString([]byte(id))))
	}
	// As an upload commits it.
	h.forge(threadTwo, events.FileWrittenType, threadTwo, events.FileWritten{Path: "/large", Digest: large.Digest, Size: large.Size, MimeType: large.MimeType})
}

// An export takes the contents of files along, each once, and an import brings them
// back; run again, it adds nothing.
func TestExport_TakesContentsAlong(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	withFiles(h)
	file := h.export(ExportOptions{Tenant: "acme", Contents: true})
	report, err := ReadFile(strings.NewReader(file), h.validator, ReadOptions{})
	if err != nil || report.Manifest.Contents < 3 || !report.Header.Contents {
		t.Fatalf("%+v, %v", report, err)
	}
	if n := strings.Count(file, `"offset":0`); int64(n) != report.Manifest.Contents || strings.Count(file, `{"content":`) != n+1 {
		t.Errorf("%d contents in %d lines, and the manifest says %d", n, strings.Count(file, `{"content":`), report.Manifest.Contents)
	}
	if without := h.export(ExportOptions{Tenant: "acme"}); strings.Contains(without, `{"content":`) {
		t.Error("an export without contents has some")
	}

	other := newHouse(t)
	for _, want := range []int64{report.Manifest.Contents, 0} {
		sum, _, err := other.importFile(file, ReadOptions{})
		if err != nil || sum.Contents != want || sum.Different+sum.Absent != 0 {
			t.Fatalf("%+v, %v", sum, err)
		}
	}
	contents := other.contents()
	if found, _ := other.verify(Options{Tenant: "acme", LogOnly: true, Checks: []Check{contents}}); len(found) != 0 || contents.Read() != report.Manifest.Contents {
		t.Errorf("%d contents were read: %v", contents.Read(), found)
	}
	if again := other.export(ExportOptions{Tenant: "acme", Contents: true}); strings.Count(again, `{"content":`) != strings.Count(file, `{"content":`) {
		t.Error("the export of what was imported has other contents")
	}
	if _, err := Export(h.ctx, h.log, &bytes.Buffer{}, ExportOptions{Chains: true, Contents: true}); err == nil {
		t.Error("chains were exported with contents")
	}
}

// contents returns the check of contents.
func (h *house) contents() *Contents {
	h.t.Helper()
	contents, err := NewContents(h.ctx, h.log)
	if err != nil {
		h.t.Fatal(err)
	}
	return contents
}

// A file with other contents than its commits name is refused at the line at fault.
func TestReadFile_RefusesOtherContents(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	withFiles(h)
	lines := strings.SplitAfter(h.export(ExportOptions{Tenant: "acme", Contents: true}), "\n")
	var at []int // the lines with contents
	large := -1  // the first piece of the large one
	for i, line := range lines {
		if strings.HasPrefix(line, `{"content":`) {
			at = append(at, i)
			if len(line) > events.FilePieceBytes {
				large = i
			}
		}
	}
	if large < 0 {
		t.Fatal("no content has two pieces")
	}
	without := func(i int) []string { return append(append([]string{}, lines[:i]...), lines[i+1:]...) }
	with := func(i int, line string) []string {
		return append(append(append([]string{}, lines[:i]...), line), lines[i:]...)
	}
	replaced := func(i int, old, with string) []string {
		out := append([]string{}, lines...)
		out[i] = strings.Replace(out[i], old, with, 1)
		if out[i] == lines[i] {
			t.Fatalf("there is no %s in %.200s", old, lines[i])
		}
		return out
	}
	for name, c := range map[string]struct {
		file []string
		want string
	}{
		"a byte altered":           {replaced(large, `"piece":"M`, `"piece":"N`), "altered"},
		"the last piece left out":  {without(large + 1), "belongs"},
		"the first piece left out": {without(large), "lines were left out"},
		"a content left out":       {without(at[len(at)-1]), "is not in the file"},
		"a content twice":          {with(at[0]+1, lines[at[0]]), "reordered"},
		"that nobody names":        {with(at[0], `{"content":"ef2d127de37b942baad06145e54b0c619a1f22327b2ebbcfbec78f5564afe39d","tenant":"acme","size":1,"offset":0,"piece":"NQ=="}`+"\n"), ""},
		"of another tenant":        {replaced(at[0], `"tenant":"acme"`, `"tenant":"evil"`), "tenant"},
		"where none is announced":  {replaced(0, `,"contents":true`, ``), "says that it has none"},
		"after the last thread":    {with(len(lines)-2, lines[at[0]]), "that no thread names"},
	} {
		var refused *FileError
		_, err := ReadFile(strings.NewReader(strings.Join(c.file, "")), h.validator, ReadOptions{})
		if !errors.As(err, &refused) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A content that cannot be read is named in the file, which has all else; the import
// says so, and the audit finds it.
func TestExport_NamesContentsThatCannotBeRead(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	withFiles(h)
	if err := h.stream("OBJ_thread_files").Purge(h.ctx); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	told := 0
	manifest, err := Export(h.ctx, h.log, &out, ExportOptions{Tenant: "acme", Contents: true, Absent: func(string, string, error) { told++ }})
	if err != nil || manifest.Absent == 0 || int64(told) != manifest.Absent {
		t.Fatalf("%d were told: %+v, %v", told, manifest, err)
	}
	other := newHouse(t)
	sum, _, err := other.importFile(out.String(), ReadOptions{})
	if err != nil || sum.Absent != manifest.Absent || sum.Imported == 0 {
		t.Fatalf("%+v, %v", sum, err)
	}
	if found, _ := other.verify(Options{Tenant: "acme", LogOnly: true, Checks: []Check{other.contents()}}); int64(len(found)) < manifest.Absent || found[0].Kind != KindContent {
		t.Errorf("%v", found)
	}
}
