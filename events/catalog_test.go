package events

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// EK-1.
func TestSpecVersion(t *testing.T) {
	if SpecVersion != "1.0.0-draft" {
		t.Errorf("SpecVersion is %q", SpecVersion)
	}
}

// EK-133..EK-149: EK's entities have EK's 16 events and no others; further events belong to
// other entities (C-24).
func TestCatalog_HasTheSixteenEventsOfEK(t *testing.T) {
	want := strings.Fields(`
		context.created context.resolved context.status.changed
		thread.created thread.resolved thread.status.changed
		execution.created execution.status.changed
		item.created item.status.changed
		step.created step.status.changed
		part.created part.updated chunk.emitted thread.finished`)
	entities := strings.Fields("context thread execution item step part chunk")
	var got []string
	for _, r := range Catalog() {
		if slices.Contains(entities, r.Entity()) {
			got = append(got, string(r.Type))
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(got, want) || len(want) != 16 {
		t.Errorf("the events of EK's entities are %q, want %q", got, want)
	}
}

// The events that Skein adds to EK's: C-24, EK-174.
func TestCatalog_HasTheEventsThatSkeinAdds(t *testing.T) {
	for name := range strings.FieldsSeq(`
		state.changed state.closed message.edited message.deleted history.truncated profile.changed agent.assigned
		relationship.added relationship.removed queue.pushed queue.drained skill.activated key.claimed key.released
		file.written file.deleted directory.created directory.removed
		effect.scheduled effect.cancelled effect.started effect.completed effect.failed
		approval.requested approval.granted approval.denied run.requested run.stopped run.claimed
		run.parked run.suspended run.resumed run.turned run.limited
		trace.recorded definition.changed command.rejected lifecycle.destroyed lifecycle.deleted`) {
		if _, ok := Lookup(Type(name)); !ok {
			t.Errorf("%s is not in the catalog", name)
		}
	}
	if _, ok := Lookup("thread.renamed"); ok {
		t.Error("an event is found that nobody declared")
	}
}

// Names are unique, start with the entity and end in the past tense; each event has its own Go
// type and a one-sentence description.
func TestCatalog_NamesAndTypesOfRows(t *testing.T) {
	names, types := map[Type]bool{}, map[reflect.Type]Type{}
	for _, r := range Catalog() {
		if names[r.Type] {
			t.Errorf("%s is there twice", r.Type)
		}
		names[r.Type] = true
		of := reflect.TypeOf(r.New())
		if of.Kind() != reflect.Struct {
			t.Errorf("%s: data is a %s, not a struct by value", r.Type, of)
		}
		if other, ok := types[of]; ok {
			t.Errorf("%s and %s share the type %s", r.Type, other, of)
		}
		types[of] = r.Type
		words := strings.Split(string(r.Type), ".")
		if len(words) < 2 || len(words) > 3 || r.Entity() != words[0] {
			t.Errorf("%s is not entity.what-happened", r.Type)
		}
		if !pastTense(words[len(words)-1]) {
			t.Errorf("%s is not in the past tense", r.Type)
		}
		for _, w := range words {
			if w == "" || strings.Trim(w, "abcdefghijklmnopqrstuvwxyz") != "" {
				t.Errorf("%s holds more than small letters", r.Type)
			}
		}
		if !strings.HasSuffix(r.Doc, ".") || strings.ToUpper(r.Doc[:1]) != r.Doc[:1] {
			t.Errorf("%s: %q is not a sentence", r.Type, r.Doc)
		}
		if r.Transient != (r.Type == ChunkEmittedType) {
			t.Errorf("%s: transient is %v (C-43)", r.Type, r.Transient)
		}
	}
}

// pastTense reports whether word is a regular verb in the past tense, or an irregular one in
// use.
func pastTense(word string) bool { return strings.HasSuffix(word, "ed") || word == "written" }

func TestRegistry_RefusesContradictions(t *testing.T) {
	for name, list := range map[string][]Row{
		"declared twice":     {row("a.deleted", 1, "A.", FileDeleted{}, Rules.FileDeleted), row("a.deleted", 1, "A.", FileDeleted{}, Rules.FileDeleted)},
		"an upcast too few":  {row("a.deleted", 2, "A.", FileDeleted{}, Rules.FileDeleted)},
		"an upcast too many": {row("a.deleted", 1, "A.", FileDeleted{}, Rules.FileDeleted, Upcast{From: 1})},
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no complaint", name)
				}
			}()
			newRegistry(list)
		}()
	}
}

// Each event has a sample with every field set, and so a golden file that shows every field.
func TestSamples_SetEveryField(t *testing.T) {
	left := map[Type]bool{}
	for _, r := range Catalog() {
		left[r.Type] = true
	}
	for _, s := range samples() {
		r, ok := Lookup(s.of)
		if !ok || reflect.TypeOf(r.New()) != reflect.TypeOf(s.data) {
			t.Errorf("the sample of %s is a %T", s.of, s.data)
		}
		delete(left, s.of)
		v := reflect.ValueOf(s.data)
		for i := range v.NumField() {
			field := v.Type().Field(i)
			if first := strings.Contains(" Idx Iteration ", " "+field.Name+" "); v.Field(i).IsZero() && !first {
				alternative := s.of == StateChangedType && field.Name == "Content" // or Patch
				if !alternative {
					t.Errorf("the sample of %s leaves %s empty; set it in the row's example, or add a sample", s.of, field.Name)
				}
			}
		}
	}
	if len(left) > 0 {
		t.Errorf("no sample of %q", slices.Sorted(maps.Keys(left)))
	}
}

func TestSchemaVersion_ParsesNames(t *testing.T) {
	r, _ := Lookup(StepStatusChangedType)
	if r.Schema() != "urn:skein:event:step.status.changed:2" || len(r.Upcasts()) != 1 {
		t.Errorf("schema %q, %d upcasts", r.Schema(), len(r.Upcasts()))
	}
	for schema, want := range map[string]int{
		"urn:skein:event:item.created:1":     1,
		"urn:skein:event:item.created:12":    12,
		"urn:skein:event:item.created:0":     0,
		"urn:skein:event:item.created:-1":    0,
		"urn:skein:event:item.created:01":    0,
		"urn:skein:event:item.created:+1":    0,
		"urn:skein:event:item.created:1 ":    0,
		"urn:skein:event:item.created:":      0,
		"urn:skein:event:item.created":       0,
		"urn:skein:event:item.deleted:1":     0,
		"https://example.com/item.created:1": 0,
		"":                                   0,
	} {
		got, ok := schemaVersion(ItemCreatedType, schema)
		if ok != (want > 0) || ok && got != want {
			t.Errorf("%q: version %d, %v; want %d", schema, got, ok, want)
		}
	}
}
