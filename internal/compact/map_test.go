package compact

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
)

// note is a value that cannot be packed while it has tags.
type note struct {
	Name string   `json:"name"`
	N    int64    `json:"n"`
	Tags []string `json:"tags,omitempty"`
}

type packedNote struct {
	n    int64
	name uint32
}

func (n note) Pack(in *Pool) (packedNote, bool) {
	return packedNote{n.N, in.Number(n.Name)}, n.Tags == nil
}
func (n note) Size() int64                { return TextSize(n.Name) }
func (p packedNote) Unpack(in *Pool) note { return note{Name: in.Text(p.name), N: p.n} }

type notes = Map[note, packedNote, *Pool]

// A Map is a map, whatever the ids are and whether or not values can be packed, and it is written
// as one.
func TestMap_IsAMap(t *testing.T) {
	ids := []string{"", "a", "a\x00", "\x00", strings.Repeat("x", 40), strings.Repeat("x", 41), strings.Repeat("y", 40), "ü\n\"", "itm_0123456789abcdef0123456789abcdef"}
	for i := range 40 {
		ids = append(ids, fmt.Sprint("itm_", i))
	}
	for seed := range uint64(200) {
		roll := rand.New(rand.NewPCG(seed, 1)).IntN
		var m notes
		in, model := &Pool{}, map[string]note{}
		for range 200 {
			v := note{Name: []string{"", "ctx_1", fmt.Sprint("ctx_", roll(40))}[roll(3)], N: int64(roll(9))}
			if roll(3) == 0 {
				v.Tags = []string{"a tag"}
			}
			id := ids[roll(len(ids))]
			m.Set(in, id, v)
			model[id] = v
		}
		if got := maps.Collect(m.All(in)); !reflect.DeepEqual(got, model) || m.Len() != len(model) {
			t.Fatalf("it holds %v (%d), want %v", got, m.Len(), model)
		}
		var open []string
		for _, id := range ids {
			got, ok := m.Get(in, id)
			want, there := model[id]
			if ok != there || !reflect.DeepEqual(got, want) {
				t.Fatalf("%q is %+v (%v), want %+v (%v)", id, got, ok, want, there)
			}
			if there && (want.Tags != nil || len(id) > 40 || strings.Contains(id, "\x00")) {
				open = append(open, id)
			}
		}
		slices.Sort(open)
		if got := slices.Sorted(m.Open()); !slices.Equal(got, open) {
			t.Fatalf("%q are not packed, want %q", got, open)
		}
		written, err := json.Marshal(Object[note, packedNote, *Pool]{&m, in}, json.Deterministic(true))
		if err != nil {
			t.Fatal(err)
		}
		want, err := json.Marshal(model, json.Deterministic(true))
		if err != nil {
			t.Fatal(err)
		}
		if string(written) != string(want) {
			t.Fatalf("it is written as\n%s, want\n%s", written, want)
		}
		var again notes
		pool := &Pool{}
		if err := json.Unmarshal(written, &Object[note, packedNote, *Pool]{&again, pool}); err != nil {
			t.Fatal(err)
		}
		if got := maps.Collect(again.All(pool)); !reflect.DeepEqual(got, model) {
			t.Fatalf("it is read as %v, want %v", got, model)
		}
		if again.Bytes() != m.Bytes() {
			t.Fatalf("read it takes %d bytes, and took %d", again.Bytes(), m.Bytes())
		}
	}
}

func TestObject_RefusesOtherJSON(t *testing.T) {
	for _, text := range []string{`[]`, `null`, `{"a":`, `{"a":7}`, `{"a":{}`, ``} {
		var m notes
		if err := json.Unmarshal([]byte(text), &Object[note, packedNote, *Pool]{&m, &Pool{}}); err == nil {
			t.Errorf("%q is read", text)
		}
	}
}

// Each text has one number, few and many, and takes memory once.
func TestPool_Numbers(t *testing.T) {
	var p Pool
	if p.Number("") != 0 || p.Text(0) != "" {
		t.Error("the empty text is not 0")
	}
	for range 2 {
		for i := range 3 * fewTexts {
			if text := fmt.Sprint("text ", i); p.Number(text) != uint32(i+1) || p.Text(uint32(i+1)) != text {
				t.Fatalf("%q is number %d, which is %q", text, p.Number(text), p.Text(uint32(i+1)))
			}
		}
	}
}
