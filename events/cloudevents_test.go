package events

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/cloudevents/sdk-go/v2/event"
)

// CloudEvents' own SDK decodes every event, finds it valid, and sees the same attributes.
func TestCloudEvents_SDKDecodesEveryEvent(t *testing.T) {
	for _, s := range samples() {
		e := s.event()
		var ce event.Event
		if err := json.Unmarshal(body(t, &e), &ce); err != nil {
			t.Errorf("%s: %v", s.of, err)
			continue
		}
		checkCloudEvent(t, &ce, &e)
	}
}

// A commit's body is a valid batch: the SDK decodes it as a list of events.
func TestCloudEvents_SDKDecodesCommit(t *testing.T) {
	c := commitOf(t, turn())
	var batch []event.Event
	if err := json.Unmarshal(c.Body, &batch); err != nil {
		t.Fatal(err)
	}
	if len(batch) != len(c.Events) {
		t.Fatalf("%d events, want %d", len(batch), len(c.Events))
	}
	for i := range batch {
		checkCloudEvent(t, &batch[i], &c.Events[i])
	}
}

// An event with only the required attributes is a CloudEvent too.
func TestCloudEvents_SDKDecodesMinimalEvent(t *testing.T) {
	e := Event{
		ID: "1", Type: LifecycleDeletedType, Time: start, Tenant: tenant, ThreadID: thread, Version: 1, Data: LifecycleDeleted{},
	}
	var ce event.Event
	if err := json.Unmarshal(body(t, &e), &ce); err != nil {
		t.Fatal(err)
	}
	checkCloudEvent(t, &ce, &e)
}

func checkCloudEvent(t *testing.T, ce *event.Event, e *Event) {
	t.Helper()
	if err := ce.Validate(); err != nil {
		t.Errorf("%s: %v", e.Type, err)
	}
	for name, pair := range map[string][2]any{
		"specversion":     {ce.SpecVersion(), "1.0"},
		"id":              {ce.ID(), e.ID},
		"source":          {ce.Source(), "/" + tenant + "/threads/" + thread},
		"type":            {ce.Type(), string(e.Type)},
		"subject":         {ce.Subject(), e.Subject},
		"datacontenttype": {ce.DataContentType(), "application/json"},
		"dataschema":      {ce.DataSchema(), e.Schema()},
		"time":            {ce.Time().Format(time.RFC3339Nano), e.Time.Go().Format(time.RFC3339Nano)},
	} {
		if pair[0] != pair[1] {
			t.Errorf("%s: %s is %v, want %v", e.Type, name, pair[0], pair[1])
		}
	}
	want := map[string]any{"tenant": tenant, "threadid": thread, "threadversion": int32(e.Version)}
	if e.CommandIndex != 0 {
		want["commandindex"] = int32(e.CommandIndex)
	}
	for name, value := range map[string]string{
		"commandid": e.CommandID, "correlationid": e.Correlation, "causationid": e.Causation, "actor": e.Actor, "traceparent": e.TraceParent,
	} {
		if value != "" {
			want[name] = value
		}
	}
	got := ce.Extensions()
	if len(got) != len(want) {
		t.Errorf("%s: extensions %v, want %v", e.Type, got, want)
	}
	for name, value := range want {
		if got[name] != value {
			t.Errorf("%s: %s is %#v, want %#v", e.Type, name, got[name], value)
		}
	}
	back, err := DecodeEvent(body(t, e))
	if err != nil {
		t.Fatal(err)
	}
	row, _ := Lookup(e.Type)
	data, err := row.decode(ce.Data())
	if err != nil || !same(Event{Type: e.Type, Data: data}, Event{Type: e.Type, Data: back.Data}) {
		t.Errorf("%s: data is %s: %v", e.Type, ce.Data(), err)
	}
}
