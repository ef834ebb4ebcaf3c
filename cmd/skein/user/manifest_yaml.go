package user

import (
	"bytes"
	"errors"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"go.yaml.in/yaml/v3"

	"github.com/skein-threads/skein/events"
)

// Bounds of a document, so that a few aliases cannot make it endless.
const (
	maxDepth = 64
	maxBytes = events.MaxPayload
)

// readYAML reads YAML documents, and lists in them.
func readYAML(name string, raw []byte) ([]document, error) {
	var list []document
	for dec := yaml.NewDecoder(bytes.NewReader(raw)); ; {
		var doc yaml.Node
		err := dec.Decode(&doc)
		switch {
		case errors.Is(err, io.EOF):
			return list, nil
		case err != nil:
			line, reason := lineOf(err)
			return nil, wrong(name, line, "not YAML: %s", reason)
		}
		bodies := doc.Content
		if len(bodies) == 1 && bodies[0].Kind == yaml.SequenceNode {
			bodies = bodies[0].Content
		}
		for _, body := range bodies {
			if body.ShortTag() == "!!null" {
				continue
			}
			y := &yamlReader{file: name, lines: map[string]int{}}
			if err := y.value(body, ""); err != nil {
				return nil, err
			}
			list = append(list, document{json: y.out, lines: y.lines})
		}
	}
}

// lineOf takes the library's errors apart, whose line stands in their text.
func lineOf(err error) (line int, reason string) {
	reason = strings.TrimPrefix(err.Error(), "yaml: ")
	if rest, ok := strings.CutPrefix(reason, "line "); ok {
		number, after, _ := strings.Cut(rest, ": ")
		if n, err := strconv.Atoi(number); err == nil {
			return n, after
		}
	}
	return 1, reason
}

// yamlReader writes one document as JSON.
type yamlReader struct {
	file  string
	out   []byte
	lines map[string]int
	depth int
}

func (y *yamlReader) wrong(n *yaml.Node, format string, args ...any) error {
	return wrong(y.file, n.Line, format, args...)
}

// value writes a value, which lies at a JSON pointer.
func (y *yamlReader) value(n *yaml.Node, at jsontext.Pointer) error {
	if y.depth++; y.depth > maxDepth {
		return y.wrong(n, "it lies more than %d levels deep", maxDepth)
	}
	defer func() { y.depth-- }()
	if len(y.out) > maxBytes {
		return y.wrong(n, "the document has more than %d bytes", maxBytes)
	}
	if _, known := y.lines[string(at)]; !known {
		y.lines[string(at)] = n.Line
	}
	switch n.Kind {
	case yaml.MappingNode:
		return y.mapping(n, at)
	case yaml.SequenceNode:
		return y.sequence(n, at)
	case yaml.AliasNode:
		return y.value(n.Alias, at)
	}
	return y.scalar(n)
}

func (y *yamlReader) mapping(n *yaml.Node, at jsontext.Pointer) error {
	if n.ShortTag() != "!!map" {
		return y.wrong(n, "the tag %.64s is not known here", n.Tag)
	}
	y.out = append(y.out, '{')
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		name, value := n.Content[i], n.Content[i+1]
		switch {
		case name.ShortTag() == "!!merge":
			return y.wrong(name, "merge keys are no YAML 1.2; write the members out")
		case name.Kind != yaml.ScalarNode:
			return y.wrong(name, "a name is a plain text")
		case seen[name.Value]:
			return y.wrong(name, "%.64s stands twice", name.Value)
		}
		seen[name.Value] = true
		if i > 0 {
			y.out = append(y.out, ',')
		}
		if err := y.text(name); err != nil {
			return err
		}
		y.out = append(y.out, ':')
		inside := at.AppendToken(name.Value)
		y.lines[string(inside)] = name.Line
		if err := y.value(value, inside); err != nil {
			return err
		}
	}
	y.out = append(y.out, '}')
	return nil
}

func (y *yamlReader) sequence(n *yaml.Node, at jsontext.Pointer) error {
	if n.ShortTag() != "!!seq" {
		return y.wrong(n, "the tag %.64s is not known here", n.Tag)
	}
	y.out = append(y.out, '[')
	for i, v := range n.Content {
		if i > 0 {
			y.out = append(y.out, ',')
		}
		if err := y.value(v, at.AppendToken(strconv.Itoa(i))); err != nil {
			return err
		}
	}
	y.out = append(y.out, ']')
	return nil
}

func (y *yamlReader) scalar(n *yaml.Node) error {
	switch n.ShortTag() {
	case "!!str", "!!timestamp": // which JSON has not: it stays as it is written
		return y.text(n)
	case "!!bool":
		y.out = strconv.AppendBool(y.out, strings.EqualFold(n.Value, "true"))
	case "!!null":
		y.out = append(y.out, "null"...)
	case "!!int", "!!float":
		return y.number(n)
	default:
		return y.wrong(n, "the tag %.64s is not known here", n.Tag)
	}
	return nil
}

func (y *yamlReader) text(n *yaml.Node) error {
	out, err := jsontext.AppendQuote(y.out, n.Value)
	if err != nil {
		return y.wrong(n, "the text is not UTF-8")
	}
	y.out = out
	return nil
}

// number writes a number as it is written, if JSON writes it so too.
func (y *yamlReader) number(n *yaml.Node) error {
	if v := events.JSON(n.Value); jsontext.Value(v).Kind() == '0' && jsontext.Value(v).IsValid() {
		y.out = append(y.out, n.Value...)
		return nil
	}
	digits := strings.TrimLeft(n.Value, "+-")
	var whole int64
	var real float64
	switch {
	case strings.Contains(digits, "_"), len(digits) > 1 && digits[0] == '0' && digits[1] >= '0' && digits[1] <= '9':
		return y.wrong(n, "the number %.64s means different things to different readers; write it plainly, or in quotes if it is a text", n.Value)
	case n.Decode(&whole) == nil && n.ShortTag() == "!!int":
		y.out = strconv.AppendInt(y.out, whole, 10)
	case n.Decode(&real) == nil && !math.IsInf(real, 0) && !math.IsNaN(real):
		y.out = strconv.AppendFloat(y.out, real, 'g', -1, 64)
	default:
		return y.wrong(n, "JSON has no number %.64s", n.Value)
	}
	return nil
}
