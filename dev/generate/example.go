package main

import (
	"bytes"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// example writes a value.
func (p *page) example(v any) error {
	text, err := indented(v)
	if err == nil {
		p.code("json", text)
	}
	return err
}

// instructive writes a value as example does, unless it has at most so many fields, each with a
// plain value or a list of them: the list of fields says as much.
func (p *page) instructive(v any, plain int) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	var members map[string]jsontext.Value
	if err := json.Unmarshal(b, &members); err != nil {
		return err
	}
	for _, value := range members {
		if kind := value.Kind(); len(members) > plain || kind == '{' || kind == '[' && bytes.ContainsAny(value, "{:") {
			return p.example(v)
		}
	}
	return nil
}

// indented returns a value as the pages show it: on one line if it fits.
func indented(v any) (string, error) {
	b, err := json.Marshal(v, json.Deterministic(true))
	if err != nil {
		return "", err
	}
	var out bytes.Buffer
	err = layOut(&out, b, "")
	return out.String(), err
}

// layOut writes JSON whose first line is indented already, and whose other lines begin with
// margin. An object or list that does not fit on its line has a line for each of its members.
func layOut(out *bytes.Buffer, value jsontext.Value, margin string) error {
	line := value.Clone()
	if err := line.Format(jsontext.SpaceAfterColon(true), jsontext.SpaceAfterComma(true)); err != nil {
		return err
	}
	begun := out.Len() - bytes.LastIndexByte(out.Bytes(), '\n') - 1
	if kind := value.Kind(); begun+len(line) < columns || kind != '{' && kind != '[' {
		out.Write(line)
		return nil
	}
	d := jsontext.NewDecoder(bytes.NewReader(value))
	first, err := d.ReadToken()
	if err != nil {
		return err
	}
	out.WriteString(first.String())
	for i := 0; d.PeekKind() != '}' && d.PeekKind() != ']'; i++ {
		if i > 0 {
			out.WriteByte(',')
		}
		out.WriteString("\n" + margin + "  ")
		member, err := d.ReadValue()
		if err != nil {
			return err
		}
		if first.Kind() == '{' {
			out.Write(member)
			out.WriteString(": ")
			if member, err = d.ReadValue(); err != nil {
				return err
			}
		}
		if err := layOut(out, member.Clone(), margin+"  "); err != nil {
			return err
		}
	}
	last, err := d.ReadToken()
	if err != nil {
		return err
	}
	out.WriteString("\n" + margin + last.String())
	return nil
}
