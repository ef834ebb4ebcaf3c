package events

import (
	"strings"
	"testing"
)

// The vectors of RFC 7396, appendix A, and what they leave open: order, bytes, nulls within
// arrays of a patch, escaped names.
func TestMergePatch(t *testing.T) {
	tests := []struct{ doc, patch, want string }{
		{`{"a":"b"}`, `{"a":"c"}`, `{"a":"c"}`},
		{`{"a":"b"}`, `{"b":"c"}`, `{"a":"b","b":"c"}`},
		{`{"a":"b"}`, `{"a":null}`, `{}`},
		{`{"a":"b","b":"c"}`, `{"a":null}`, `{"b":"c"}`},
		{`{"a":["b"]}`, `{"a":"c"}`, `{"a":"c"}`},
		{`{"a":"c"}`, `{"a":["b"]}`, `{"a":["b"]}`},
		{`{"a":{"b":"c"}}`, `{"a":{"b":"d","c":null}}`, `{"a":{"b":"d"}}`},
		{`{"a":[{"b":"c"}]}`, `{"a":[1]}`, `{"a":[1]}`},
		{`["a","b"]`, `["c","d"]`, `["c","d"]`},
		{`{"a":"b"}`, `["c"]`, `["c"]`},
		{`{"a":"foo"}`, `null`, `null`},
		{`{"a":"foo"}`, `"bar"`, `"bar"`},
		{`{"e":null}`, `{"a":1}`, `{"e":null,"a":1}`},
		{`[1,2]`, `{"a":"b","c":null}`, `{"a":"b"}`},
		{`{}`, `{"a":{"bb":{"ccc":null}}}`, `{"a":{"bb":{}}}`},
		{``, `{"a":1}`, `{"a":1}`},
		{`null`, `{"a":{"b":1}}`, `{"a":{"b":1}}`},
		{`{}`, `{"a":[{"b":null,"c":1}]}`, `{"a":[{"b":null,"c":1}]}`},
		{`{"z":1,"a":2,"m":3}`, `{"y":4,"a":5,"b":6}`, `{"z":1,"a":5,"m":3,"y":4,"b":6}`},
		{`{"n":1.50,"t":"<&>"}`, `{"u":1e2}`, `{"n":1.50,"t":"<&>","u":1e2}`},
		{`{"\u0061":1}`, `{"a":2}`, `{"\u0061":2}`},
	}
	for _, tt := range tests {
		for range 20 { // the order is the same each time
			got, err := MergePatch([]byte(tt.doc), []byte(tt.patch))
			if err != nil || string(got) != tt.want {
				t.Fatalf("%s patched by %s is %s, %v; want %s", tt.doc, tt.patch, got, err, tt.want)
			}
		}
	}
	for _, bad := range []string{``, `{`, `{"a":}`, `{"a":1,"a":2}`, `nul`} {
		if got, err := MergePatch([]byte(`{"a":1}`), []byte(bad)); err == nil {
			t.Errorf("patched by %q: %s", bad, got)
		}
	}
	if _, err := MergePatch([]byte(`{"a":`), []byte(`{"b":1}`)); err == nil || !strings.Contains(err.Error(), "merge patch") {
		t.Errorf("a broken document: %v", err)
	}
}
