package sse

import (
	"slices"
	"strings"
	"testing"
)

func TestDecoder_Data(t *testing.T) {
	for stream, want := range map[string][]string{
		"data: a\n\n":                            {"a"},
		"data:a\ndata: b\n\ndata:  c\n\n":        {"a\nb", " c"},
		": hello\nid: 1\nevent: x\ndata: a\n\n":  {"a"},
		"\n\nevent: none\n\n: ping\n\n":          nil,
		"data\n\n":                               {""},
		"data:\ndata:\n\n":                       {"\n"},
		"datum: a\n\ndata: a:b\n\ndata: cut off": {"a:b"},
	} {
		var d Decoder
		var got []string
		for line := range strings.Lines(stream) {
			if data, complete := d.Line([]byte(strings.TrimSuffix(line, "\n"))); complete {
				got = append(got, string(data))
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", stream, got, want)
		}
	}
}
