package server_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"iter"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/natstest"
	"github.com/skein-threads/skein/server"
)

// onBoth runs a test with the files of a new thread: with the embedded server, and with
// a standalone one.
func onBoth(t *testing.T, test func(t *testing.T, w *world, f *client.Files)) {
	t.Helper()
	for name, cfg := range map[string]func(*testing.T) server.Config{
		"embedded": store,
		"separate": func(t *testing.T) server.Config {
			return server.Config{NATS: natstest.Start(t).URL(), HTTPListen: "127.0.0.1:0"}
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := startWorld(t, cfg(t), "acme")
			test(t, w, w.newFiles())
		})
	}
}

// newFiles returns the files of a new thread.
func (w *world) newFiles() *client.Files {
	w.t.Helper()
	return w.Files(must(w.Send(w.t.Context(), "", events.CreateThread{}))(w.t).ThreadID)
}

// noise returns bytes that do not repeat.
func noise(n int, seed byte) []byte {
	data := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{seed}).Read(data)
	return data
}

func sum(data []byte) string {
	s := sha256.Sum256(data)
	return hex.EncodeToString(s[:])
}

func refused(t *testing.T, err error, code events.Code) {
	t.Helper()
	if err == nil || events.AsError(err).Code != code {
		t.Errorf("%v, want %s", err, code)
	}
}

// SA-96, SA-97, SA-98, SA-99, SA-100, SA-101, SA-102, SA-103, SA-104, SA-105,
// SA-106, SA-107: the record of a file, as writing and as asking give it.
func TestFileRecord(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, _ *world, f *client.Files) {
		ctx := t.Context()
		before := time.Now().UnixMicro()
		made := must(f.WriteFile(ctx, "data/photo.bin", []byte("hello"), "application/x-thing", client.WriteFileOptions{
			Width: 1920, Height: 1080, Metadata: events.JSON(`{"alt":"a photo","n":[1]}`),
		}))(t)
		after := time.Now().UnixMicro()
		asked := must(f.StatFile(ctx, "/data/photo.bin"))(t)
		a, b := must(json.Marshal(made, json.Deterministic(true)))(t), must(json.Marshal(asked, json.Deterministic(true)))(t)
		if string(a) != string(b) {
			t.Errorf("written %s\nasked   %s", a, b)
		}
		if made.Path != "/data/photo.bin" || made.Name != "photo.bin" || made.MimeType != "application/x-thing" || made.Size != 5 || made.IsDirectory ||
			made.Width != 1920 || made.Height != 1080 || made.Storage != "sha256:"+sum([]byte("hello")) || made.Digest != sum([]byte("hello")) {
			t.Errorf("%+v", made)
		}
		if string(made.Metadata) != `{"alt":"a photo","n":[1]}` {
			t.Errorf("metadata %s", made.Metadata)
		}
		if made.CreatedAt != made.UpdatedAt || made.CreatedAt < before-int64(time.Minute/time.Microsecond) || made.CreatedAt > after+int64(time.Minute/time.Microsecond) {
			t.Errorf("made at %d us, between %d and %d", made.CreatedAt, before, after)
		}
		var fields map[string]events.JSON
		if err := json.Unmarshal(a, &fields); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"path", "name", "mimeType", "storage", "size", "isDirectory", "metadata", "width", "height", "createdAt", "updatedAt"} {
			if _, ok := fields[name]; !ok {
				t.Errorf("%s is missing in %s", name, a)
			}
		}
		dir := must(f.StatFile(ctx, "/data"))(t)
		if !dir.IsDirectory || dir.Path != "/data" || dir.Name != "data" || dir.Size != 0 || dir.MimeType != events.DirectoryType {
			t.Errorf("%+v", dir)
		}
		again := must(f.WriteFile(ctx, "/data/photo.bin", []byte("again"), "", client.WriteFileOptions{}))(t)
		if again.CreatedAt != made.CreatedAt || again.UpdatedAt <= made.UpdatedAt || again.MimeType != "text/plain; charset=utf-8" || again.Metadata != nil {
			t.Errorf("written over: %+v", again)
		}
	})
}

// SA-112, SA-113, SA-114: what is written is read, whatever its size; writing
// over replaces; parents are made; what is not there is nil.
func TestWriteAndReadFile(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, _ *world, f *client.Files) {
		ctx := t.Context()
		for _, size := range []int{0, 1, 4096, events.InlineFileBytes, events.InlineFileBytes + 1, events.FilePieceBytes, events.FilePieceBytes + 1, 3*events.FilePieceBytes - 7} {
			data := noise(size, byte(size))
			path := fmt.Sprintf("/deep/er/%d.bin", size)
			made := must(f.WriteFile(ctx, path, data, "application/octet-stream", client.WriteFileOptions{}))(t)
			got := must(f.ReadFile(ctx, path))(t)
			if !bytes.Equal(got, data) || got == nil || made.Size != int64(size) {
				t.Errorf("%d bytes came back as %d", size, len(got))
			}
		}
		must(f.WriteFileFrom(ctx, "/one", strings.NewReader("first"), "", client.WriteFileOptions{}))(t)
		must(f.WriteFile(ctx, "one", []byte("second"), "", client.WriteFileOptions{}))(t)
		if got := must(f.ReadFile(ctx, "/one"))(t); string(got) != "second" {
			t.Errorf("%q", got)
		}
		empty := must(f.WriteFileFrom(ctx, "/empty", strings.NewReader(""), "", client.WriteFileOptions{}))(t)
		if got := must(f.ReadFile(ctx, "/empty"))(t); got == nil || len(got) != 0 || empty.MimeType != "application/octet-stream" {
			t.Errorf("%v %+v", got, empty)
		}
		if got, err := f.ReadFile(ctx, "/none"); got != nil || err != nil {
			t.Errorf("%v %v", got, err)
		}
		if got, err := f.StatFile(ctx, "/none"); got != nil || err != nil {
			t.Errorf("%v %v", got, err)
		}
		if _, err := f.ReadFile(ctx, "/deep"); err == nil {
			t.Error("a directory was read")
		} else {
			refused(t, err, events.IllegalTransition)
		}
	})
}

// SA-108, SA-115, SA-116, SA-117, SA-118: directories.
func TestDirectories(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, _ *world, f *client.Files) {
		ctx := t.Context()
		if root := must(f.ReaddirFile(ctx, "/"))(t); root.Entries == nil || len(root.Entries) != 0 {
			t.Errorf("%+v", root)
		}
		dir := must(f.MkdirFile(ctx, "/documents/2026"))(t)
		if !dir.IsDirectory || dir.Path != "/documents/2026" {
			t.Errorf("%+v", dir)
		}
		if again := must(f.MkdirFile(ctx, "/documents/2026/"))(t); again.CreatedAt != dir.CreatedAt || !again.IsDirectory {
			t.Errorf("made again: %+v", again)
		}
		if root := must(f.MkdirFile(ctx, "/"))(t); !root.IsDirectory || root.Path != "/" {
			t.Errorf("the root: %+v", root)
		}
		must(f.WriteFile(ctx, "/documents/b.txt", []byte("b"), "", client.WriteFileOptions{}))(t)
		must(f.WriteFile(ctx, "/a.txt", []byte("a"), "", client.WriteFileOptions{}))(t)
		names := func(path string) string {
			var out []string
			for _, e := range must(f.ReaddirFile(ctx, path))(t).Entries {
				out = append(out, fmt.Sprintf("%s:%v", e.Name, e.IsDirectory))
			}
			return strings.Join(out, " ")
		}
		if got := names("/"); got != "a.txt:false documents:true" {
			t.Error(got)
		}
		if got := names("documents/"); got != "2026:true b.txt:false" {
			t.Error(got)
		}
		_, err := f.ReaddirFile(ctx, "/none")
		refused(t, err, events.NotFound)
		_, err = f.ReaddirFile(ctx, "/a.txt")
		refused(t, err, events.IllegalTransition)

		refused(t, f.RmdirFile(ctx, "/documents"), events.IllegalTransition)
		refused(t, f.RmdirFile(ctx, "/a.txt"), events.IllegalTransition)
		refused(t, f.UnlinkFile(ctx, "/documents"), events.IllegalTransition)
		_, err = f.WriteFile(ctx, "/documents", []byte("x"), "", client.WriteFileOptions{})
		refused(t, err, events.IllegalTransition)
		_, err = f.WriteFileFrom(ctx, "/a.txt/b", strings.NewReader("x"), "", client.WriteFileOptions{})
		refused(t, err, events.IllegalTransition)
		for _, done := range []error{
			f.UnlinkFile(ctx, "/none"), f.RmdirFile(ctx, "/none"), f.UnlinkFile(ctx, "/documents/b.txt"),
			f.RmdirFile(ctx, "/documents/2026"), f.RmdirFile(ctx, "/documents"), f.UnlinkFile(ctx, "/a.txt"),
		} {
			if done != nil {
				t.Error(done)
			}
		}
		if got := names("/"); got != "" {
			t.Error(got)
		}
	})
}

// SA-109, SA-111, SA-119, SA-121: finding and counting.
func TestFindAndCountFiles(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, _ *world, f *client.Files) {
		ctx := t.Context()
		for path, text := range map[string]string{"/top.json": "1", "/a/x.json": "22", "/a/b/y.json": "333", "/a/b/z.txt": "4444", "/.h/k.json": ""} {
			must(f.WriteFile(ctx, path, []byte(text), "", client.WriteFileOptions{}))(t)
		}
		must(f.WriteExternalFile(ctx, "/a/v.mp4", "s3://bucket/v.mp4", 90, "video/mp4", client.WriteFileOptions{}))(t)
		for pattern, want := range map[string]string{
			"**/*.json": "/.h/k.json /a/b/y.json /a/x.json /top.json", "*.json": "/top.json", "/a/*": "/a/v.mp4 /a/x.json", "/a/**": "/a/b/y.json /a/b/z.txt /a/v.mp4 /a/x.json",
			"a/{x,y}.json": "/a/x.json", "**/[yz].*": "/a/b/y.json /a/b/z.txt", "none": "", "/top.json": "/top.json", "a/": "/a", "**/": "/.h /a /a/b", "**/?.mp4": "/a/v.mp4",
		} {
			if got := strings.Join(must(f.FindFiles(ctx, pattern))(t).Paths, " "); got != want {
				t.Errorf("%s: %s, want %s", pattern, got, want)
			}
		}
		for _, bad := range []string{"[", "{a", `a\`, strings.Repeat("{a,b}", 30), strings.Repeat("**/", 30)} {
			_, err := f.FindFiles(ctx, bad)
			refused(t, err, events.InvalidRequest)
		}
		if got := must(f.GetFileStats(ctx))(t); got.FileCount != 6 || got.DirectoryCount != 3 || got.TotalSize != 100 {
			t.Errorf("%+v", got)
		}
	})
}

// SA-110, SA-120: grep, RE2, lines from 1, binary and external files left out.
func TestGrepFiles(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, _ *world, f *client.Files) {
		ctx := t.Context()
		long := strings.Repeat("x", 5000) + " error"
		for path, text := range map[string]string{
			"/log/one.txt": "fine\nan error here\r\n\nerror: again", "/two.md": "no\n", "/three.md": "Error\n" + long + "\nünï error\n", "/bin": "error\x00error",
		} {
			must(f.WriteFile(ctx, path, []byte(text), "text/plain", client.WriteFileOptions{}))(t)
		}
		must(f.WriteExternalFile(ctx, "/ext.txt", "https://example.org/error", 5, "text/plain", client.WriteFileOptions{}))(t)
		show := func(l *events.GrepList) string {
			var out []string
			for _, r := range l.Results {
				for _, m := range r.Matches {
					out = append(out, fmt.Sprintf("%s:%d:%.20s", r.Path, m.Line, m.Content))
				}
			}
			return strings.Join(out, "|")
		}
		for pattern, want := range map[string]string{
			"error":            "/log/one.txt:2:an error here|/log/one.txt:4:error: again|/three.md:2:xxxxxxxxxxxxxxxxxxxx|/three.md:3:ünï error",
			"(?i)^error":       "/log/one.txt:4:error: again|/three.md:1:Error",
			"here$":            "/log/one.txt:2:an error here",
			`^$`:               "/log/one.txt:3:",
			`\bfine\b|^no$`:    "/log/one.txt:1:fine|/two.md:1:no",
			`n[^x]*e`:          "/log/one.txt:1:fine|/log/one.txt:2:an error here|/three.md:3:ünï error",
			`(a|b){2}nothing`:  "",
			`\Aerror`:          "/log/one.txt:4:error: again",
			`error\s`:          "/log/one.txt:2:an error here",
			`\x{fc}n`:          "/three.md:3:ünï error",
			`fine\nan`:         "",
			`x+ error|ï.error`: "/three.md:2:xxxxxxxxxxxxxxxxxxxx|/three.md:3:ünï error",
		} {
			if got := show(must(f.GrepFiles(ctx, pattern))(t)); got != want {
				t.Errorf("%s: %s\nwant %s", pattern, got, want)
			}
		}
		all := must(f.GrepFiles(ctx, "error"))(t)
		if all.Truncated || all.Files != 3 || len(all.Results[1].Matches[0].Content) > 1000 {
			t.Errorf("%+v", all)
		}
		two := int64(2)
		some := must(f.Grep(ctx, events.GrepFiles{Pattern: "error", Limit: &two}))(t)
		if !some.Truncated || show(some) != "/log/one.txt:2:an error here|/log/one.txt:4:error: again" {
			t.Errorf("%+v", some)
		}
		for limit, want := range []string{1: "/log/one.txt:2:an error here", 3: "/log/one.txt:2:an error here|/log/one.txt:4:error: again|/three.md:2:xxxxxxxxxxxxxxxxxxxx"} {
			if want == "" {
				continue
			}
			got := must(f.Grep(ctx, events.GrepFiles{Pattern: "error", Limit: new(int64(limit))}))(t)
			if !got.Truncated || show(got) != want {
				t.Errorf("limit %d: %+v", limit, got)
			}
		}
		if got := show(must(f.Grep(ctx, events.GrepFiles{Pattern: "error", Glob: "*.md"}))(t)); !strings.HasPrefix(got, "/three.md:2:") {
			t.Error(got)
		}
		_, err := f.GrepFiles(ctx, "(unclosed")
		refused(t, err, events.InvalidRequest)
	})
}

// SA-122: thumbnails of PNG, JPEG, GIF; dimensions filled in on write.
func TestThumbnails(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, _ *world, f *client.Files) {
		ctx := t.Context()
		picture := image.NewRGBA(image.Rect(0, 0, 600, 300))
		for i := range picture.Pix {
			picture.Pix[i] = byte(i)
		}
		for i := 3; i < len(picture.Pix); i += 4 {
			picture.Pix[i] = 255
		}
		var asPNG, asJPEG, asGIF bytes.Buffer
		small := image.NewPaletted(image.Rect(0, 0, 20, 40), []color.Color{color.Black, color.White, color.Transparent})
		if err := errors.Join(png.Encode(&asPNG, picture), jpeg.Encode(&asJPEG, picture, nil), gif.Encode(&asGIF, small, nil)); err != nil {
			t.Fatal(err)
		}
		for path, c := range map[string]struct {
			data          []byte
			width, height int
			thumb         image.Point
		}{
			"/a.png": {asPNG.Bytes(), 600, 300, image.Pt(256, 128)}, "/b": {asJPEG.Bytes(), 600, 300, image.Pt(256, 128)}, "/c.gif": {asGIF.Bytes(), 20, 40, image.Pt(20, 40)},
		} {
			record := must(f.WriteFile(ctx, path, c.data, "", client.WriteFileOptions{}))(t)
			if record.Width != int64(c.width) || record.Height != int64(c.height) || !strings.HasPrefix(record.MimeType, "image/") {
				t.Errorf("%s: %+v", path, record)
			}
			thumb := must(f.GetFileThumbnail(ctx, path))(t)
			got, _, err := image.Decode(bytes.NewReader(thumb))
			if err != nil || got.Bounds().Size() != c.thumb {
				t.Errorf("%s: %v %v", path, got, err)
			}
		}
		must(f.WriteFile(ctx, "/text", []byte("no image"), "image/png", client.WriteFileOptions{}))(t)
		must(f.WriteFile(ctx, "/half.png", asPNG.Bytes()[:asPNG.Len()/2], "", client.WriteFileOptions{}))(t)
		must(f.WriteExternalFile(ctx, "/ext.png", "s3://b/k", 1, "image/png", client.WriteFileOptions{}))(t)
		for _, path := range []string{"/text", "/half.png", "/ext.png", "/none"} {
			if thumb, err := f.GetFileThumbnail(ctx, path); thumb != nil || err != nil {
				t.Errorf("%s: %d bytes, %v", path, len(thumb), err)
			}
		}
	})
}

// SA-123, SA-125, SA-126, SA-127, SA-128, SA-129, SA-130, SA-131, SA-132,
// SA-133: streams.
func TestReadFileStream(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, _ *world, f *client.Files) {
		ctx := t.Context()
		for size, chunks := range map[int]int64{
			0: 1, 1: 1, events.FileChunkBytes - 1: 1, events.FileChunkBytes: 1, events.FileChunkBytes + 1: 2, 10*events.FileChunkBytes + 5: 11, 20 * events.FileChunkBytes: 20,
		} {
			data := noise(size, 7)
			must(f.WriteFile(ctx, "/s", data, "", client.WriteFileOptions{}))(t)
			stream := must(f.ReadFileStream(ctx, "/s"))(t)
			var got []byte
			var kept []events.FileChunk
			for chunk, err := range stream {
				if err != nil {
					t.Fatal(err)
				}
				if chunk.Index != int64(len(kept)) || chunk.TotalChunks != chunks || chunk.IsLast != (chunk.Index == chunks-1) {
					t.Errorf("%d bytes: chunk %d of %d, last %v, as number %d", size, chunk.Index, chunk.TotalChunks, chunk.IsLast, len(kept))
				}
				kept = append(kept, chunk)
			}
			for _, chunk := range kept { // data is not used again
				got = append(got, chunk.Data...)
			}
			if int64(len(kept)) != chunks || !bytes.Equal(got, data) {
				t.Errorf("%d bytes came as %d in %d chunks", size, len(got), len(kept))
			}
		}
		must(f.WriteExternalFile(ctx, "/ext", "https://example.org/f", 9, "", client.WriteFileOptions{}))(t)
		for _, path := range []string{"/none", "/ext"} {
			if stream, err := f.ReadFileStream(ctx, path); stream != nil || err != nil {
				t.Errorf("%s: %v", path, err)
			}
			if data, err := f.ReadFile(ctx, path); data != nil || err != nil {
				t.Errorf("%s: %v %v", path, data, err)
			}
		}
		if ext := must(f.StatFile(ctx, "/ext"))(t); !ext.External || ext.Storage != "https://example.org/f" || ext.Digest != "" || ext.Size != 9 {
			t.Errorf("%+v", ext)
		}
	})
}

// SA-124, SA-134, SA-135: after the end of its context a stream yields no more chunks;
// earlier ones stay valid; and one that its reader leaves ends.
func TestStreamIsCancelled(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, _ *world, f *client.Files) {
		data := noise(6<<20, 3)
		must(f.WriteFile(t.Context(), "/big", data, "", client.WriteFileOptions{}))(t)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var kept [][]byte
		var failed error
		for chunk, err := range must(f.ReadFileStream(ctx, "/big"))(t) {
			if failed != nil {
				t.Fatal("it went on after an error")
			}
			if failed = err; err != nil {
				continue
			}
			if kept = append(kept, chunk.Data); len(kept) == 3 {
				cancel()
			}
			if len(kept) > 3 {
				t.Fatal("a chunk came after the end")
			}
		}
		if failed == nil || !errors.Is(failed, context.Canceled) || !bytes.Equal(bytes.Join(kept, nil), data[:3*events.FileChunkBytes]) {
			t.Errorf("%v, %d chunks", failed, len(kept))
		}
		for range must(f.ReadFileStream(t.Context(), "/big"))(t) {
			break
		}
	})
}

// A stream can be forwarded while it is read, such as to an HTTP response: whether
// there is a file is known before its first byte; pieces are requested only a few ahead
// of the reader, and none once the reader has gone.
func TestReadFileStream_ReadsOnDemand(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, w *world, f *client.Files) {
		const pieces = 40
		data := noise(pieces*events.FilePieceBytes, 9)
		must(f.WriteFile(t.Context(), "/video", data, "video/mp4", client.WriteFileOptions{}))(t)
		if none := must(f.ReadFileStream(t.Context(), "/none"))(t); none != nil {
			t.Error("a file that does not exist has a stream")
		}
		nc := w.plain()
		asked := must(nc.SubscribeSync("skein.file.acme.content.get"))(t)
		must(0, nc.Flush())(t)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		next, stop := iter.Pull2(must(f.ReadFileStream(ctx, "/video"))(t))
		defer stop()
		chunk, err, ok := next()
		if !ok || err != nil || !bytes.Equal(chunk.Data, data[:len(chunk.Data)]) {
			t.Fatalf("%v, %v", ok, err)
		}
		must(0, nc.Flush())(t) // what the stream has asked for has come
		count := func() int {
			n, _, err := asked.Pending()
			return must(n, err)(t)
		}
		if n := count(); n < 1 || n > pieces/2 {
			t.Errorf("of %d pieces %d were requested when one was read", pieces, n)
		}
		cancel()
		for {
			if _, err, ok = next(); !ok || err != nil {
				break
			}
		}
		if !errors.Is(err, context.Canceled) {
			t.Errorf("it ended with %v", err)
		}
		must(0, nc.Flush())(t)
		if n := count(); n > pieces/2 {
			t.Errorf("%d pieces were requested without a reader", n)
		}
	})
}

// An older version of a file is readable at a version of its thread, even if it was
// deleted since; and the history shows what happened.
func TestOlderVersions(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, w *world, f *client.Files) {
		ctx := t.Context()
		one := must(f.WriteFile(ctx, "/f", []byte("one"), "", client.WriteFileOptions{}))(t)
		big := noise(3<<20, 5)
		two := must(f.WriteFile(ctx, "/f", big, "", client.WriteFileOptions{}))(t)
		if err := f.UnlinkFile(ctx, "/f"); err != nil {
			t.Fatal(err)
		}
		if got := must(f.ReadFile(ctx, "/f"))(t); got != nil {
			t.Errorf("%q", got)
		}
		if got := must(f.ReadFileAt(ctx, "/f", one.Version))(t); string(got) != "one" {
			t.Errorf("%q", got)
		}
		if got := must(f.ReadFileAt(ctx, "/f", two.Version))(t); !bytes.Equal(got, big) {
			t.Errorf("%d bytes", len(got))
		}
		list := must(client.Read(ctx, w.Client, events.ListEvents{ThreadID: one.ThreadID, Types: []string{"file.*"}}))(t)
		if len(list.Events) != 3 {
			t.Errorf("%d events", len(list.Events))
		}
	})
}

// The objects are those of a NATS object store, under the tenant's name; equal content
// is stored once.
func TestFiles_ContentsAreObjects(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, w *world, f *client.Files) {
		ctx := t.Context()
		data := noise(2<<20, 1)
		must(f.WriteFile(ctx, "/a", data, "", client.WriteFileOptions{}))(t)
		must(f.WriteFile(ctx, "/b", data, "", client.WriteFileOptions{}))(t)
		must(w.newFiles().WriteFile(ctx, "/c", data, "", client.WriteFileOptions{}))(t)
		must(w.as("globex").Send(ctx, "", events.CreateThread{}))(t)
		objects := w.objects()
		list := must(objects.List(ctx))(t)
		if len(list) != 1 || list[0].Name != "acme/"+sum(data) || list[0].Size != uint64(len(data)) {
			t.Errorf("%+v", list)
		}
		if got := must(objects.GetBytes(ctx, "acme/"+sum(data)))(t); !bytes.Equal(got, data) {
			t.Errorf("%d bytes", len(got))
		}
		if status := must(objects.Status(ctx))(t); status.Size() > uint64(len(data))+16<<10 {
			t.Errorf("the store holds %d bytes for %d", status.Size(), len(data))
		}
	})
}

// objects opens the store of contents as any client would.
func (w *world) objects() jetstream.ObjectStore {
	w.t.Helper()
	js := must(jetstream.New(w.plain()))(w.t)
	return must(js.ObjectStore(w.t.Context(), "thread_files"))(w.t)
}

// plain returns a connection of its own.
func (w *world) plain() *nats.Conn {
	w.t.Helper()
	nc := natstest.Dial(w.t, w.server.Addresses().NATS)
	w.t.Cleanup(nc.Close)
	return nc
}
