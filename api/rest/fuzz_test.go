package rest

import (
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/skein-threads/skein/events"
)

// Whatever comes, a frame is decoded or refused as invalid_request.
func FuzzDecodeFrame(f *testing.F) {
	for _, seed := range []string{
		`{"type":"watch","what":["events"],"from":1}`, `{"type":"command","id":"a","command":"item.create","data":{}}`,
		`{"type":"emit","name":"a","data":{"a":1,"a":2}}`, `{"type":7}`, `[]`, `{"id":{}}`, `{"type":"watch","what":[1]}`, strings.Repeat("[", 20_000),
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		var one frame
		err := decodeFrame(append([]byte{}, raw...), &one)
		if err != nil && events.AsError(err).Code != events.InvalidRequest {
			t.Errorf("%q: %v", raw, err)
		}
		if err == nil && !jsontext.Value(raw).IsValid() {
			t.Errorf("%q was accepted", raw)
		}
	})
}

// Whatever comes, a body becomes a command or is refused as invalid_request, and what is sent on
// is JSON.
func FuzzCommandOf(f *testing.F) {
	for _, seed := range []string{`{"commandId":"a","data":{}}`, `{"actor":"x"}`, `{"expectedVersion":1e3}`, `{"data":`, "{\"\xff\":1}", `{"a~/":1}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		req := httptest.NewRequest("POST", "/", strings.NewReader(string(raw)))
		req.Header.Set("Content-Type", "application/json")
		body, err := readObject(req)
		if err == nil {
			_, err = commandOf(body)
		}
		if err != nil {
			if events.AsError(err).Code != events.InvalidRequest {
				t.Errorf("%q: %v", raw, err)
			}
			return
		}
		if sent, err := (objectSetter{body}).encode(); err != nil || !jsontext.Value(sent).IsValid() {
			t.Errorf("%q: %q, %v", raw, sent, err)
		}
	})
}

// Whatever parameters come, they become JSON or are refused as invalid_request.
func FuzzParameters(f *testing.F) {
	for _, seed := range []string{"limit=1&cursor=x", "at=7", "at=2026-02-20T10:00:00.000Z", "types=a,b&types=c", "a=%zz", "limit=%ff", ";", "=", "threadId=x"} {
		f.Add(seed)
	}
	known := append(fieldsOf(events.ListItems{}), fieldsOf(events.ListEvents{})...)
	f.Fuzz(func(t *testing.T, query string) {
		req := httptest.NewRequest("GET", "/", nil)
		req.URL.RawQuery = query
		data, err := decodeParameters(req, known, map[string]string{"threadId": "T-1"})
		if err == nil {
			var raw events.JSON
			if raw, err = (objectSetter{data}).encode(); err == nil && !jsontext.Value(raw).IsValid() {
				t.Errorf("%q: %q", query, raw)
			}
		}
		if err != nil && events.AsError(err).Code != events.InvalidRequest {
			t.Errorf("%q: %v", query, err)
		}
	})
}
