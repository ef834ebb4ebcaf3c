package console_test

import (
	"bytes"
	"html"
	"image"
	"image/png"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/skein-threads/skein/api/edge"
	"github.com/skein-threads/skein/api/keys"
	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
)

// picture returns a PNG.
func picture(t *testing.T, width, height int) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, width, height))); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// write writes a file of a thread, and waits until it is listed.
func (w *world) write(thread, path string, content []byte, kind string) {
	w.t.Helper()
	files := w.client.Files(thread)
	if _, err := files.WriteFile(w.t.Context(), path, content, kind, events.WriteFileOptions{}); err != nil {
		w.t.Fatal(err)
	}
	if record, err := files.StatFile(w.t.Context(), path); err != nil || record == nil { // it shows its own write
		w.t.Fatal(record, err)
	}
}

// The list of files shows pictures small, as the server makes them: what only says that it is a
// picture, and what is one with a script, are shown by name alone.
func TestBrowser_Thumbnails(t *testing.T) {
	chromium(t)
	w := newWorld(t, "")
	id := w.thread("hello")
	w.write(id, "/photos/large.png", picture(t, 400, 200), "image/png")
	w.write(id, "/photos/script.svg", []byte(`<svg xmlns="http://www.w3.org/2000/svg" onload="hacked=1"><script>hacked=1</script></svg>`), "image/svg+xml")
	w.write(id, "/photos/text.png", []byte("<script>hacked=1</script>"), "image/png")
	b := w.open()
	b.visit("/threads/" + id + "/files?path=/photos")
	b.until(`document.querySelectorAll("td.what a").length === 3 && document.querySelector("img.thumb")?.complete`)
	if seen := eval[[]int](b, `[...document.querySelectorAll("img.thumb")].map((i) => [i.naturalWidth, i.naturalHeight]).flat()`); len(seen) != 2 || seen[0] != 96 || seen[1] != 48 {
		t.Errorf("the thumbnails are %v, want one of 96 x 48", seen)
	}
	v := w.visitor()
	thumb := "/threads/" + id + "/files/thumbnail?path="
	status, body, h := v.get(thumb + "/photos/large.png")
	if status != http.StatusOK || h.Get("Content-Type") != "image/png" && h.Get("Content-Type") != "image/jpeg" || len(body) == 0 {
		t.Errorf("a thumbnail: %d %s", status, h.Get("Content-Type"))
	}
	if policy := h.Get("Content-Security-Policy"); !strings.Contains(policy, "sandbox") || h.Get("X-Content-Type-Options") != "nosniff" {
		t.Errorf("its headers: %v", h)
	}
	for _, other := range []string{"/photos/script.svg", "/photos/text.png", "/photos/none.png", "/photos"} {
		if status, body, _ := v.get(thumb + other); status != http.StatusNotFound || strings.Contains(body, "hacked") {
			t.Errorf("%s: %d %.200s", other, status, body)
		}
	}
}

// A thumbnail is for who may read its thread, and is not made again for who has it.
func TestThumbnail_RightsAndTag(t *testing.T) {
	t.Parallel()
	folder, dir := newAccess(t)
	_, all := addKey(t, folder, keys.Key{Tenant: "acme"})
	_, other := addKey(t, folder, keys.Key{Tenant: "globex"})
	_, user := addKey(t, folder, keys.Key{Tenant: "acme", User: "ada"})
	_, approver := addKey(t, folder, keys.Key{Tenant: "acme", Can: []edge.Capability{edge.Approve}})
	w := newWorld(t, dir)
	id := w.thread("hello")
	w.write(id, "/a.png", picture(t, 300, 300), "image/png")
	path := "/threads/" + id + "/files/thumbnail?path=/a.png"
	for key, want := range map[string]int{all: http.StatusOK, other: http.StatusNotFound, user: http.StatusNotFound, approver: http.StatusForbidden, "": http.StatusSeeOther} {
		v := w.visitor()
		if key != "" {
			v.post("/sign-in", "key", key)
		}
		status, _, h := v.get(path)
		if status != want {
			t.Errorf("%d, want %d", status, want)
		}
		if want != http.StatusOK {
			continue
		}
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, w.http+"/console"+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("If-None-Match", h.Get("ETag"))
		if status, body, _ := v.read(v.client.Do(r)); status != http.StatusNotModified || body != "" {
			t.Errorf("what the browser has: %d %.100s", status, body)
		}
	}
}

// The link to JSON and the command of the tab Files are of the folder that it shows.
func TestFiles_LinkIsOfTheFolder(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	id := w.thread("hello")
	w.write(id, "/notes & more/a.txt", []byte("a"), "text/plain")
	thread, err := client.Read(t.Context(), w.client, events.GetThread{ThreadID: id})
	if err != nil {
		t.Fatal(err)
	}
	folder, before := url.QueryEscape("/notes & more"), strconv.FormatInt(thread.Version-1, 10)
	link, command := regexp.MustCompile(`The same as <a href="([^"]+)">`), regexp.MustCompile(`<code class="command">(skein [^<]+)<`)
	for path, want := range map[string][3]string{
		"":                               {"path=%2F", "skein files ls " + id + " /", "notes & more"},
		"?path=" + folder:                {"path=" + folder, "skein files ls " + id + " '/notes & more'", "a.txt"},
		"?path=" + folder + "%2Fa.txt":   {"path=" + folder, "skein files ls " + id + " '/notes & more'", "a.txt"},
		"?path=%2F&at=" + before:         {"at=" + before + "&path=%2F", "", "entries"},
		"?path=" + folder + "&at=999999": {"path=" + folder, "skein files ls " + id + " '/notes & more'", "a.txt"},
	} {
		_, body, _ := w.visitor().get("/threads/" + id + "/files" + path)
		found, named := link.FindStringSubmatch(body), command.FindStringSubmatch(body)
		if found == nil || html.UnescapeString(found[1]) != "/api/threads/"+id+"/files?"+want[0] {
			t.Errorf("%s links %v, want ?%s", path, found, want[0])
			continue
		}
		if call := append(named, "", "")[1]; html.UnescapeString(call) != want[1] {
			t.Errorf("%s names %q, want %q", path, call, want[1])
		}
		v := w.visitor()
		answer, err := v.client.Get(w.http + html.UnescapeString(found[1]))
		if status, listed, _ := v.read(answer, err); status != http.StatusOK || !strings.Contains(listed, want[2]) {
			t.Errorf("%s: %d %s, want one with %s", found[1], status, listed, want[2])
		}
	}
}
