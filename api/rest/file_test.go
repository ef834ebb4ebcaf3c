package rest_test

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/skein-threads/skein"
	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/natstest"
)

func digest(b []byte) string {
	sum := sha256.Sum256(b)
	return `"` + hex.EncodeToString(sum[:]) + `"`
}

// bytesOf returns content that is the same in every run.
func bytesOf(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(b)
	return b
}

func TestFiles_WriteAndRead(t *testing.T) {
	t.Parallel()
	s := start(t)
	thread := s.thread()
	for _, size := range []int{0, 1, events.InlineFileBytes, events.InlineFileBytes + 1, 3*events.FilePieceBytes + 7} {
		data := bytesOf(size)
		at := fmt.Sprintf("%s/files/deep/folder/%d.bin", thread, size)
		put := s.ask("PUT", at, string(data), "Content-Type", "application/x-thing").want(http.StatusCreated).has("ETag", digest(data)).has("Location", at)
		if put.text("size") != fmt.Sprint(size) {
			t.Errorf("the record: %s", put.body)
		}
		fresh := []string{"Skein-Min-Seq", put.text("seq")}
		got := s.ask("GET", at, "", fresh...).want(http.StatusOK).has("Content-Type", "application/x-thing").has("ETag", digest(data)).has("Content-Length", fmt.Sprint(size))
		if !bytes.Equal(got.body, data) {
			t.Errorf("%d bytes came back as %d others", size, len(got.body))
		}
		head := s.ask("HEAD", at, "").want(http.StatusOK).has("Content-Length", fmt.Sprint(size)).has("ETag", digest(data)).has("Accept-Ranges", "bytes")
		if len(head.body) > 0 {
			t.Errorf("HEAD has a body")
		}
		s.ask("GET", at, "", "If-None-Match", digest(data)).want(http.StatusNotModified)
		s.ask("GET", at, "", "If-None-Match", `"other"`).want(http.StatusOK)
	}
	over := s.ask("PUT", thread+"/files/deep/folder/1.bin", "new", "Content-Type", "text/plain").want(http.StatusOK)
	if got := s.ask("GET", thread+"/files/deep/folder/1.bin?at="+over.text("version"), "").want(http.StatusOK); string(got.body) != "new" {
		t.Errorf("written over: %q", got.body)
	}
	gone := s.ask("DELETE", thread+"/files/deep/folder/1.bin", "").want(http.StatusOK)
	s.ask("GET", thread+"/files/deep/folder/1.bin", "", "Skein-Min-Seq", gone.text("seq")).problem(http.StatusNotFound, "not_found", "")
	s.ask("DELETE", thread+"/files/deep/folder/1.bin", "").want(http.StatusOK)
	s.ask("GET", thread+"/files/deep", "").problem(http.StatusUnprocessableEntity, "illegal_transition", "")
	if list := s.ask("GET", thread+"/files?path=/deep/folder", "").want(http.StatusOK); !strings.Contains(string(list.body), `"name":"0.bin"`) {
		t.Errorf("the list: %s", list.body)
	}
}

func TestFiles_Ranges(t *testing.T) {
	t.Parallel()
	s := start(t)
	data := bytesOf(3*events.FilePieceBytes + 100)
	at := s.thread() + "/files/big"
	put := s.ask("PUT", at, string(data), "Content-Type", "application/octet-stream").want(http.StatusCreated)
	s.ask("HEAD", at, "", "Skein-Min-Seq", put.text("seq")).want(http.StatusOK)
	for _, c := range []struct {
		ask      string
		from, to int
	}{
		{"0-0", 0, 1},
		{"0-99", 0, 100},
		{"-100", len(data) - 100, len(data)},
		{"100-", 100, len(data)},
		{fmt.Sprintf("%d-%d", events.FilePieceBytes-1, events.FilePieceBytes), events.FilePieceBytes - 1, events.FilePieceBytes + 1},
		{fmt.Sprintf("%d-", 2*events.FilePieceBytes), 2 * events.FilePieceBytes, len(data)},
		{fmt.Sprintf("%d-999999999999", len(data)-1), len(data) - 1, len(data)},
	} {
		a := s.ask("GET", at, "", "Range", "bytes="+c.ask).want(http.StatusPartialContent).
			has("Content-Range", fmt.Sprintf("bytes %d-%d/%d", c.from, c.to-1, len(data)))
		if !bytes.Equal(a.body, data[c.from:c.to]) {
			t.Errorf("%s: %d other bytes", c.ask, len(a.body))
		}
	}
	beyond := s.ask("GET", at, "", "Range", "bytes=9999999-").want(http.StatusRequestedRangeNotSatisfiable).has("Content-Range", fmt.Sprintf("bytes */%d", len(data)))
	beyond.problem(http.StatusRequestedRangeNotSatisfiable, "invalid_request", "Range")
	for _, beyond := range []string{"-0", "9999999-,-0", "99999999999999999999-"} {
		s.ask("GET", at, "", "Range", "bytes="+beyond).has("Content-Range", fmt.Sprintf("bytes */%d", len(data))).problem(http.StatusRequestedRangeNotSatisfiable, "invalid_request", "Range")
	}
	s.ask("GET", at, "", "Range", "bytes=5-99999999999999999999").want(http.StatusPartialContent).has("Content-Range", fmt.Sprintf("bytes 5-%d/%d", len(data)-1, len(data)))
	for _, nothing := range []string{"items=0-1", "bytes=abc", "bytes=5-2", "bytes=-", "bytes", "bytes=0-1,x-2", "bytes=+1-2"} {
		if a := s.ask("GET", at, "", "Range", nothing).want(http.StatusOK); !bytes.Equal(a.body, data) {
			t.Errorf("%s: %d bytes, want the whole", nothing, len(a.body))
		}
	}
	s.ask("GET", at, "", "If-Match", `"another"`).problem(http.StatusPreconditionFailed, "version_conflict", "")
	s.ask("GET", at, "", "Range", "bytes=0-9", "If-Range", `"another"`).want(http.StatusOK)
	s.ask("GET", at, "", "Range", "bytes=0-9", "If-Range", digest(data)).want(http.StatusPartialContent)
	parts := s.ask("GET", at, "", "Range", "bytes=0-1,600000-600001").want(http.StatusPartialContent)
	if !strings.HasPrefix(parts.header.Get("Content-Type"), "multipart/byteranges") || !bytes.Contains(parts.body, data[600000:600002]) {
		t.Errorf("two ranges: %s, %d bytes", parts.header.Get("Content-Type"), len(parts.body))
	}
	// A few bytes of many places cost a piece each: the whole is sent instead.
	many := "bytes=0-0" + strings.Repeat(",5-5", 16)
	s.ask("GET", at, "", "Range", many).want(http.StatusOK)
}

// Of an empty file there are no parts: whatever is asked for, the whole of it is the answer.
func TestFiles_RangesOfAnEmptyFile(t *testing.T) {
	t.Parallel()
	s := start(t)
	at := s.thread() + "/files/empty"
	put := s.ask("PUT", at, "", "Content-Type", "application/octet-stream").want(http.StatusCreated)
	for _, part := range []string{"-1", "-0", "0-", "0-0", "5-", "0-0,-1"} {
		s.ask("GET", at, "", "Range", "bytes="+part, "Skein-Min-Seq", put.text("seq")).want(http.StatusOK).has("Content-Range", "").has("Content-Length", "0")
		s.ask("HEAD", at, "", "Range", "bytes="+part).want(http.StatusOK).has("Content-Range", "")
	}
}

// The path of a file is normalised as everywhere: repeated slashes are one, and names that lead back
// are refused.
func TestFiles_RepeatedSlashes(t *testing.T) {
	t.Parallel()
	s := start(t)
	thread := s.thread()
	put := s.ask("PUT", thread+"/files/a//b///c%2Fd.txt", "hello", "Content-Type", "text/plain").want(http.StatusCreated).has("Location", thread+"/files/a/b/c%2Fd.txt")
	if path := put.text("path"); path != "/a/b/c/d.txt" {
		t.Errorf("the path is %s", path)
	}
	for _, path := range []string{"/files/a/b/c/d.txt", "/files/a//b/c/d.txt", "/files//a/b//c/d.txt//"} {
		if got := s.ask("GET", thread+path, "", "Skein-Min-Seq", put.text("seq")).want(http.StatusOK); string(got.body) != "hello" {
			t.Errorf("%s: %q", path, got.body)
		}
	}
	s.ask("DELETE", thread+"/files/a//b/c/d.txt", "").want(http.StatusOK)
	for _, path := range []string{"/files/a//../b", "/files/a//./b", "//files/a", "/files//../items"} {
		s.ask("GET", thread+path, "").want(http.StatusNotFound)
	}
}

func TestFiles_Conditions(t *testing.T) {
	t.Parallel()
	s := start(t)
	thread := s.thread()
	at := thread + "/files/a.txt"
	s.ask("PUT", at, "x", "If-Match", "*").problem(http.StatusPreconditionFailed, "version_conflict", "")
	s.ask("PUT", at, "one", "If-None-Match", "*", "Idempotency-Key", "p-1").want(http.StatusCreated)
	s.ask("PUT", at, "one", "If-None-Match", "*", "Idempotency-Key", "p-1").want(http.StatusCreated)
	s.ask("PUT", at, "two", "If-None-Match", "*").problem(http.StatusPreconditionFailed, "version_conflict", "")
	s.ask("PUT", at, "two", "If-Match", digest([]byte("other"))).problem(http.StatusPreconditionFailed, "version_conflict", "")
	s.ask("PUT", at, "two", "If-Match", digest([]byte("one"))).want(http.StatusOK)
	three := s.ask("PUT", at, "three", "If-Match", "*").want(http.StatusOK)
	s.ask("DELETE", at, "", "If-Match", digest([]byte("two"))).problem(http.StatusPreconditionFailed, "version_conflict", "")
	s.ask("PUT", at, "x", "If-Match", "three").problem(http.StatusBadRequest, "invalid_request", "If-Match")
	for _, other := range []string{`"three"`, "W/" + digest([]byte("three")), `""`} {
		s.ask("PUT", at, "x", "If-Match", other).problem(http.StatusPreconditionFailed, "version_conflict", "")
	}
	s.ask("PUT", at, "x", "Content-Encoding", "gzip").problem(http.StatusUnsupportedMediaType, "unsupported_media_type", "")
	s.ask("PUT", at, "x", "If-None-Match", `"a"`).problem(http.StatusBadRequest, "invalid_request", "If-None-Match")
	if got := s.ask("GET", at, "", "Skein-Min-Seq", three.text("seq")); string(got.body) != "three" {
		t.Errorf("the file has %q", got.body)
	}
	s.ask("DELETE", at, "", "If-Match", digest([]byte("three"))).want(http.StatusOK)
}

// Nothing that a file holds runs in a browser as the site's own.
func TestFiles_NeverRun(t *testing.T) {
	t.Parallel()
	s := start(t)
	thread := s.thread()
	for _, c := range []struct{ name, kind, disposition string }{
		{"page.html", "text/html", "attachment"},
		{"image.svg", "image/svg+xml", "attachment"},
		{"page.xhtml", "application/xhtml+xml", "attachment"},
		{"script.js", "text/javascript", "attachment"},
		{"what", "no type at all", "attachment"},
		{"image.png", "image/png", "inline"},
		{"notes.txt", "text/plain; charset=utf-8", "inline"},
		{"paper.pdf", "application/pdf", "inline"},
		{`quote".txt`, "text/plain", "inline"},
	} {
		at := thread + "/files/" + strings.ReplaceAll(c.name, `"`, "%22")
		put := s.ask("PUT", at, "<script>alert(1)</script>", "Content-Type", c.kind).want(http.StatusCreated)
		a := s.ask("GET", at, "", "Skein-Min-Seq", put.text("seq")).want(http.StatusOK).has("X-Content-Type-Options", "nosniff")
		if !strings.HasPrefix(a.header.Get("Content-Disposition"), c.disposition+";") || !strings.HasPrefix(a.header.Get("Content-Security-Policy"), "sandbox;") {
			t.Errorf("%s: %v", c.name, a.header)
		}
		if kind := a.header.Get("Content-Type"); kind != c.kind && kind != "application/octet-stream" {
			t.Errorf("%s: %s", c.name, kind)
		}
	}
}

func TestFiles_PathTricks(t *testing.T) {
	t.Parallel()
	s := start(t)
	thread := s.thread()
	for _, path := range []string{"..%2f..%2fetc%2fpasswd", "%2e%2e/x", "a/%2e%2e/b", "%2e", "a%00b", "a%5cb", "a%0d%0ab", "%ff", strings.Repeat("a/", 65) + "a", strings.Repeat("a", 256)} {
		for _, method := range []string{"GET", "PUT", "DELETE"} {
			if a := s.ask(method, thread+"/files/"+path, ""); a.status != http.StatusBadRequest && a.status != http.StatusNotFound {
				t.Errorf("%s %s: %d %.300s", method, path, a.status, a.body)
			}
		}
	}
	if list := s.ask("GET", thread+"/files", ""); string(list.body) != `{"entries":[]}` {
		t.Errorf("files: %s", list.body)
	}
	put := s.ask("PUT", thread+"/files/a%2Fb", "x").want(http.StatusCreated)
	s.ask("GET", thread+"/files/a/b", "", "Skein-Min-Seq", put.text("seq")).want(http.StatusOK)
}

// An upload that ends in the middle writes nothing.
func TestFiles_BrokenUpload(t *testing.T) {
	t.Parallel()
	s := start(t)
	at := s.thread() + "/files/half"
	r, w := io.Pipe()
	req, err := http.NewRequestWithContext(t.Context(), "PUT", s.url+at, r)
	s.Must(err)
	req.Header.Set("Skein-Tenant", "acme")
	sent := make(chan error, 1)
	go func() {
		_, err := w.Write(bytesOf(2 * events.FilePieceBytes))
		_ = w.CloseWithError(fmt.Errorf("the client has gone"))
		sent <- err
	}()
	if resp, err := http.DefaultTransport.RoundTrip(req); err == nil {
		resp.Body.Close()
		if resp.StatusCode < 400 {
			t.Errorf("half an upload: %d", resp.StatusCode)
		}
	}
	s.Must(<-sent)
	s.ask("GET", at, "").problem(http.StatusNotFound, "not_found", "")
}

// External files have no content here.
func TestFiles_External(t *testing.T) {
	t.Parallel()
	s := start(t)
	thread := s.thread()
	far, err := s.Client("acme").Files(id(thread)).WriteExternalFile(t.Context(), "/far", "https://example.com/far", 7, "text/plain", client.WriteFileOptions{})
	s.Must(err)
	s.ask("GET", thread+"/files/far", "", "Skein-Min-Seq", strconv.FormatInt(far.Seq, 10)).problem(http.StatusUnprocessableEntity, "illegal_transition", "")
}

// aloneStore names the store of the nats-server that runs in a process of its own.
const aloneStore = "SKEIN_TEST_REST_STORE"

// TestFiles_NATSAlone is the other process of TestFiles_FlatMemory.
func TestFiles_NATSAlone(t *testing.T) {
	t.Parallel()
	dir := os.Getenv(aloneStore)
	if dir == "" {
		t.Skip("runs only within TestFiles_FlatMemory")
	}
	fmt.Println("url " + natstest.Start(t, natstest.StoreDir(dir)).URL())
	_, _ = io.Copy(io.Discard, os.Stdin) // until the parent ends
}

// natsAlone runs a nats-server in a process of its own, and returns its URL.
func natsAlone(t *testing.T) string {
	t.Helper()
	child := exec.Command(os.Args[0], "-test.run=^TestFiles_NATSAlone$", "-test.v")
	child.Env = append(os.Environ(), aloneStore+"="+t.TempDir())
	in, err := child.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		_ = child.Wait() // it ends by itself
	})
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if url, ok := strings.CutPrefix(lines.Text(), "url "); ok {
			return url
		}
	}
	t.Fatal("the nats-server of its own did not start")
	return ""
}

// 100 MB pass through in both directions, and what is alive in the heap of this process, which
// is the edge, the service and the client in one, stays that of a few pieces.
func TestFiles_FlatMemory(t *testing.T) {
	const size = 100 << 20
	alone := natsAlone(t)
	s := start(t, func(o *skein.Options) { o.NATS, o.Store, o.Volatile = alone, "", false })
	at := s.thread() + "/files/large"
	most := uint64(0)
	note := func() {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		most = max(most, m.HeapAlloc)
	}
	note()
	before := most
	req, err := http.NewRequestWithContext(t.Context(), "PUT", s.url+at, &zeros{left: size, every: note})
	s.Must(err)
	req.Header.Set("Skein-Tenant", "acme")
	put, err := http.DefaultTransport.RoundTrip(req)
	s.Must(err)
	put.Body.Close()
	if put.StatusCode != http.StatusCreated {
		t.Fatalf("PUT: %d", put.StatusCode)
	}
	got := s.open("GET", at, "", "Skein-Min-Seq", put.Header.Get("Skein-Seq"))
	defer got.Body.Close()
	n := int64(0)
	for {
		m, err := io.CopyN(io.Discard, got.Body, 10<<20)
		note()
		if n += m; err != nil {
			break
		}
	}
	if n != size {
		t.Errorf("%d bytes came back", n)
	}
	if grown := int64(most) - int64(before); grown > 48<<20 {
		t.Errorf("the heap grew by %d MB", grown>>20)
	}
}

// zeros is a body of a length. It calls every after each 10 MB.
type zeros struct {
	left  int64
	every func()
}

func (z *zeros) Read(p []byte) (int, error) {
	if z.left == 0 {
		return 0, io.EOF
	}
	n := min(int64(len(p)), z.left)
	clear(p[:n])
	if z.left/(10<<20) != (z.left-n)/(10<<20) {
		z.every()
	}
	z.left -= n
	return int(n), nil
}
