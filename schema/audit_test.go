package schema

import (
	"errors"
	"strings"
	"testing"

	"github.com/skein-threads/skein/events"
)

// written is an event as the log has it.
const written = `{"specversion":"1.0","id":"0130547d-017b-52db-9393-be0875fe4a71","source":"/acme/threads/T-0195e5d0-3c1a-7b2e-9f44-1d2e3f405162",` +
	`"type":"step.status.changed","time":"2026-02-20T12:00:00.123456Z","subject":"stp_1","datacontenttype":"application/json","dataschema":"urn:skein:event:step.status.changed:2",` +
	`"tenant":"acme","threadid":"T-0195e5d0-3c1a-7b2e-9f44-1d2e3f405162","threadversion":3,"commandid":"c1","data":{"executionId":"exe_1","from":"running","to":"failed","errorText":"no"}}`

// What was written is held to the schemas when a log is checked. What is not
// known is left alone (EK-173).
func TestEvent(t *testing.T) {
	v := newValidator(t)
	for name, c := range map[string]struct{ old, new, path string }{
		"as it is":              {"", "", "-"},
		"a field more":          {`"to":"failed"`, `"to":"failed","acme:why":1`, "-"},
		"an attribute more":     {`"commandid"`, `"acmewhy":1,"commandid"`, "-"},
		"an older version":      {`:2","tenant"`, `:1","tenant"`, "-"},
		"an older one, renamed": {`changed:2","tenant":"acme","threadid":"T-0195e5d0-3c1a-7b2e-9f44-1d2e3f405162","threadversion":3,"commandid":"c1","data":{"executionId":"exe_1","from":"running","to":"failed","errorText"`, `changed:1","tenant":"acme","threadid":"T-0195e5d0-3c1a-7b2e-9f44-1d2e3f405162","threadversion":3,"commandid":"c1","data":{"executionId":"exe_1","from":"running","to":"failed","error"`, "-"},
		"a newer version":       {`:2","tenant"`, `:3","tenant"`, "-"},
		"an unknown type":       {`"type":"step.status.changed"`, `"type":"acme.done"`, "-"},
		"a wrong state":         {`"to":"failed"`, `"to":"open"`, "/data/to"},
		"no state":              {`"from":"running",`, ``, "/data"},
		"null for absent":       {`"errorText":"no"`, `"errorText":null`, "/data/errorText"},
		"a text that is long":   {`"errorText":"no"`, `"errorText":"` + strings.Repeat("é", 65537) + `"`, "/data/errorText"},
		"an older one, wrong":   {`:2","tenant":"acme","threadid":"T-0195e5d0-3c1a-7b2e-9f44-1d2e3f405162","threadversion":3,"commandid":"c1","data":{"executionId":"exe_1","from":"running"`, `:1","tenant":"acme","threadid":"T-0195e5d0-3c1a-7b2e-9f44-1d2e3f405162","threadversion":3,"commandid":"c1","data":{"executionId":"","from":"running"`, "/data/executionId"},
		"an older one, renamed and wrong": {`changed:2","tenant":"acme","threadid":"T-0195e5d0-3c1a-7b2e-9f44-1d2e3f405162","threadversion":3,"commandid":"c1","data":{"executionId":"exe_1","from":"running","to":"failed","errorText":"no"`,
			`changed:1","tenant":"acme","threadid":"T-0195e5d0-3c1a-7b2e-9f44-1d2e3f405162","threadversion":3,"commandid":"c1","data":{"executionId":"exe_1","from":"running","to":"failed","error":"` + strings.Repeat("e", 65537) + `"`, "/data/errorText"},
		"content type":       {`"application/json"`, `"text/plain"`, "/datacontenttype"},
		"an empty attribute": {`"commandid":"c1"`, `"commandid":""`, "/commandid"},
	} {
		raw := strings.Replace(written, c.old, c.new, 1)
		if c.old != "" && raw == written {
			t.Fatalf("%s: nothing to replace", name)
		}
		e, err := events.DecodeEvent([]byte(raw))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		mismatched(t, name, v.Event(&e), c.path)
	}
}

// mismatched wants a *MismatchError at path, or no error if path is "-".
func mismatched(t *testing.T, name string, err error, path string) {
	t.Helper()
	var mismatch *MismatchError
	switch {
	case path == "-" && err != nil:
		t.Errorf("%s: %v", name, err)
	case path == "-":
	case !errors.As(err, &mismatch):
		t.Errorf("%s: %v", name, err)
	case mismatch.Path != path || mismatch.Reason == "":
		t.Errorf("%s: %v, not at %s", name, err, path)
	}
}

// A mismatch names its place, or the whole document.
func TestMismatchError(t *testing.T) {
	for want, e := range map[string]MismatchError{
		"/data/to does not fit a.json: no":           {Schema: "a.json", Path: "/data/to", Reason: "no"},
		"the whole document does not fit a.json: no": {Schema: "a.json", Reason: "no"},
	} {
		if got := e.Error(); got != want {
			t.Errorf("%q, not %q", got, want)
		}
	}
}

// A new event, which was never read, is held to the schemas too.
func TestEventBeforeItIsWritten(t *testing.T) {
	v := newValidator(t)
	e := events.Event{
		ID: "1", Type: events.PartCreatedType, Tenant: "acme", ThreadID: "T-0195e5d0-3c1a-7b2e-9f44-1d2e3f405162", Version: 1, Subject: "stp_1:0",
		Data: events.PartCreated{Key: "stp_1:0", StepID: "stp_1", Part: events.JSON(codexPart)},
	}
	mismatched(t, "right", v.Event(&e), "-")
	e.Data = events.PartCreated{Key: "stp_1:0", StepID: "stp 1"}
	mismatched(t, "wrong", v.Event(&e), "/data/stepId")
	e.Version = 0
	mismatched(t, "no version", v.Event(&e), "/threadversion")
	e.Data = events.PartCreated{Part: events.JSON("{")}
	mismatched(t, "no JSON", v.Event(&e), "")
}

func TestEnvelopeAndResource(t *testing.T) {
	v := newValidator(t)
	mismatched(t, "envelope", v.Envelope([]byte(written)), "-")
	mismatched(t, "source", v.Envelope([]byte(strings.Replace(written, "/threads/", "/thread/", 1))), "/source")
	mismatched(t, "no JSON", v.Envelope([]byte("{")), "")
	mismatched(t, "two values", v.Envelope([]byte(written+"{}")), "")
	mismatched(t, "a name twice", v.Envelope([]byte(`{"a":1,"a":2}`)), "")
	if err := v.Resource("no_such", []byte("{}")); err == nil {
		t.Error("there is such a resource")
	}
	// The library says pointers as a URL would; ours are plain.
	err := v.Resource("request", []byte(`{"threadId":"é/~"}`))
	mismatched(t, "request", err, "/threadId")
	if err == nil || !strings.Contains(err.Error(), "resources/request.json") {
		t.Error(err)
	}
}

// BenchmarkDoorAudit holds an event to both schemas, as the audit does.
func BenchmarkDoorAudit(b *testing.B) {
	v := newValidator(b)
	e, err := events.DecodeEvent([]byte(written))
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if err := v.Event(&e); err != nil {
			b.Fatal(err)
		}
	}
}
