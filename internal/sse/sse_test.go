package sse

import (
	"bufio"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
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

// Lines end with LF, CRLF or a lone CR, however they arrive, and after a byte order mark.
func TestLines_Ends(t *testing.T) {
	for stream, want := range map[string][]string{
		"a\nb\n\nc":           {"a", "b", "", "c"},
		"a\r\nb\r\n\r\nc\r\n": {"a", "b", "", "c"},
		"a\rb\r\rc\r":         {"a", "b", "", "c"},
		"a\n\r\n\rb\r\r\n":    {"a", "", "", "b", ""},
		"\ufeffa\n\ufeffb":    {"a", "\ufeffb"},
		"\xef\xbb":            {"\xef\xbb"},
		"":                    nil,
	} {
		for name, lines := range map[string]*bufio.Scanner{
			"at once": bufio.NewScanner(strings.NewReader(stream)), "byte by byte": bufio.NewScanner(iotest.OneByteReader(strings.NewReader(stream))),
		} {
			lines.Split(new(Lines).Split)
			var got []string
			for lines.Scan() {
				got = append(got, lines.Text())
			}
			if !slices.Equal(got, want) || lines.Err() != nil {
				t.Errorf("%q %s: %q, want %q; %v", stream, name, got, want, lines.Err())
			}
		}
	}
}
