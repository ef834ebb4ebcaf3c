package arguments

import "testing"

// What released clients refuse is found, and left out, wherever it is; all else is as it was.
func TestWithout(t *testing.T) {
	for in, want := range map[string]string{
		`{"type":"finish"}`: `{"type":"finish"}`,
		`{"a":{"__proto__":{"x":1},"b":[{"__proto__":1},2]}}`: `{"a":{"b":[{},2]}}`,
		`{"\u005f_proto__":1,"b":"\u00e4"}`:                   `{"b":"\u00e4"}`,
		`{"constructor":{"prototype":{"x":1}},"b":1}`:         `{"b":1}`,
		`{"constructor":{"name":"x"},"prototype":1}`:          `{"constructor":{"name":"x"},"prototype":1}`,
		`{"text":"\"__proto__\": 1","n":1e400}`:               `{"text":"\"__proto__\": 1","n":1e400}`,
		`["__proto__",[],{}]`:                                 `["__proto__",[],{}]`,
		`{ "b" : 1 }`:                                         `{ "b" : 1 }`,
		`{"\ud83d":{"__proto__":1}}`:                          `{"\ud83d":{}}`,
		`{"__proto__":`:                                       `{"__proto__":`,
	} {
		if got := string(WithoutPrototype([]byte(in))); got != want {
			t.Errorf("%s is sent as %s, not %s", in, got, want)
		}
		if HasPrototype([]byte(in)) != (in != want) {
			t.Errorf("%s: found %v", in, in == want)
		}
	}
}
