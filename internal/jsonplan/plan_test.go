package jsonplan_test

import (
	stdjson "encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/jsonplan"
	"github.com/skein-threads/skein/projections/documents"
)

// same compares a plan with the library for one value, of a struct or a pointer to it.
func same(t *testing.T, value any) {
	t.Helper()
	of := reflect.TypeOf(value)
	if of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	want, wantErr := json.Marshal(value, json.Deterministic(true))
	got, err := jsonplan.Of(of).Append([]byte("before "), value)
	if fmt.Sprint(err) != fmt.Sprint(wantErr) {
		t.Fatalf("%s: the error is %v, not %v", of, err, wantErr)
	}
	if err == nil && string(got) != "before "+string(want) {
		t.Fatalf("%s:\n got %s\nwant before %s", of, got, want)
	}
}

// texts are strings and raw values that need more than to be copied.
func texts() []string {
	return []string{"", "a", "itm_1", `say "hi"`, `a\b`, "a\tb", "a\x7fb", "naïve \"quoted\" \\ <&> \u2028\x7f\n\x00", "\U0001f600"}
}

func raws() []string {
	return []string{"null", `{}`, `[ 1 , {"b":1,"a":"\u0041\/"} ]`, `{"z": 1.50, "a": null}`, `"\ud83d\ude00"`, `true`, `12e3`}
}

// fill sets a value and all in it at random.
func fill(r *rand.Rand, v reflect.Value, depth int) {
	if !v.CanSet() || r.IntN(4) == 0 {
		return
	}
	if v.Type() == reflect.TypeFor[stdjson.RawMessage]() {
		v.SetBytes([]byte(raws()[r.IntN(len(raws()))]))
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(texts()[r.IntN(len(texts()))])
	case reflect.Bool:
		v.SetBool(r.IntN(2) == 0)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(r.Int64N(100) - 10)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(r.Uint64N(100))
	case reflect.Float64:
		v.SetFloat(r.Float64())
	case reflect.Pointer:
		if depth > 0 {
			v.Set(reflect.New(v.Type().Elem()))
			fill(r, v.Elem(), depth-1)
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), r.IntN(3), 3))
		for i := range v.Len() {
			fill(r, v.Index(i), depth-1)
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		if v.Type().Key().Kind() == reflect.String && depth > 0 {
			for range r.IntN(3) {
				one := reflect.New(v.Type().Elem()).Elem()
				fill(r, one, depth-1)
				v.SetMapIndex(reflect.ValueOf(texts()[r.IntN(3)]).Convert(v.Type().Key()), one)
			}
		}
	case reflect.Struct:
		for i := range v.NumField() {
			fill(r, v.Field(i), depth)
		}
	}
}

// Every type that is stored, and the reply to a command, is encoded to the bytes of the library.
func TestAppend_IsTheLibrarysEncoding(t *testing.T) {
	types := []reflect.Type{reflect.TypeFor[events.Reply]()}
	for _, row := range events.Catalog() {
		types = append(types, reflect.TypeOf(row.New()))
	}
	models := documents.NewModels()
	for _, p := range models.List() {
		doc, _, err := p.Decode([]byte(`{}`))
		if err != nil {
			t.Fatal(err)
		}
		types = append(types, reflect.TypeOf(doc).Elem())
	}
	r := rand.New(rand.NewPCG(1, 2))
	for _, of := range types {
		for range 200 {
			v := reflect.New(of)
			fill(r, v.Elem(), 4)
			same(t, v.Interface())
			same(t, v.Elem().Interface())
		}
	}
}

type inner struct {
	N int `json:"n,omitzero"`
}

type whoEncodesItself struct{ S string }

func (w *whoEncodesItself) MarshalJSON() ([]byte, error) { return json.Marshal("<" + w.S + ">") }

type zeroIsOne int

func (z zeroIsOne) IsZero() bool { return z == 1 }

type tree struct {
	Name     string `json:"name"`
	Children []tree `json:"children,omitempty"`
}

// What a plan does not cover, and what the library refuses, ends as it does there.
func TestAppend_CoversWhatTheLibraryDoes(t *testing.T) {
	for _, value := range []any{
		struct{}{},
		struct {
			A int `json:"-"`
			b int
		}{1, 2},
		struct {
			A []byte `json:"a"`
		}{[]byte("bytes")},
		struct {
			B map[string]int  `json:"b"`
			I map[string]bool `json:"i,omitempty"`
			J string          `json:"j,omitempty"`
			L []string        `json:"l,omitempty"`
		}{B: map[string]int{"z": 1, "a": 2}, L: []string{}},
		struct {
			C any     `json:"c"`
			D [2]int  `json:"d"`
			E float64 `json:"e"`
			U uint8   `json:"u"`
		}{C: inner{1}, E: 1e21, U: 200},
		struct {
			F []string `json:"f"`
			G *inner   `json:"g"`
			H []*inner `json:"h"`
		}{H: []*inner{nil, {2}}},
		struct {
			K *string `json:"k,omitempty"`
		}{new(string)},
		struct {
			inner
			M int `json:"m"`
		}{inner{3}, 4},
		struct {
			inner
			N int `json:"n"`
		}{inner{3}, 4},
		struct {
			*inner
			M int
		}{},
		struct {
			inner `json:"in"`
		}{},
		struct {
			W whoEncodesItself   `json:"w"`
			P *whoEncodesItself  `json:"p"`
			L []whoEncodesItself `json:"l,omitempty"`
		}{W: whoEncodesItself{"a"}, P: &whoEncodesItself{"b"}, L: []whoEncodesItself{{"c"}}},
		struct {
			Z zeroIsOne `json:"z,omitzero"`
		}{1},
		struct {
			Z zeroIsOne `json:"z,omitzero"`
		}{0},
		struct {
			A int `json:"a,string"`
		}{5},
		struct {
			A int `json:"'q\"uoted'"`
		}{5},
		tree{"a", []tree{{Name: "b"}}},
		struct {
			S string `json:"s"`
		}{"\xff"},
		struct {
			S stdjson.RawMessage `json:"s"`
		}{stdjson.RawMessage(`{"a":1,"a":2}`)},
		struct {
			S stdjson.RawMessage `json:"s"`
		}{stdjson.RawMessage(`{"a":`)},
		struct {
			S stdjson.RawMessage `json:"s"`
		}{stdjson.RawMessage{}},
		struct {
			S stdjson.RawMessage `json:"s,omitempty"`
		}{stdjson.RawMessage(`[]`)},
	} {
		same(t, value)
	}
}

// A value of another type is encoded as what it is.
func TestAppend_OtherType(t *testing.T) {
	plan := jsonplan.Of(reflect.TypeFor[inner]())
	for _, value := range []any{tree{Name: "a"}, (*inner)(nil), nil, "text"} {
		want, _ := json.Marshal(value)
		if got, err := plan.Append(nil, value); err != nil || string(got) != string(want) {
			t.Errorf("%T is %s, not %s: %v", value, got, want, err)
		}
	}
}

// A struct that is part of itself is covered: nothing of it goes through the library, which
// would allocate.
func TestAppend_AllocatesNothing(t *testing.T) {
	results := []events.Result{{ItemID: "itm_1"}, {StepID: "stp_1"}}
	reply := &events.Reply{ThreadID: "T-1", Version: 2, Seq: 3, Events: []events.EventRef{{ID: "a", Type: "item.created", Version: 1}}, Result: &events.Result{Results: results}}
	plan, room := jsonplan.Of(reflect.TypeFor[events.Reply]()), make([]byte, 0, 4096)
	if n := testing.AllocsPerRun(100, func() {
		if _, err := plan.Append(room, reply); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("it allocates %v times", n)
	}
}
