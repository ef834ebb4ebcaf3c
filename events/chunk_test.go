package events

import (
	"errors"
	"os"
	"strings"
	"testing"
)

// Each kind of chunk requires the data that its row declares (EK-126, EK-127, EK-128, EK-129,
// EK-130, EK-131, EK-132).
func TestKindsOfChunks(t *testing.T) {
	full := map[string]string{
		"data-context-id":       `{"contextId":"ctx_1"}`,
		"data-context-substate": `{"substate":"tools"}`,
		"data-thread-ping":      `{"at":"2026-02-20T12:00:00.000Z"}`,
		"tool-output-available": `{"toolCallId":"tc_1","output":{"ok":true}}`,
		"tool-output-error":     `{"toolCallId":"tc_1","errorText":"the shop is closed"}`,
		"finish":                `{"finishReason":"stop"}`,
		"text-delta":            `{"id":"t1","delta":"Hel"}`,
		"reasoning-delta":       `{"id":"r1","delta":"so"}`,
		"reasoning-end":         `{"id":"r1"}`,
		"tool-input-start":      `{"toolCallId":"tc_1","toolName":"find_order"}`,
		"tool-input-delta":      `{"toolCallId":"tc_1","inputTextDelta":"{\"ord"}`,
		"tool-input-available":  `{"toolCallId":"tc_1","toolName":"find_order","input":null}`,
	}
	for _, k := range ChunkKinds() {
		if most := len((chunkData{}).is); len(k.Fields) > most {
			t.Errorf("%s has more fields than the %d that are looked for", k.Type, most)
		}
		data, ok := full[k.Type]
		if !ok {
			t.Errorf("%s has no example here", k.Type)
			continue
		}
		delete(full, k.Type)
		delta, err := CheckChunk(k.Type, JSON(data))
		if err != nil || (delta != nil) != (k.Text != "") {
			t.Errorf("%s: %v, %v", k.Type, delta, err)
		}
		for _, f := range k.Fields {
			if f.Optional {
				continue
			}
			for _, bad := range []string{strings.Replace(data, `"`+f.Name+`"`, `"other"`, 1), "", "null", "[]", "{"} {
				if _, err := CheckChunk(k.Type, JSON(bad)); !errors.Is(err, &Error{Code: InvalidRequest}) {
					t.Errorf("%s with %s: %v", k.Type, bad, err)
				}
			}
		}
		if _, err := CheckChunk(k.Type, JSON(`{"extra":1,`+data[1:])); err != nil {
			t.Errorf("%s with a field more: %v", k.Type, err)
		}
	}
	for kind := range full {
		t.Errorf("%s is not a kind", kind)
	}
	if _, err := CheckChunk(ChunkTextDelta, JSON(`{"id":1,"delta":"x"}`)); err == nil {
		t.Error("an id that is a number was taken")
	}
	if d, err := CheckChunk(ChunkTextDelta, JSON(`{"id":"1","delta":"x","more":1}`)); d != nil || err != nil {
		t.Errorf("a delta that says more than its text: %v, %v", d, err)
	}
}

func TestCheckChunk_OtherKinds(t *testing.T) {
	for kind, ok := range map[string]bool{
		"data-weather": true, "source-url": true, "x": true, "data-my_Part": true,
		"": false, "-": false, "a--b": false, "a.b": false, "a b": false, "a>": false, "data-ü": false, strings.Repeat("a", 129): false,
	} {
		if _, err := CheckChunk(kind, nil); (err == nil) != ok {
			t.Errorf("%q: %v", kind, err)
		}
	}
	for data, ok := range map[string]bool{`1`: true, `{"a":[]}`: true, `{`: false, `{} {}`: false, "\"\xff\"": false} {
		if _, err := CheckChunk("data-weather", JSON(data)); (err == nil) != ok {
			t.Errorf("%q: %v", data, err)
		}
	}
	huge := JSON(`"` + strings.Repeat("x", MaxEventBytes) + `"`)
	if _, err := CheckChunk("data-weather", huge); !errors.Is(err, &Error{Code: PayloadTooLarge}) {
		t.Errorf("a chunk of %d bytes: %v", len(huge), err)
	}
}

func TestCheckChunk_Deltas(t *testing.T) {
	for _, k := range ChunkKinds() {
		data, err := DeltaData(k.Type, Delta{Key: "k\"1", Text: "a\nü"})
		if k.Text == "" {
			if err == nil {
				t.Errorf("%s is no delta", k.Type)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if d, err := CheckChunk(k.Type, data); err != nil || d == nil || *d != (Delta{Key: "k\"1", Text: "a\nü"}) {
			t.Errorf("%s: %s returns %v, %v", k.Type, data, d, err)
		}
	}
}

// docs name every kind with every field (EK-132).
func TestChunkKinds_AreDocumented(t *testing.T) {
	page, err := os.ReadFile("../docs/protocols.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range ChunkKinds() {
		_, rest, ok := strings.Cut(string(page), "| `"+k.Type+"` |")
		if !ok {
			t.Errorf("docs/protocols.md does not tell of %s", k.Type)
			continue
		}
		line, _, _ := strings.Cut(rest, "\n")
		for _, f := range k.Fields {
			if !strings.Contains(line, "`"+f.Name) {
				t.Errorf("docs/protocols.md: %s has no %s", k.Type, f.Name)
			}
		}
	}
}
