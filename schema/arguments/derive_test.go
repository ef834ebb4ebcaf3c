package arguments

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/skein-threads/skein/events"
)

type unit string

func (unit) Enum() []string { return []string{"C", "F"} }

type place struct {
	Lat  float64 `json:"lat" doc:"Degrees north."`
	Note *string `json:"note"`
}

type paging struct {
	Limit int `json:"limit,omitzero"`
}

type everything struct {
	paging
	City    string            `json:"city" doc:"Name of a city."`
	Unit    unit              `json:"unit"`
	Mode    *string           `json:"mode" enum:"fast,slow"`
	Tags    []string          `json:"tags,omitempty" enum:"a,b"`
	Places  []place           `json:"places"`
	Best    *place            `json:"best"`
	Labels  map[string]int    `json:"labels,omitempty"`
	Groups  map[string][]unit `json:"groups,omitempty"`
	Small   int8              `json:"small,omitempty"`
	At      time.Time         `json:"at,omitzero"`
	Data    []byte            `json:"data,omitempty"`
	Any     json.RawMessage   `json:"any,omitempty"`
	Other   jsontext.Value    `json:"other,omitempty"`
	Else    any               `json:"else,omitempty"`
	Skipped chan int          `json:"-"`
}

// SA-67: the schema comes from the struct.
func TestSchemaOfAStruct(t *testing.T) {
	raw, err := Of(reflect.TypeFor[everything]())
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"type":"object","properties":{
		"limit":{"type":"integer"},
		"city":{"type":"string","description":"Name of a city."},
		"unit":{"type":"string","enum":["C","F"]},
		"mode":{"type":["null","string"],"enum":["fast","slow",null]},
		"tags":{"type":"array","items":{"type":"string","enum":["a","b"]}},
		"places":{"type":"array","items":{"type":"object","properties":{"lat":{"type":"number","description":"Degrees north."},"note":{"type":["null","string"]}},"required":["lat"],"additionalProperties":false}},
		"best":{"type":["null","object"],"properties":{"lat":{"type":"number","description":"Degrees north."},"note":{"type":["null","string"]}},"required":["lat"],"additionalProperties":false},
		"labels":{"type":"object","additionalProperties":{"type":"integer"}},
		"groups":{"type":"object","additionalProperties":{"type":"array","items":{"type":"string","enum":["C","F"]}}},
		"small":{"type":"integer","minimum":-128,"maximum":127},
		"at":{"type":"string","format":"date-time"},
		"data":{"type":"string","contentEncoding":"base64"},
		"any":true,
		"other":true,
		"else":true
	},"required":["city","unit","places"],"additionalProperties":false}`
	if got, want := decoded(t, raw), decoded(t, events.JSON(want)); !reflect.DeepEqual(got, want) {
		t.Errorf("got %s", raw)
	}
	again, _ := Of(reflect.TypeFor[everything]())
	if string(again) != string(raw) {
		t.Errorf("the same struct gave other bytes:\n%s\n%s", raw, again)
	}
}

// What the schema takes can be read, and what cannot be read it does not take.
func TestSchemaAndReaderAgree(t *testing.T) {
	raw, err := Of(reflect.TypeFor[everything]())
	if err != nil {
		t.Fatal(err)
	}
	s, err := Compile(raw)
	if err != nil {
		t.Fatal(err)
	}
	const base = `"city":"Lima","unit":"C","places":[]`
	for _, c := range []struct {
		arguments string
		ok        bool
	}{
		{`{` + base + `}`, true},
		{`{` + base + `,"limit":3,"mode":null,"best":{"lat":1.5,"note":"x"},"labels":{"a":1},"groups":{"g":["F"]}}`, true},
		{`{` + base + `,"at":"2026-02-20T10:00:00Z","data":"aGk=","any":[1,{}],"other":{"y":[]},"else":{"x":null},"tags":["a","b"]}`, true},
		{`{}`, false},
		{`{` + base + `,"more":1}`, false},
		{`{` + base + `,"CITY":"x"}`, false},
		{`{` + base + `,"small":200}`, false},
		{`{` + base + `,"mode":"slower"}`, false},
		{`{` + base + `,"tags":null}`, false},
		{`{` + base + `,"tags":["c"]}`, false},
		{`{` + base + `,"labels":{"a":"one"}}`, false},
		{`{` + base + `,"groups":{"g":["K"]}}`, false},
		{`{` + base + `,"best":{}}`, false},
	} {
		checked := s.Check(events.JSON(c.arguments))
		if (checked == nil) != c.ok {
			t.Errorf("%s: %v", c.arguments, checked)
		}
		var args everything
		if err := Read(events.JSON(c.arguments), &args); checked == nil && err != nil {
			t.Errorf("%s: the schema takes what cannot be read: %v", c.arguments, err)
		}
	}
}

// What Go has no room for is said as the rest is.
func TestReadIsStrict(t *testing.T) {
	var args struct {
		N int64 `json:"n"`
	}
	for given, want := range map[string]string{
		`{"n":1e30}`: "/n: does not fit into int64",
		`{"m":1}`:    "/m: does not fit into",
		`{"n":1,`:    "they cannot be read",
	} {
		err := Read(events.JSON(given), &args)
		var wrong *Error
		if !errors.As(err, &wrong) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", given, err)
		}
	}
	if err := Read(nil, &args); err != nil {
		t.Error(err)
	}
}

// An integer is read in every notation that JSON Schema allows for it, into every Go type of
// integers; the schema and the reader agree on what is one.
func TestReadIntegers(t *testing.T) {
	type count int32
	type integers struct {
		N     int64            `json:"n,omitzero"`
		Small uint8            `json:"small,omitzero"`
		Count count            `json:"count,omitzero"`
		May   *int64           `json:"may,omitzero"`
		List  []int            `json:"list,omitzero"`
		Map   map[string]int64 `json:"map,omitzero"`
		Real  float64          `json:"real,omitzero"`
		Any   any              `json:"any,omitzero"`
	}
	raw, err := Of(reflect.TypeFor[integers]())
	if err != nil {
		t.Fatal(err)
	}
	s, err := Compile(raw)
	if err != nil {
		t.Fatal(err)
	}
	given := `{"n":1.0,"small":2.50e2,"count":-3.0,"may":4e0,"list":[5.0,6],"map":{"a":7.000},"real":1.0,"any":1.0}`
	var got integers
	if err := errors.Join(s.Check(events.JSON(given)), Read(events.JSON(given), &got)); err != nil {
		t.Fatal(err)
	}
	want := integers{N: 1, Small: 250, Count: -3, May: new(int64(4)), List: []int{5, 6}, Map: map[string]int64{"a": 7}, Real: 1, Any: 1.0}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v", got)
	}
	for given, want := range map[string]string{
		`{"n":1.5}`:                "/n: ",
		`{"n":9007199254740992.0}`: "/n: ", // larger than every JSON reader represents exactly
		`{"small":256.0}`:          "/small: ",
		`{"small":-1.0}`:           "/small: ",
		`{"list":[1,1e99]}`:        "/list/1: ",
		`{"may":1e-1}`:             "/may: ",
		`{"n":1e999999999}`:        "/n: ",
	} {
		if err := Read(events.JSON(given), &integers{}); err == nil || !strings.Contains(err.Error(), want+"does not fit into") {
			t.Errorf("%s: %v", given, err)
		}
	}
}

type own struct{}

func (*own) UnmarshalText([]byte) error { return nil }

type loop struct {
	Next *loop `json:"next"`
}

func TestStructsThatAreRefused(t *testing.T) {
	for _, c := range []struct {
		value any
		want  string
	}{
		{1, "is not a struct"},
		{struct{ City string }{}, "City has no name in JSON"},
		{struct {
			A own `json:"a"`
		}{}, ".A is a arguments.own, which has a JSON form of its own"},
		{struct {
			A []struct {
				B time.Duration `json:"b"`
			} `json:"a"`
		}{}, ".A[].B is a time.Duration"},
		{struct {
			A map[int]string `json:"a"`
		}{}, "map"},
		{struct {
			A chan int `json:"a"`
		}{}, "chan int"},
		{struct {
			A int `json:"a,string"`
		}{}, "option string"},
		{struct {
			A int `json:"a" enum:"1,2"`
		}{}, ".A has an enum and is not a text"},
		{struct {
			paging `json:"p"`
		}{}, "embedded"},
		{struct {
			paging
			Most int `json:"limit"`
		}{}, "is not its own"},
		{struct {
			A error `json:"a"`
		}{}, "methods"},
		{loop{}, "cycle"},
	} {
		raw, err := Of(reflect.TypeOf(c.value))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%T: %v %s, want %s", c.value, err, raw, c.want)
		}
	}
}

func decoded(t *testing.T, raw []byte) any {
	t.Helper()
	var v any
	if err := json.Unmarshal(raw, &v); err != nil {
		t.Fatalf("%v: %s", err, raw)
	}
	return v
}
