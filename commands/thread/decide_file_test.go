package thread

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"
	"testing"

	"github.com/skein-threads/skein/events"
)

// stored is a write of content that is in the store.
func stored(path, content string) events.WriteFile {
	sum := sha256.Sum256([]byte(content))
	return events.WriteFile{Path: path, Stored: &events.FileContent{
		Digest: hex.EncodeToString(sum[:]), Size: int64(len(content)), MimeType: "text/plain; charset=utf-8",
	}}
}

func digestOf(content string) string { return stored("", content).Stored.Digest }

func typesOf(made []events.Event) string {
	var out []string
	for _, e := range made {
		out = append(out, string(e.Type))
	}
	return strings.Join(out, " ")
}

// SA-112: parents are made as needed, in the same commit, and a path that holds
// a file is written over; its first time stays.
func TestWriteFile_CreatesParentsAndOverwrites(t *testing.T) {
	k := begun(t)
	made := k.do(stored("a/b/c.txt", "one"))
	if got := typesOf(made); got != "directory.created directory.created file.written" {
		t.Fatalf("made %s", got)
	}
	first := made[2].Time
	if d := made[0].Data.(events.DirectoryCreated); d.Path != "/a" {
		t.Errorf("the first is %s", d.Path)
	}
	made = k.do(stored("/a//b/c.txt", "two"))
	d := made[0].Data.(events.FileWritten)
	if len(made) != 1 || d.Path != "/a/b/c.txt" || d.Digest != digestOf("two") || d.Since != int64(first) {
		t.Errorf("made %s: %+v", typesOf(made), d)
	}
	made = k.do(events.CreateDirectory{Path: "/x/y"})
	if got := typesOf(made); got != "directory.created directory.created" {
		t.Errorf("made %s", got)
	}
}

// SA-116, SA-117, SA-118: what changes nothing makes no event and is not
// refused; what stands in the way is a typed refusal, and changes nothing.
func TestFiles_DirectoriesAndFilesConflict(t *testing.T) {
	k := begun(t)
	k.do(stored("/d/f", "x"))
	for _, nothing := range []any{
		events.DeleteFile{Path: "/none"}, events.DeleteFile{Path: "/none/at/all"}, events.CreateDirectory{Path: "/d/"},
		events.CreateDirectory{Path: "/"}, events.RemoveDirectory{Path: "/none"},
	} {
		if made := k.do(nothing); len(made) != 0 {
			t.Errorf("%+v made %s", nothing, typesOf(made))
		}
	}
	for _, c := range []struct {
		data       any
		entity, id string
	}{
		{stored("/d", "x"), "directory", "/d"},
		{stored("/", "x"), "directory", "/"},
		{stored("/d/f/g", "x"), "file", "/d/f"},
		{events.DeleteFile{Path: "/d"}, "directory", "/d"},
		{events.DeleteFile{Path: "/"}, "directory", "/"},
		{events.CreateDirectory{Path: "/d/f"}, "file", "/d/f"},
		{events.CreateDirectory{Path: "/d/f/g"}, "file", "/d/f"},
		{events.RemoveDirectory{Path: "/d/f"}, "file", "/d/f"},
		{events.RemoveDirectory{Path: "/d"}, "directory", "/d"},
	} {
		wantRefusal(t, k.refuse(c.data), events.IllegalTransition, events.ErrorDetails{Entity: c.entity, ID: c.id})
	}
	wantRefusal(t, k.refuse(events.RemoveDirectory{Path: "/"}), events.InvalidRequest, events.ErrorDetails{Path: "/data/path"})
	wantRefusal(t, k.refuse(events.WriteFile{Path: "/y"}), events.InvalidRequest, events.ErrorDetails{Path: "/data/content"})
	wantRefusal(t, k.refuse(stored("/d/../f", "x")), events.InvalidRequest, events.ErrorDetails{Path: "/data/path"})
	k.do(stored("/g", "x"))
	if root, _ := k.state.file("/"); root.Held != 2 {
		t.Errorf("the root holds %d entries", root.Held)
	}
	k.do(events.DeleteFile{Path: "/g"})
	if root, _ := k.state.file("/"); root.Held != 1 {
		t.Errorf("the root holds %d entries", root.Held)
	}
	k.do(events.DeleteFile{Path: "/d/f"})
	if got := typesOf(k.do(events.RemoveDirectory{Path: "/d"})); got != "directory.removed" {
		t.Errorf("made %s", got)
	}
	if len(k.state.files) != 0 || k.state.NumFiles != 0 {
		t.Errorf("%d paths and %d files are left: %v", len(k.state.files), k.state.NumFiles, k.state.files)
	}
}

// Parts of one thread.commit see each other, and a refused one leaves nothing.
func TestFiles_InOneCommit(t *testing.T) {
	k := begun(t)
	made := k.do(events.CreateDirectory{Path: "/d"}, stored("/d/f", "x"), events.DeleteFile{Path: "/d/f"}, events.RemoveDirectory{Path: "/d"}, stored("/d", "now a file"))
	if got := typesOf(made); got != "directory.created file.written file.deleted directory.removed file.written" {
		t.Fatalf("made %s", got)
	}
	if f, ok := k.state.file("/d"); !ok || f.Dir || k.state.NumFiles != 1 {
		t.Errorf("%+v %v, %d files", f, ok, k.state.NumFiles)
	}
	c := k.command(stored("/e", "x"), events.DeleteFile{Path: "/e"}, events.RemoveDirectory{Path: "/d"})
	if _, err := k.try(c); err == nil {
		t.Error("a file was removed as a directory")
	}
	if _, ok := k.state.file("/e"); ok {
		t.Error("a refused commit left a file")
	}
}

// A writer that says what it saw is refused if somebody else was there first.
func TestWriteFile_ExpectedDigest(t *testing.T) {
	k := begun(t)
	with := func(w events.WriteFile, digest string) events.WriteFile {
		w.ExpectedDigest = &digest
		return w
	}
	conflict := events.ErrorDetails{Entity: "file", ID: "/f"}
	wantRefusal(t, k.refuse(with(stored("/f", "1"), digestOf("0"))), events.VersionConflict, conflict)
	k.do(with(stored("/f", "1"), ""))
	wantRefusal(t, k.refuse(with(stored("/f", "2"), "")), events.VersionConflict, conflict)
	k.do(with(stored("/f", "2"), digestOf("1")))
	wantRefusal(t, k.refuse(with(stored("/f", "3"), digestOf("1"))), events.VersionConflict, conflict)
	one := digestOf("1")
	wantRefusal(t, k.refuse(events.DeleteFile{Path: "/f", ExpectedDigest: &one}), events.VersionConflict, conflict)
}

// SA-130: an external file is a record: no content, no digest.
func TestWriteFile_ExternalIsARecord(t *testing.T) {
	k := begun(t)
	made := k.do(events.WriteFile{Path: "/v.mp4", External: "s3://bucket/v.mp4", Size: to(int64(7)), MimeType: "video/mp4"})
	d := made[0].Data.(events.FileWritten)
	if d.External != "s3://bucket/v.mp4" || d.Digest != "" || d.Size != 7 {
		t.Errorf("%+v", d)
	}
	w := stored("/f", "12345")
	w.Size = to(int64(5))
	k.do(w)
	w.Size = to(int64(7))
	wantRefusal(t, k.refuse(w), events.InvalidRequest, events.ErrorDetails{Path: "/data/size"})
}

// The state that comes back from a snapshot decides as the one that was kept;
// the files of a deleted thread are forgotten.
func TestFiles_SurviveEncoding(t *testing.T) {
	k := begun(t)
	for i := range 20 {
		k.do(stored("/d/"+strconv.Itoa(i%7), strconv.Itoa(i)))
	}
	k.do(events.DeleteFile{Path: "/d/3"})
	raw, err := k.state.Encode()
	if err != nil {
		t.Fatal(err)
	}
	again, err := DecodeState(raw)
	if err != nil {
		t.Fatal(err)
	}
	if again.Bytes() != k.state.Bytes() || again.NumFiles != 7 {
		t.Errorf("%d bytes became %d; %d files", k.state.Bytes(), again.Bytes(), again.NumFiles)
	}
	k.state = again
	wantRefusal(t, k.refuse(events.RemoveDirectory{Path: "/d"}), events.IllegalTransition, events.ErrorDetails{Entity: "directory", ID: "/d"})
	k.do(events.DeleteThread{})
	if len(k.state.files) != 0 || k.state.NumFiles != 0 {
		t.Error("a deleted thread has files")
	}
}

// What a file is said to be stands in its event: as the caller says, or else as the
// content shows, or else as bytes.
func TestWriteFile_Event(t *testing.T) {
	k := begun(t)
	content := &events.FileContent{Digest: digestOf("x"), Size: 1, MimeType: "image/png", Width: 3, Height: 4}
	for _, c := range []struct {
		write events.WriteFile
		want  events.FileWritten
	}{
		{events.WriteFile{Path: "/a", Stored: content},
			events.FileWritten{Path: "/a", Digest: content.Digest, Size: 1, MimeType: "image/png", Width: 3, Height: 4}},
		{events.WriteFile{Path: "/b", Stored: content, MimeType: "image/x", Width: to(int64(5)), Height: to(int64(6)), Metadata: raw(`{"a":1}`)},
			events.FileWritten{Path: "/b", Digest: content.Digest, Size: 1, MimeType: "image/x", Width: 5, Height: 6, Metadata: raw(`{"a":1}`)}},
		{events.WriteFile{Path: "/c", Stored: &events.FileContent{Digest: content.Digest, Size: 1}},
			events.FileWritten{Path: "/c", Digest: content.Digest, Size: 1, MimeType: "application/octet-stream"}},
		{events.WriteFile{Path: "/d", External: "s3://x", MimeType: "video/mp4", Width: to(int64(5)), Height: to(int64(6)), Size: to(int64(7))},
			events.FileWritten{Path: "/d", External: "s3://x", MimeType: "video/mp4", Width: 5, Height: 6, Size: 7}},
		{events.WriteFile{Path: "/e", External: "s3://x"},
			events.FileWritten{Path: "/e", External: "s3://x", MimeType: "application/octet-stream"}},
	} {
		want(t, k.do(c.write), fact{events.FileWrittenType, threadID, "", c.want})
	}
}

// A thread has at most so many files and directories; writing over one takes no
// more, and the last that is allowed is.
func TestWriteFile_Limit(t *testing.T) {
	k := begun(t)
	k.do(stored("/d/f", "x"))
	for _, c := range []struct {
		free  int64
		data  any
		full  bool
		found int
	}{
		{1, stored("/g", "x"), false, 1},
		{0, stored("/g", "x"), true, 0},
		{0, stored("/d/f", "y"), false, 1},
		{1, stored("/h/g", "x"), true, 0}, // the directory takes the place
		{2, stored("/h/g", "x"), false, 2},
		{0, events.CreateDirectory{Path: "/h"}, true, 0},
		{1, events.CreateDirectory{Path: "/h"}, false, 1},
		{1, events.CreateDirectory{Path: "/h/i"}, true, 0},
	} {
		s := mustDecode(t, encoded(t, k.state))
		s.NumFiles = maxFiles - c.free
		made, err := Decide(s, k.command(c.data))
		if full := err != nil && events.AsError(err).Code == events.PayloadTooLarge; full != c.full || len(made) != c.found {
			t.Errorf("%+v with room for %d: %d events, %v", c.data, c.free, len(made), err)
		}
	}
}
