package openresponses_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/skein-threads/skein"
)

// picture is a PNG of many bytes, which no event can hold.
func picture(bytes int, fill byte) []byte {
	return append([]byte("\x89PNG\r\n\x1a\n"), strings.Repeat(string(rune(fill)), bytes)...)
}

func dataURL(data []byte) string {
	return "data:image/png;base64," + base64.StdEncoding.EncodeToString(data)
}

// file reads a file at the URL that an answer has.
func (w *world) file(path any) []byte {
	w.t.Helper()
	res, end := w.send(http.MethodGet, fmt.Sprint(path), "")
	defer end()
	raw, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		w.t.Fatalf("%v: %d, %v", path, res.StatusCode, err)
	}
	return raw
}

// A picture of megabytes reaches the model as it was sent, at every turn; readers get a URL of it.
func TestCreate_LargePictures(t *testing.T) {
	t.Parallel()
	w := start(t)
	png := picture(3<<20, 'a')
	input := `[{"role":"user","content":[{"type":"input_text","text":"what is this?"},{"type":"input_image","detail":"low","image_url":"` + dataURL(png) + `"}]}]`
	first := w.must("POST", "/v1/responses", `{"model":"triage","input":`+input+`}`)
	sees := func(what string) {
		t.Helper()
		if asked := string(raw(w.model.last()["input"])); strings.Count(asked, dataURL(png)) != 1 || !strings.Contains(asked, `"detail":"low"`) || strings.Contains(asked, "skein:") {
			t.Errorf("%s: the model does not see the picture: %.300s", what, asked)
		}
	}
	sees("a new response")
	w.must("POST", "/v1/responses", `{"model":"triage","input":"and now?","previous_response_id":"`+first["id"].(string)+`"}`)
	sees("the next turn")
	items := w.must("GET", "/v1/responses/"+first["id"].(string)+"/input_items", "")
	item := items["data"].([]any)[0].(object)
	if got := w.file(item["content"].([]any)[1].(object)["image_url"]); !bytes.Equal(got, png) {
		t.Errorf("the file has %d bytes", len(got))
	}
	w.must("POST", "/v1/responses", `{"model":"triage","input":[{"type":"item_reference","id":"`+item["id"].(string)+`"}]}`)
	sees("another thread, by reference")
	conversation := w.must("POST", "/v1/conversations", `{"items":`+input+`}`)
	w.must("POST", "/v1/responses", `{"model":"triage","input":"look","conversation":"`+conversation["id"].(string)+`"}`)
	sees("a conversation")
	w.must("POST", "/v1/responses", `{"model":"triage","store":false,"input":`+input+`}`)
	sees("a response that is not stored")

	status, refused := w.do("POST", "/v1/responses", `{"model":"triage","input":[{"role":"user","content":[{"type":"input_file","filename":"scan.pdf","file_data":"`+
		dataURL(picture(20<<20, 'b'))+`"}]}]}`)
	problem := refused["error"].(object)
	if said := fmt.Sprint(problem["message"]); status != http.StatusRequestEntityTooLarge || !strings.Contains(said, "the file scan.pdf") || !strings.Contains(fmt.Sprint(problem["param"]), "input/0") {
		t.Errorf("%d %v", status, refused)
	}
}

// A picture that a tool returns reaches the model as a picture.
func TestCreate_ToolReturnsPicture(t *testing.T) {
	t.Parallel()
	w := start(t)
	png := picture(2<<20, 'c')
	w.s.Must(w.s.Tool(skein.NewTool("shoot", func(context.Context, struct{}) (any, error) {
		return []object{{"type": "input_text", "text": "the page"}, {"type": "input_image", "image_url": dataURL(png)}}, nil
	}, skein.Description("Takes a screenshot."))))
	w.define("tool", `{"name":"shoot","description":"Takes a screenshot.","type":"go"}`, "agent", `{"name":"shooter","type":"ai_human","model":"m","tools":["shoot"]}`)
	w.model.answers(func(a *answer, asked map[string]any) {
		if strings.Contains(string(raw(asked["input"])), "function_call_output") {
			a.says("I see.")
		} else {
			a.calls("call_1", "shoot", "{}")
		}
		a.ends("response.completed", "")
	})
	w.must("POST", "/v1/responses", `{"model":"shooter","input":"look"}`)
	input := w.model.last()["input"].([]any)
	output, ok := input[len(input)-1].(object)["output"].([]any)
	if !ok || len(output) != 2 || output[1].(object)["image_url"] != dataURL(png) {
		t.Errorf("the model sees %.200v", input[len(input)-1])
	}
}

// A picture that the model's provider makes is stored, and readers get a URL of it.
func TestCreate_ModelReturnsPicture(t *testing.T) {
	t.Parallel()
	w := start(t)
	png := picture(2<<20, 'd')
	w.model.answers(func(a *answer, _ map[string]any) {
		item := `{"type":"image_generation_call","id":"ig_1","status":"completed","result":"` + base64.StdEncoding.EncodeToString(png) + `"}`
		a.event("response.output_item.done", `"output_index":0,"item":%s`, item)
		a.items = append(a.items, item)
		a.ends("response.completed", "")
	})
	got := w.must("POST", "/v1/responses", `{"model":"triage","input":"draw"}`)
	item := got["output"].([]any)[0].(object)
	if item["type"] != "image_generation_call" || !bytes.Equal(w.file(item["result"]), png) {
		t.Errorf("%.300v", item)
	}
}
