package conformance

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/cloudevents/sdk-go/v2/event"

	"github.com/skein-threads/skein/events"
)

// stored returns one of every event, as it is in the log.
func stored(t *testing.T) map[string][]byte {
	t.Helper()
	files, err := filepath.Glob("../../events/testdata/golden/*.json")
	if err != nil || len(files) < 60 {
		t.Fatalf("%d events: %v", len(files), err)
	}
	out := map[string][]byte{}
	for _, file := range files {
		body, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		out[filepath.Base(file)] = bytes.TrimSpace(body)
	}
	return out
}

// CloudEvents' own SDK decodes every event, finds it valid, and sees the same attributes.
func TestCloudEvents_SDKDecodesEveryEvent(t *testing.T) {
	t.Parallel()
	for name, body := range stored(t) {
		checkCloudEvent(t, name, body)
	}
}

// A commit's body is a valid batch: the SDK decodes it as a list of events.
func TestCloudEvents_SDKDecodesCommit(t *testing.T) {
	t.Parallel()
	var list []events.Event
	for _, name := range []string{"thread.created.json", "item.created.json"} {
		e, err := events.DecodeEvent(stored(t)[name])
		if err != nil {
			t.Fatal(err)
		}
		e.Version = int64(len(list) + 1)
		list = append(list, e)
	}
	c, err := events.NewCommit("", list)
	if err != nil {
		t.Fatal(err)
	}
	var batch []json.RawMessage
	if err := json.Unmarshal(c.Body, &batch); err != nil || len(batch) != len(list) {
		t.Fatalf("%d events: %v", len(batch), err)
	}
	for _, body := range batch {
		checkCloudEvent(t, "in a commit", body)
	}
}

// An event with only the required attributes is a CloudEvent too.
func TestCloudEvents_SDKDecodesMinimalEvent(t *testing.T) {
	t.Parallel()
	e := events.Event{
		ID: "1", Type: events.LifecycleDeletedType, Time: events.TimeOf(time.Unix(1_800_000_000, 1000)), Tenant: "acme",
		ThreadID: "T-0195e5d0-3c1a-7b2e-9f44-1d2e3f405162", Version: 1, Data: events.LifecycleDeleted{},
	}
	body, err := e.Append(nil)
	if err != nil {
		t.Fatal(err)
	}
	checkCloudEvent(t, "minimal", body)
}

func checkCloudEvent(t *testing.T, name string, body []byte) {
	t.Helper()
	var ce event.Event
	if err := json.Unmarshal(body, &ce); err != nil {
		t.Errorf("%s: %v", name, err)
		return
	}
	if err := ce.Validate(); err != nil {
		t.Errorf("%s: %v", name, err)
	}
	e, err := events.DecodeEvent(body)
	if err != nil {
		t.Errorf("%s: %v", name, err)
		return
	}
	for attribute, pair := range map[string][2]any{
		"specversion":     {ce.SpecVersion(), "1.0"},
		"id":              {ce.ID(), e.ID},
		"source":          {ce.Source(), "/" + e.Tenant + "/threads/" + e.ThreadID},
		"type":            {ce.Type(), string(e.Type)},
		"subject":         {ce.Subject(), e.Subject},
		"datacontenttype": {ce.DataContentType(), "application/json"},
		"dataschema":      {ce.DataSchema(), e.Schema()},
		"time":            {ce.Time().Format(time.RFC3339Nano), e.Time.Go().Format(time.RFC3339Nano)},
	} {
		if pair[0] != pair[1] {
			t.Errorf("%s: %s is %v, want %v", name, attribute, pair[0], pair[1])
		}
	}
	if got, want := ce.Extensions(), extensions(&e); !reflect.DeepEqual(got, want) {
		t.Errorf("%s: extensions %v, want %v", name, got, want)
	}
	var whole struct{ Data json.RawMessage }
	if err := json.Unmarshal(body, &whole); err != nil || !bytes.Equal(ce.Data(), whole.Data) {
		t.Errorf("%s: data is %s: %v", name, ce.Data(), err)
	}
}

// extensions returns the attributes of an event that CloudEvents does not define.
func extensions(e *events.Event) map[string]any {
	want := map[string]any{"tenant": e.Tenant, "threadid": e.ThreadID, "threadversion": int32(e.Version)}
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
	return want
}
