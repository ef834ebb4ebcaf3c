package attachment_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/attachment"
)

// folder is the files of a thread.
type folder map[string][]byte

func (f folder) StatFile(_ context.Context, path string) (*events.FileRecord, error) {
	if f[path] == nil {
		return nil, nil
	}
	return &events.FileRecord{ThreadFile: events.ThreadFile{Path: path, Size: int64(len(f[path])), MimeType: "image/png"}}, nil
}

func (f folder) ReadFile(_ context.Context, path string) ([]byte, error) { return f[path], nil }

func (f folder) WriteFile(_ context.Context, path string, data []byte, _ string, _ events.WriteFileOptions) (*events.FileRecord, error) {
	f[path] = bytes.Clone(data)
	return nil, nil
}

// Whatever holds contents holds them again after they were stored and loaded.
func TestExtract_LoadRestores(t *testing.T) {
	source := rand.NewChaCha8([32]byte{1})
	random := rand.New(source)
	picture := func() string {
		data := make([]byte, random.IntN(256<<10))
		_, _ = source.Read(data) // it never fails
		return attachment.DataURL("image/png", data)
	}
	var value func(depth int) any
	value = func(depth int) any {
		switch n := random.IntN(7); {
		case n == 0:
			return map[string]any{"type": "input_image", "image_url": picture(), "detail": "low"}
		case n == 1:
			return map[string]any{"type": "input_file", "file_data": picture(), "filename": "a.png"}
		case n == 2:
			return map[string]any{"type": "image_generation_call", "result": strings.TrimPrefix(picture(), "data:image/png;base64,"), "n": 1.5}
		case n == 3 && depth < 4:
			return map[string]any{"type": "tool-x", "output": value(depth + 1), "input": map[string]any{}}
		case n == 4 && depth < 4:
			return []any{value(depth + 1), value(depth + 1)}
		case n == 5:
			return map[string]any{"type": "input_text", "text": picture()} // a text stays
		}
		return random.IntN(9)
	}
	for range 200 {
		raw, err := json.Marshal([]any{value(0), value(0)}, json.Deterministic(true))
		if err != nil {
			t.Fatal(err)
		}
		files := folder{}
		stored, err := attachment.Extract(raw, random.IntN(2)*attachment.ItemBytes, attachment.Keep(t.Context(), files))
		if err != nil {
			t.Fatal(err)
		}
		if again, err := attachment.Extract(stored, len(raw), func(attachment.Content) error { return errors.New("stored again") }); err != nil || !bytes.Equal(again, stored) {
			t.Fatalf("%v: %.200s", err, again)
		}
		left := int64(1 << 40)
		loaded, err := attachment.Load(t.Context(), files, stored, &left)
		if err != nil || !bytes.Equal(loaded, raw) {
			t.Fatalf("%v: %.300s\nnot %.300s", err, loaded, raw)
		}
		if served := attachment.Served(stored, "T-1"); strings.Contains(string(served), `"skein:`) || strings.Count(string(served), "/api/threads/T-1/files/attachments/") < len(files) {
			t.Fatalf("served %.300s", served)
		}
	}
}

// What cannot be had becomes a text that says so, and what is too large is refused by its name.
func TestExtract_Bounds(t *testing.T) {
	large := attachment.DataURL("image/png", make([]byte, attachment.MaxBytes+1))
	_, err := attachment.Extract(events.JSON(`[{"type":"input_file","filename":"scan.pdf","file_data":"`+large+`"}]`), attachment.ItemBytes, func(attachment.Content) error { return nil })
	if e := events.AsError(err); e.Code != events.PayloadTooLarge || !strings.HasPrefix(e.Message, "the file scan.pdf ") {
		t.Errorf("%v", err)
	}
	files := folder{}
	part := `{"image_url":"` + attachment.DataURL("image/png", make([]byte, 100<<10)) + `","type":"input_image"}`
	stored, err := attachment.Extract(events.JSON(part), 0, attachment.Keep(t.Context(), files))
	if err != nil || len(files) != 1 {
		t.Fatal(err)
	}
	for _, left := range []int64{0, 100<<10 - 1} {
		out, err := attachment.Load(t.Context(), files, stored, &left)
		if err != nil || !strings.Contains(string(out), "is not available here") || !strings.Contains(string(out), `"input_text"`) {
			t.Errorf("%s, %v", out, err)
		}
	}
	for _, other := range []string{`{"type":"input_image","image_url":"skein:/secret"}`, `{"type":"input_text","text":"skein:/attachments/x"}`} {
		left := int64(1 << 40)
		if out, err := attachment.Load(t.Context(), files, events.JSON(other), &left); err != nil || string(out) != other {
			t.Errorf("%s, %v", out, err)
		}
	}
	if got := fmt.Sprint(len(stored)); len(got) > 3 {
		t.Errorf("the reference takes %s bytes", got)
	}
}
