package schema

import (
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/skein-threads/skein/events"
)

// A request that was not encoded is accepted or refused as the same request as JSON.
func TestCheckRequest_AgreesWithDecodeRequest(t *testing.T) {
	v := newValidator(t)
	rng := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // not for secrets
	texts := []string{"", "c-1", "T-1", "key:a b", "no spaces", "\xff", "é", strings.Repeat("w", 128), strings.Repeat("w", 129), strings.Repeat("é", 256), strings.Repeat("é", 257)}
	numbers := []int64{0, 1, -1, 1<<53 - 1, 1 << 53, math.MaxInt64, math.MinInt64}
	data := []string{"", "{}", `{"a":1}`, "null", "[]", `"a"`, "1", nested(MaxDepth - 1), nested(MaxDepth)}
	text := func() string {
		if rng.IntN(2) == 0 {
			return ""
		}
		return texts[rng.IntN(len(texts))]
	}
	accepted, refused := 0, 0
	for range 20_000 {
		r := events.Request{CommandID: text(), ThreadID: text(), WriterToken: text(), Actor: text()}
		if d := data[rng.IntN(len(data))]; d != "" {
			r.Data = events.JSON(d)
		}
		if rng.IntN(2) == 0 {
			r.ExpectedVersion = &numbers[rng.IntN(len(numbers))]
		}
		if rng.IntN(3) == 0 {
			r.Rights = &events.Rights{User: text(), None: rng.IntN(2) == 0}
			for range rng.IntN(3) {
				r.Rights.Threads = append(r.Rights.Threads, text())
				r.Rights.Can = append(r.Rights.Can, []events.Capability{events.CanRead, events.CanTools, "none", ""}[rng.IntN(4)])
			}
		}
		got := v.CheckRequest(&r)
		raw, err := json.Marshal(r, json.Deterministic(true))
		if err != nil { // it cannot be sent either
			if !events.HasCode(got, events.InvalidRequest) {
				t.Fatalf("%+v: %v, and no JSON: %v", r, got, err)
			}
			continue
		}
		decoded, want := v.DecodeRequest(raw)
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("%s: %v, and as JSON %v", raw, got, want)
		}
		if want != nil {
			refused++
			continue
		}
		accepted++
		if string(r.Data) == "null" {
			r.Data = nil
		}
		if !reflect.DeepEqual(decoded, r) {
			t.Fatalf("%s: %+v, and as JSON %+v", raw, r, decoded)
		}
	}
	if accepted < 100 || refused < 100 {
		t.Errorf("%d requests were accepted and %d refused", accepted, refused)
	}
}

// nested returns an object in which objects lie so deep.
func nested(depth int) string {
	return strings.Repeat(`{"a":`, depth-1) + "{}" + strings.Repeat("}", depth-1)
}
