package api_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
)

// uploaded is a file as /v1/files answers with it.
type uploaded struct {
	ID, Object, Filename, Purpose, Status string
	Bytes                                 int64
	CreatedAt                             int64 `json:"created_at"`
	ExpiresAt                             int64 `json:"expires_at"`
	Error                                 *struct{ Code, Param, Message string }
}

// formOf returns a form: pairs of fields and values, where the field file has a name and a content.
func formOf(t *testing.T, fields ...string) (body, contentType string) {
	t.Helper()
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	for i := 0; i < len(fields); i += 2 {
		name, value := fields[i], fields[i+1]
		if name != "file" {
			if err := w.WriteField(name, value); err != nil {
				t.Fatal(err)
			}
			continue
		}
		filename, content, _ := strings.Cut(value, ":")
		part, err := w.CreateFormFile("file", filename)
		if err == nil {
			_, err = io.WriteString(part, content)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String(), w.FormDataContentType()
}

// upload uploads a file, as formOf makes the form.
func (s *stage) upload(who string, headers []string, fields ...string) (int, uploaded) {
	s.t.Helper()
	body, kind := formOf(s.t, fields...)
	status, text := s.ask(who, "POST", "/v1/files", body, append(headers, "Content-Type", kind)...)
	var f uploaded
	if err := json.Unmarshal([]byte(text), &f); err != nil {
		s.t.Fatalf("%d %.300s: %v", status, text, err)
	}
	return status, f
}

// A file is uploaded, whatever its size and wherever it stands in the form, listed, read in whole and
// in part, and deleted.
func TestOpenAIFiles_Lifecycle(t *testing.T) {
	t.Parallel()
	s := strangers(t)
	large := strings.Repeat("0123456789abcdef", 80<<10) // 1.25 MiB
	var ids []string
	for _, c := range []struct {
		name, content string
		fields        []string
	}{
		{"a.txt", "hello", []string{"purpose", "user_data", "file", "a.txt:hello"}},
		{"b.bin", large, []string{"file", "b.bin:" + large, "purpose", "assistants"}},
		{"c.json", "", []string{"file", `folder\c.json:`, "unknown", "x", "purpose", "user_data"}},
	} {
		status, f := s.upload("ann", nil, c.fields...)
		if status != http.StatusOK || f.Object != "file" || f.Filename != c.name || f.Bytes != int64(len(c.content)) || f.Status != "processed" || f.CreatedAt == 0 || !strings.HasPrefix(f.ID, "file-") {
			t.Fatalf("%s: %d %+v", c.name, status, f)
		}
		ids = append(ids, f.ID)
		if status, text := s.ask("ann", "GET", "/v1/files/"+f.ID, ""); status != http.StatusOK || !strings.Contains(text, `"filename":"`+c.name+`"`) {
			t.Errorf("%d %s", status, text)
		}
		r, _ := http.NewRequestWithContext(t.Context(), "GET", s.url+"/v1/files/"+f.ID+"/content", nil)
		r.Header.Set("Authorization", "ann")
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(answer.Body)
		_ = answer.Body.Close()
		if err != nil || string(got) != c.content || answer.Header.Get("Content-Disposition") != `attachment; filename=`+c.name || answer.Header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: %v, %d bytes, %v", c.name, err, len(got), answer.Header)
		}
	}
	if status, text := s.ask("ann", "GET", "/v1/files/"+ids[1]+"/content", "", "Range", "bytes=3-5"); status != http.StatusPartialContent || text != "345" {
		t.Errorf("a range: %d %.100s", status, text)
	}
	for query, want := range map[string][]string{
		"": {ids[2], ids[1], ids[0]}, "?order=asc": ids, "?order=asc&limit=1": ids[:1], "?after=" + ids[2] + "&limit=1": {ids[1]},
		"?purpose=user_data": {ids[2], ids[0]}, "?purpose=vision": {}, "?limit=2&order=asc&purpose=user_data": {ids[0], ids[2]},
	} {
		_, text := s.ask("ann", "GET", "/v1/files"+query, "")
		var page struct {
			Object  string
			Data    []uploaded
			HasMore bool   `json:"has_more"`
			FirstID string `json:"first_id"`
		}
		if err := json.Unmarshal([]byte(text), &page); err != nil || page.Object != "list" {
			t.Fatalf("%s: %v", text, err)
		}
		got := []string{}
		for _, f := range page.Data {
			got = append(got, f.ID)
		}
		if !slices.Equal(got, want) || page.HasMore != strings.Contains(query, "limit=1") || len(got) > 0 && page.FirstID != got[0] {
			t.Errorf("%s: %v, %v; want %v", query, got, page, want)
		}
	}
	if _, text := s.ask("ann", "GET", "/api/threads", ""); strings.Contains(text, "a.txt") {
		t.Errorf("files are among the conversations: %s", text)
	}
	if status, text := s.ask("ann", "DELETE", "/v1/files/"+ids[0], ""); status != http.StatusOK || text != `{"id":"`+ids[0]+`","object":"file","deleted":true}` {
		t.Errorf("%d %s", status, text)
	}
	for _, path := range []string{"", "/content"} {
		if status, text := s.ask("ann", "GET", "/v1/files/"+ids[0]+path, ""); status != http.StatusNotFound || !strings.Contains(text, `"code":"not_found"`) {
			t.Errorf("%d %s", status, text)
		}
	}
	if _, text := s.ask("ann", "GET", "/v1/files", ""); strings.Contains(text, ids[0]) || !strings.Contains(text, ids[1]) {
		t.Errorf("%s", text)
	}
}

// What is no file is refused before anything is written, and names the field.
func TestOpenAIFiles_Refusals(t *testing.T) {
	t.Parallel()
	s := strangers(t)
	large := strings.Repeat("x", 300<<10)
	for name, c := range map[string]struct {
		fields []string
		param  string
	}{
		"no file":             {[]string{"purpose", "user_data"}, "file"},
		"no purpose":          {[]string{"file", "a:x"}, "purpose"},
		"no purpose, large":   {[]string{"file", "a:" + large}, "purpose"},
		"two files":           {[]string{"purpose", "x", "file", "a:x", "file", "b:x"}, "file"},
		"two files, large":    {[]string{"purpose", "x", "file", "a:" + large, "file", "b:x"}, "file"},
		"a purpose of spaces": {[]string{"purpose", "a b", "file", "a:x"}, "purpose"},
		"another anchor":      {[]string{"purpose", "x", "file", "a:x", "expires_after[anchor]", "last_active_at", "expires_after[seconds]", "3600"}, "expires_after/anchor"},
		"too soon":            {[]string{"purpose", "x", "file", "a:x", "expires_after[anchor]", "created_at", "expires_after[seconds]", "3599"}, "expires_after/seconds"},
	} {
		if status, f := s.upload("ann", nil, c.fields...); status != http.StatusBadRequest || f.Error == nil || f.Error.Param != c.param {
			t.Errorf("%s: %d %+v", name, status, f.Error)
		}
	}
	for name, body := range map[string]string{"cut off": "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a\"\r\n\r\nx", "no form": "{}", "nothing": ""} {
		if status, text := s.ask("ann", "POST", "/v1/files", body, "Content-Type", "multipart/form-data; boundary=b"); status != http.StatusBadRequest {
			t.Errorf("%s: %d %s", name, status, text)
		}
	}
	if status, text := s.ask("ann", "POST", "/v1/files", "{}"); status != http.StatusBadRequest {
		t.Errorf("JSON: %d %s", status, text)
	}
	for _, query := range []string{"limit=0", "limit=x", "order=up", "after=file-1"} {
		if status, text := s.ask("ann", "GET", "/v1/files?"+query, ""); status != http.StatusBadRequest {
			t.Errorf("%s: %d %s", query, status, text)
		}
	}
	if _, text := s.ask("ann", "GET", "/v1/files", ""); !strings.Contains(text, `"data":[]`) {
		t.Errorf("something was written: %s", text)
	}
}

// A file of another user or tenant does not exist, neither by its id nor in a message; a credential for
// all threads of a tenant uses its files. A credential that only reads, or is for one thread,
// uploads nothing.
func TestOpenAIFiles_OfOthers(t *testing.T) {
	t.Parallel()
	s := strangers(t)
	_, f := s.upload("ann", nil, "purpose", "user_data", "file", "secret.txt:secret")
	unknown := f.ID[:len(f.ID)-1] + map[bool]string{true: "1", false: "0"}[strings.HasSuffix(f.ID, "0")]
	for _, who := range []string{"bob", "globex", "one"} {
		for _, c := range [][3]string{
			{"GET", "/v1/files/FILE", ""}, {"GET", "/v1/files/FILE/content", ""}, {"DELETE", "/v1/files/FILE", ""}, {"GET", "/v1/files", ""}, {"GET", "/v1/files?after=FILE", ""},
			{"POST", "/v1/responses", `{"model":"teller","input":[{"role":"user","content":[{"type":"input_file","file_id":"FILE"}]}]}`},
			{"POST", "/v1/chat/completions", `{"model":"teller","messages":[{"role":"user","content":[{"type":"file","file":{"file_id":"FILE"}}]}]}`},
			{"POST", "/chat", `{"id":"chat","agent":"teller","message":{"id":"m","role":"user","parts":[{"type":"file","file_id":"FILE"}]}}`},
		} {
			var got [2]string
			for i, id := range []string{f.ID, unknown} {
				status, text := s.ask(who, c[0], strings.ReplaceAll(c[1], "FILE", id), strings.ReplaceAll(c[2], "FILE", id))
				got[i] = fmt.Sprint(status) + " " + strings.ReplaceAll(text, id, "FILE")
			}
			if got[0] != got[1] || strings.Contains(got[0], "secret") || c[1] != "/v1/files" && strings.HasPrefix(got[0], "200") {
				t.Errorf("%s %s as %s: %s\nnot as of what does not exist: %s", c[0], c[1], who, got[0], got[1])
			}
		}
	}
	thread := s.made("acme", "ann", "no-file").thread
	for _, path := range []string{"", "/content"} { // a thread that is no file
		if status, text := s.ask("ann", "GET", "/v1/files/file-"+strings.ReplaceAll(strings.TrimPrefix(thread, "T-"), "-", "")+path, ""); status != http.StatusNotFound || strings.Contains(text, "secret") {
			t.Errorf("%d %s", status, text)
		}
	}
	for _, who := range []string{"ann", "acme"} {
		if status, text := s.ask(who, "GET", "/v1/files/"+f.ID+"/content", ""); status != http.StatusOK || text != "secret" {
			t.Errorf("%s: %d %s", who, status, text)
		}
	}
	for _, who := range []string{"reader", "one"} {
		if status, of := s.upload(who, nil, "purpose", "user_data", "file", "a.txt:x"); status != http.StatusForbidden || of.Error == nil || of.Error.Code != "forbidden" {
			t.Errorf("%s: %d %+v", who, status, of.Error)
		}
	}
	if status, text := s.ask("reader", "DELETE", "/v1/files/"+f.ID, ""); status != http.StatusForbidden {
		t.Errorf("%d %s", status, text)
	}
}

// An Idempotency-Key names one upload: the same file has the same id, another one is refused, and so is
// one after the file was deleted.
func TestOpenAIFiles_Repeats(t *testing.T) {
	t.Parallel()
	s := strangers(t)
	large := strings.Repeat("x", 300<<10)
	for n, content := range []string{"small", large} {
		key := []string{"Idempotency-Key", fmt.Sprint("key-", n)}
		_, first := s.upload("ann", key, "purpose", "user_data", "file", "a.txt:"+content)
		if _, again := s.upload("ann", key, "file", "a.txt:"+content, "purpose", "user_data"); again.ID != first.ID || first.ID == "" {
			t.Errorf("%+v, and then %+v", first, again)
		}
		for _, other := range []string{"other", large + "y"} {
			if status, of := s.upload("ann", key, "purpose", "user_data", "file", "a.txt:"+other); status != http.StatusUnprocessableEntity || of.Error.Code != "idempotency_key_reused" {
				t.Errorf("another file: %d %+v", status, of)
			}
		}
		if _, of := s.upload("bob", key, "purpose", "user_data", "file", "a.txt:"+content); of.ID == first.ID || of.ID == "" {
			t.Errorf("the same key of another: %+v", of)
		}
		s.ask("ann", "DELETE", "/v1/files/"+first.ID, "")
		if status, of := s.upload("ann", key, "purpose", "user_data", "file", "a.txt:"+content); status != http.StatusNotFound {
			t.Errorf("after the file was deleted: %d %+v", status, of)
		}
	}
}

// A message shows its model the content of a file by its id, over every protocol, also after the file
// was deleted; a chat goes on then.
func TestOpenAIFiles_InMessages(t *testing.T) {
	t.Parallel()
	s := strangers(t)
	png := "\x89PNG\r\n\x1a\n" + strings.Repeat("\x00", 600<<10)
	_, text := s.upload("ann", nil, "purpose", "user_data", "file", "notes.txt:the notes")
	_, image := s.upload("ann", nil, "purpose", "vision", "file", "p.png:"+png)
	fill := strings.NewReplacer("TEXT", text.ID, "IMAGE", image.ID)
	chat := `{"model":"teller","messages":[{"role":"user","content":[{"type":"text","text":"x"},{"type":"file","file":{"file_id":"TEXT"}}]}`
	for _, c := range []struct{ path, body string }{
		{"/v1/responses", `{"model":"teller","input":[{"role":"user","content":[{"type":"input_file","file_id":"TEXT"},{"type":"input_image","file_id":"IMAGE"}]}]}`},
		{"/v1/chat/completions", chat + `]}`},
		{"/chat", `{"id":"talk","agent":"teller","message":{"id":"m1","role":"user","parts":[{"type":"file","file_id":"TEXT"},{"type":"file","mediaType":"image/png","url":"IMAGE"}]}}`},
	} {
		if status, said := s.ask("ann", "POST", c.path, fill.Replace(c.body), "Skein-Thread", "kept"); status != http.StatusOK {
			t.Errorf("%s: %d %.400s", c.path, status, said)
		}
	}
	s.skein.WaitIdle()
	for _, f := range []uploaded{text, image} {
		if status, said := s.ask("ann", "DELETE", "/v1/files/"+f.ID, ""); status != http.StatusOK {
			t.Fatalf("%d %s", status, said)
		}
	}
	c, err := s.skein.Client("acme").UpToDate(t.Context())
	s.skein.Must(err)
	threads, err := client.Read(t.Context(), c, events.ListThreads{UserID: "ann"})
	s.skein.Must(err)
	texts, images := 0, 0
	for i := range threads.Threads {
		items, err := client.Read(t.Context(), c, events.ListItems{ThreadID: threads.Threads[i].ID})
		s.skein.Must(err)
		for _, item := range items.Items {
			texts += strings.Count(string(item.Content), "data:text/plain;base64,dGhlIG5vdGVz")
			if _, path, found := strings.Cut(string(item.Content), `"skein:`); found {
				path, _, _ = strings.Cut(path, `"`)
				data, err := c.Files(threads.Threads[i].ID).ReadFile(t.Context(), path)
				if err != nil || string(data) != png {
					t.Errorf("%s: %v, %d bytes", path, err, len(data))
				}
				images++
			}
		}
	}
	if texts != 3 || images != 2 {
		t.Errorf("%d texts and %d images in the threads", texts, images)
	}
	more := chat + `,{"role":"assistant","content":"told"},{"role":"user","content":"and now?"}]}`
	if status, said := s.ask("ann", "POST", "/v1/chat/completions", fill.Replace(more), "Skein-Thread", "kept"); status != http.StatusOK {
		t.Errorf("the chat goes on: %d %.400s", status, said)
	}
	c, err = c.UpToDate(t.Context())
	s.skein.Must(err)
	if list, err := client.Read(t.Context(), c, events.ListThreads{KeyPrefix: "chat:", UserID: "ann"}); err != nil || len(list.Threads) != 1 {
		t.Errorf("%v: %d threads of the chat", err, len(list.Threads))
	}
	if status, said := s.ask("ann", "POST", "/v1/responses", fill.Replace(`{"model":"teller","input":[{"role":"user","content":[{"type":"input_file","file_id":"TEXT"}]}]}`)); status != http.StatusBadRequest || !strings.Contains(said, `"param":"input/0/content/0/file_id"`) {
		t.Errorf("a deleted file: %d %s", status, said)
	}
	_, text = s.upload("ann", nil, "purpose", "user_data", "file", "notes.txt:the notes")
	for _, body := range []string{
		`{"model":"teller","input":[{"role":"user","content":[{"type":"input_image","file_id":"TEXT"}]}]}`,
	} {
		if status, said := s.ask("ann", "POST", "/v1/responses", strings.ReplaceAll(body, "TEXT", text.ID)); status != http.StatusBadRequest || !strings.Contains(said, "no image") {
			t.Errorf("a text as an image: %d %s", status, said)
		}
	}
}
