package events

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
)

// The codes and their numbers in Nats-Service-Error-Code.
func TestCode_Status(t *testing.T) {
	for code, want := range map[Code]struct {
		text   string
		status int
		retry  bool
	}{
		InvalidRequest:    {"invalid_request", 400, false},
		Unauthorized:      {"unauthorized", 401, false},
		Forbidden:         {"forbidden", 403, false},
		NotFound:          {"not_found", 404, false},
		VersionConflict:   {"version_conflict", 409, false},
		AlreadyExists:     {"already_exists", 409, false},
		PayloadTooLarge:   {"payload_too_large", 413, false},
		IllegalTransition: {"illegal_transition", 422, false},
		QueueFull:         {"queue_full", 429, true},
		Unavailable:       {"unavailable", 503, true},
		ProjectionBehind:  {"projection_behind", 503, true},
		"what is this":    {"what is this", 503, false},
	} {
		if string(code) != want.text || code.Status() != want.status || (&Error{Code: code}).Retry() != want.retry {
			t.Errorf("%s: %d, %v; want %+v", code, code.Status(), (&Error{Code: code}).Retry(), want)
		}
	}
}

func TestError_RoundTripsTheWire(t *testing.T) {
	for name, c := range map[string]struct {
		err  *Error
		want string
	}{
		"invalid":    {Invalid("/data/to", "%q is no state", "x"), `{"error":{"code":"invalid_request","message":"\"x\" is no state","details":{"path":"/data/to"}}}`},
		"missing":    {Missing("item", "itm_1"), `{"error":{"code":"not_found","message":"item not found: itm_1","details":{"entity":"item","id":"itm_1"}}}`},
		"taken":      {Taken("thread", "T-1"), `{"error":{"code":"already_exists","message":"thread already exists: T-1","details":{"entity":"thread","id":"T-1"}}}`},
		"conflict":   {Conflict(0, 3), `{"error":{"code":"version_conflict","message":"the thread is at version 3, not 0","details":{"currentVersion":3}}}`},
		"not there":  {Conflict(3, 0), `{"error":{"code":"version_conflict","message":"the thread is at version 0, not 3","details":{"currentVersion":0}}}`},
		"large":      {TooLarge("the part", 9, 5), `{"error":{"code":"payload_too_large","message":"the part has 9 bytes; at most 5 are allowed","details":{"limit":5,"size":9}}}`},
		"bare":       {Errorf(QueueFull, "full"), `{"error":{"code":"queue_full","message":"full"}}`},
		"transition": {AsError(ThreadMachine().Check("T-1", ThreadOpen, ThreadClosed)), `{"error":{"code":"illegal_transition","message":"thread T-1 is open and cannot become closed; allowed: streaming; a thread on which nothing runs is put away with thread.update and archived true, or removed with thread.delete; only a run closes its thread","details":{"entity":"thread","id":"T-1","from":"open","to":"closed","allowed":["streaming"]}}}`},
		"final":      {AsError(ItemMachine().Check("i", ItemCompleted, ItemStored)), `{"error":{"code":"illegal_transition","message":"item i is completed, which is final, and cannot become stored","details":{"entity":"item","id":"i","from":"completed","to":"stored","allowed":[]}}}`},
	} {
		body := EncodeError(c.err)
		if string(body) != c.want {
			t.Errorf("%s:\n%s\nwant\n%s", name, body, c.want)
		}
		back := DecodeError(body)
		if back == nil || back.Code != c.err.Code || back.Message != c.err.Message || !reflect.DeepEqual(back.Details, c.err.Details) {
			t.Errorf("%s: came back as %#v", name, back)
		}
	}
}

func TestDecodeError_NilForReply(t *testing.T) {
	for _, body := range []string{"", "null", "[]", "{}", `{"error":null}`, `{"error":{}}`, `{"error":"no"}`, `{"threadId":"T-1","version":1}`, `{"error":{"code":"x"}`} {
		if e := DecodeError([]byte(body)); e != nil {
			t.Errorf("%s is a refusal: %v", body, e)
		}
	}
}

// A string that was cut, or was never UTF-8, still encodes as JSON; a cut one can also be
// written into an event.
func TestError_InvalidUTF8IsReplaced(t *testing.T) {
	for _, e := range []*Error{
		Missing("thread", "key:a"+strings.Repeat("é", 100)),
		Invalid("/x", "%s", clip("ab"+strings.Repeat("漢", 100))),
	} {
		if !utf8.ValidString(e.Message) {
			t.Errorf("%q", e.Message)
		}
		event := sample{CommandRejectedType, thread, CommandRejected{Code: e.Code, Message: e.Message}}.event()
		if _, err := event.Append(nil); err != nil {
			t.Errorf("%v", err)
		}
	}
	if body := EncodeError(Errorf(InvalidRequest, "\xff")); DecodeError(body) == nil {
		t.Errorf("%q", body)
	}
}

// No internals cross the wire; a refusal crosses unchanged.
func TestAsError(t *testing.T) {
	secret := errors.New("nats: no responders at 10.0.0.7")
	got := AsError(fmt.Errorf("append: %w", secret))
	if got.Code != Unavailable || got.Details != nil || strings.Contains(string(EncodeError(got)), "10.0.0.7") {
		t.Errorf("%s", EncodeError(got))
	}
	if !errors.Is(got, secret) {
		t.Error("the cause is lost to the log")
	}
	refusal := Missing("item", "i")
	if got := AsError(fmt.Errorf("decide: %w", refusal)); got != refusal {
		t.Errorf("%v", got)
	}
	move := fmt.Errorf("decide: %w", StepMachine().Check("s", StepCompleted, StepRunning))
	got = AsError(move)
	want := &ErrorDetails{Entity: "step", ID: "s", From: "completed", To: "running", Allowed: []string{}}
	if got.Code != IllegalTransition || !reflect.DeepEqual(got.Details, want) || !errors.Is(got, move) {
		t.Errorf("%#v", got)
	}
}

func TestError_IsComparesCodes(t *testing.T) {
	err := fmt.Errorf("query: %w", Missing("item", "i"))
	if !errors.Is(err, &Error{Code: NotFound}) {
		t.Error("not found is not found")
	}
	if errors.Is(err, &Error{Code: Forbidden}) || errors.Is(err, &Error{Code: NotFound, Message: "item not found: j"}) {
		t.Error("another error is treated as equal")
	}
	cause := errors.New("cause")
	if e := Errorf(Forbidden, "no: %w", cause); !errors.Is(e, cause) || e.Error() != "forbidden: no: cause" {
		t.Errorf("%v", e)
	}
	// The cause is never a field on the wire.
	var fields map[string]map[string]any
	if err := json.Unmarshal(EncodeError(Errorf(Forbidden, "no: %w", cause)), &fields); err != nil || len(fields["error"]) != 2 {
		t.Errorf("%v %v", fields, err)
	}
}

func TestHasCode(t *testing.T) {
	missing := Missing("thread", "T-1")
	wrapped := fmt.Errorf("read: %w", missing)
	outer := Errorf(Unavailable, "read: %w", missing)
	for name, c := range map[string]struct {
		err   error
		codes []Code
		want  bool
	}{
		"its code":           {missing, []Code{NotFound}, true},
		"one of its codes":   {wrapped, []Code{Forbidden, NotFound}, true},
		"another code":       {missing, []Code{Forbidden}, false},
		"the outermost":      {outer, []Code{Unavailable}, true},
		"the cause's":        {outer, []Code{NotFound}, false},
		"no refusal":         {errors.New("no"), []Code{Unavailable}, false},
		"no error":           {nil, []Code{NotFound}, false},
		"no code to compare": {missing, nil, false},
	} {
		if got := HasCode(c.err, c.codes...); got != c.want {
			t.Errorf("%s: got %v", name, got)
		}
	}
	if !IsNotFound(wrapped) || IsNotFound(outer) || IsNotFound(nil) {
		t.Error("IsNotFound differs from HasCode")
	}
}

func TestCheckTenant(t *testing.T) {
	if err := CheckTenant("/tenant", "acme"); err != nil {
		t.Error(err)
	}
	for _, tenant := range []string{"", "-a", "a b", "a.b", strings.Repeat("a", 65), strings.Repeat("b", 1000)} {
		for _, path := range []string{"", "/tenant"} {
			e := AsError(CheckTenant(path, tenant))
			if e.Code != InvalidRequest || !strings.Contains(e.Message, "first a letter or digit") || len(e.Message) > 200 {
				t.Errorf("%q: %v", tenant, e)
			}
			if (e.Details != nil) != (path != "") || path != "" && e.Details.Path != path {
				t.Errorf("%q: details %+v", tenant, e.Details)
			}
		}
	}
}
