package events

import (
	"bytes"
	"fmt"

	"github.com/go-json-experiment/json"
)

// A commit of an older log names the part that holds a value: outputOf of a result's item, and
// key of a placed part. Commits that name parts are decoded, and encoded again, as they are.

// withoutOutput returns the content of a result without its output.
func withoutOutput(content JSON) (JSON, error) {
	var r sharedResult
	if err := json.Unmarshal(content, &r); err != nil {
		return nil, err
	}
	r.Output = nil
	return json.Marshal(r, json.Deterministic(true))
}

// withOutput returns the content of a result with the output that a part holds.
func withOutput(content, part JSON) (JSON, error) {
	var r sharedResult
	if err := json.Unmarshal(content, &r, json.RejectUnknownMembers(true)); err != nil {
		return nil, err
	}
	var p struct {
		Output JSON `json:"output"`
	}
	if err := json.Unmarshal(part, &p); err != nil {
		return nil, err
	}
	if r.Output != nil || p.Output == nil {
		return nil, fmt.Errorf("the output is in both the part and the item")
	}
	return json.Marshal(CallResult{CallID: r.CallID, Output: p.Output, IsError: r.IsError, Name: r.Name}, json.Deterministic(true))
}

// sharedResult is a CallResult that may lack its output.
type sharedResult struct {
	CallID  string `json:"callId"`
	Output  JSON   `json:"output,omitzero"`
	IsError bool   `json:"isError,omitzero"`
	Name    string `json:"name,omitzero"`
}

// namesParts reports whether an event names parts of its commit.
func (e *Event) namesParts() bool {
	switch d := e.Data.(type) {
	case ItemCreated:
		return d.OutputOf != "" && d.Type == ActionResult
	case MessageEdited:
		for i := range d.Parts {
			if d.Parts[i].Key != "" {
				return true
			}
		}
	}
	return false
}

// appendNamed appends an event to b without the values of the parts that it names.
func (e *Event) appendNamed(b []byte) ([]byte, error) {
	short := *e
	switch d := e.Data.(type) {
	case ItemCreated:
		content, err := withoutOutput(d.Content)
		if err != nil {
			return b, fmt.Errorf("event %s: content: %w", e.Type, err)
		}
		d.Content = content
		short.Data = d
	case MessageEdited:
		stored := storedEdit{MessageEdited: d, Parts: make([]storedPart, len(d.Parts))}
		for i, p := range d.Parts {
			stored.Parts[i] = storedPart(p)
			if p.Key != "" {
				stored.Parts[i].Part = nil
			}
		}
		short.Data = stored
	}
	return short.Append(b)
}

// storedEdit and storedPart are the form of a MessageEdited in the body of a commit.
type (
	storedEdit struct {
		MessageEdited
		Parts []storedPart `json:"parts,omitempty"`
	}
	storedPart struct {
		Place int64  `json:"place"`
		Part  JSON   `json:"part,omitzero"`
		Key   string `json:"key,omitzero"`
	}
)

// resolve completes the events that name parts of the commit. The error names an event that
// refers to a part that does not precede it in the commit, or that also holds the part itself.
func (c *Commit) resolve() error {
	size := 0
	for i := range c.Events {
		e := &c.Events[i]
		if !e.namesParts() {
			continue
		}
		if err := c.whole(i); err != nil {
			return fmt.Errorf("event %s %s: %w", e.Type, clip(e.ID), err)
		}
		stored := e.raw
		raw, err := e.Append(nil)
		if err != nil {
			return err
		}
		if size += len(raw); size > maxShared {
			return fmt.Errorf("event %s %s: the commit's events have more than %d bytes in total", e.Type, clip(e.ID), maxShared)
		}
		e.raw, e.stored = raw, stored
	}
	return nil
}

// keep is the counterpart of resolve for a new commit: it checks that decoding the body will
// return the events that were encoded.
func (c *Commit) keep() error {
	for i := range c.Events {
		e := &c.Events[i]
		if !e.namesParts() {
			continue
		}
		whole := e.Data
		short, err := DecodeEvent(e.raw)
		if err != nil {
			return err
		}
		e.Data = short.Data
		if err := c.whole(i); err != nil {
			return fmt.Errorf("event %s: %w", e.Type, err)
		}
		stored := e.raw
		if e.raw, err = e.Append(nil); err != nil {
			return err
		}
		e.stored, e.Data = stored, whole
		if said, err := e.Append(nil); err != nil || !bytes.Equal(said, e.raw) {
			return fmt.Errorf("event %s: the part that it names differs from the commit's", e.Type)
		}
	}
	return nil
}

// whole completes one event.
func (c *Commit) whole(i int) error {
	e := &c.Events[i]
	switch d := e.Data.(type) {
	case ItemCreated:
		part, err := c.part(i, d.OutputOf)
		if err != nil {
			return err
		}
		if d.Content, err = withOutput(d.Content, part); err != nil {
			return fmt.Errorf("output: %w", err)
		}
		e.Data = d
	case MessageEdited:
		parts := make([]PlacedPart, len(d.Parts))
		for n, p := range d.Parts {
			if parts[n] = p; p.Key == "" {
				continue
			}
			if p.Part != nil {
				return fmt.Errorf("it both holds and names part %s", clip(p.Key))
			}
			var err error
			if parts[n].Part, err = c.part(i, p.Key); err != nil {
				return err
			}
		}
		d.Parts = parts
		e.Data = d
	}
	return nil
}

// part returns a part that an event of the commit names.
func (c *Commit) part(before int, key string) (JSON, error) {
	for i := before - 1; i >= 0; i-- {
		switch d := c.Events[i].Data.(type) {
		case PartUpdated:
			if d.Key == key {
				return d.Part, nil
			}
		case PartCreated:
			if d.Key == key {
				return d.Part, nil
			}
		}
	}
	return nil, fmt.Errorf("no earlier event of the commit has part %s", clip(key))
}
