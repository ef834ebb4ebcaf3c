package events

import (
	"bytes"
	"os"
	"reflect"
	"strings"
	"testing"
)

// EK-173, EK-174: an event of an unknown type or version keeps its bytes.
func TestDecodeEvent_KeepsUnknownEvents(t *testing.T) {
	e := samples()[0].event()
	known := string(body(t, &e))
	for name, change := range map[string]*strings.Replacer{
		"type":    strings.NewReplacer("thread.created", "acme.thing.happened"),
		"version": strings.NewReplacer("thread.created:1", "thread.created:2"),
		"schema":  strings.NewReplacer("urn:skein:event:thread.created:1", "https://example.com/x"),
		"none":    strings.NewReplacer(`"dataschema":"urn:skein:event:thread.created:1",`, ""),
		"scalar":  strings.NewReplacer(known[strings.Index(known, `"data":{`):], `"data":1.50}`, "thread.created", "acme.happened"),
		"no data": strings.NewReplacer(known[strings.Index(known, `,"data":{`):], `}`, "thread.created", "acme.happened"),
	} {
		raw := []byte(change.Replace(known))
		got, err := DecodeEvent(raw)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		u, ok := got.Data.(Unknown)
		if !ok || u.Reason == "" || u.Schema != got.Schema() {
			t.Errorf("%s: data %#v", name, got.Data)
		}
		if again := body(t, &got); !bytes.Equal(again, raw) {
			t.Errorf("%s:\n%s\nbecame\n%s", name, raw, again)
		}
		if !bytes.Equal(got.Raw(), raw) {
			t.Errorf("%s: Raw is %s", name, got.Raw())
		}
	}
}

func TestDecodeEvent_UnknownDataMustBeJSON(t *testing.T) {
	e := samples()[0].event()
	e.Type = "acme.happened"
	for _, bad := range []string{"", "{", `{"a":1}}`, `{"a":1,"a":2}`, "{\"a\":\"\xff\"}"} {
		e.Data = Unknown{Raw: raw(bad)}
		before := []byte("[")
		if got, err := e.Append(before); err == nil || string(got) != "[" {
			t.Errorf("%q was written: %s, %v", bad, got, err)
		}
	}
}

// A stored event of version 1 is decoded as the current version, and never rewritten.
func TestDecodeEvent_Upcasts(t *testing.T) {
	raw, err := os.ReadFile("testdata/old/step.status.changed.1.json")
	if err != nil {
		t.Fatal(err)
	}
	raw = bytes.TrimSuffix(raw, []byte("\n"))
	e, err := DecodeEvent(raw)
	if err != nil {
		t.Fatal(err)
	}
	want := StepStatusChanged{
		ExecutionID: execID, From: StepRunning, To: StepFailed, ToolCalls: []byte(`[{"toolCallId":"tc_1"}]`),
		ContinueLoop: to(false), ErrorText: "the tool failed",
	}
	if !reflect.DeepEqual(e.Data, want) {
		t.Errorf("%#v, want %#v", e.Data, want)
	}
	if e.Schema() != "urn:skein:event:step.status.changed:1" || !bytes.Equal(e.Raw(), raw) {
		t.Errorf("it was rewritten: %s %s", e.Schema(), e.Raw())
	}
	broken := bytes.Replace(raw, []byte(`"error":"the tool failed"`), []byte(`"error":5`), 1)
	if _, err := DecodeEvent(broken); err == nil {
		t.Error("broken data of version 1 is taken")
	}
}

// An upcast event that is encoded again names the schema of its current data.
func TestAppend_UpcastEventNamesCurrentSchema(t *testing.T) {
	raw, err := os.ReadFile("testdata/old/step.status.changed.1.json")
	if err != nil {
		t.Fatal(err)
	}
	old, err := DecodeEvent(raw)
	if err != nil {
		t.Fatal(err)
	}
	again, err := DecodeEvent(body(t, &old))
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(again.Data, old.Data) {
		t.Errorf("%#v became %#v", old.Data, again.Data)
	}
}
