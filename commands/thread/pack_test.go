package thread

import (
	"fmt"
	"reflect"
	"slices"
	"testing"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/compact"
)

// packs checks that a value comes out of its packed form as it went in, for each of its fields
// in turn, and returns the fields whose content keeps it from being packed.
func packs[V compact.Value[P, *pool], P compact.Packed[V, *pool]](t *testing.T, typical V) (loose []string) {
	t.Helper()
	in := &pool{}
	if _, ok := typical.Pack(in); !ok {
		t.Errorf("%+v is not packed", typical)
	}
	for path, set := range fields(reflect.TypeFor[V](), "") {
		v := reflect.New(reflect.TypeFor[V]()).Elem()
		v.Set(reflect.ValueOf(typical))
		set(v)
		p, ok := v.Interface().(V).Pack(in)
		if !ok {
			loose = append(loose, path)
		} else if got := p.Unpack(in); !reflect.DeepEqual(got, v.Interface()) {
			t.Errorf("with %s it is %+v, and comes back as %+v", path, v.Interface(), got)
		}
	}
	slices.Sort(loose)
	return loose
}

// fields returns a function for each field of a struct, and of its run, which sets the field to
// another value.
func fields(typ reflect.Type, prefix string) map[string]func(reflect.Value) {
	all := map[string]func(reflect.Value){}
	for i := range typ.NumField() {
		f := typ.Field(i)
		name := prefix + f.Name
		if f.Type == reflect.TypeFor[*runState]() {
			for inner, set := range fields(f.Type.Elem(), name+".") {
				all[inner] = func(v reflect.Value) {
					run := reflect.New(f.Type.Elem())
					if old := v.Field(i); !old.IsNil() {
						run.Elem().Set(old.Elem())
					}
					set(run.Elem())
					v.Field(i).Set(run)
				}
			}
			continue
		}
		all[name] = func(v reflect.Value) {
			switch f := v.Field(i); f.Kind() {
			case reflect.String:
				f.SetString("something else")
			case reflect.Bool:
				f.SetBool(!f.Bool())
			case reflect.Int64, reflect.Int32:
				f.SetInt(1<<31 - 1)
			case reflect.Slice:
				f.Set(reflect.MakeSlice(f.Type(), 1, 1))
			case reflect.Pointer:
				f.Set(reflect.New(f.Type().Elem()))
			case reflect.Struct:
				f.Field(1).Set(reflect.MakeSlice(f.Field(1).Type(), 1, 1)) // more parts
			default:
				panic("a field of kind " + f.Kind().String())
			}
		}
	}
	return all
}

// What is packed loses nothing, whatever field it has: one that packing does not know keeps the
// value as it is.
func TestPack_LosesNothing(t *testing.T) {
	item := itemState{Context: "ctx_1", Type: events.Message, Status: events.ItemCompleted, Index: 7}
	if got, want := packs(t, item), []string{"Calls", "Status", "Type"}; !slices.Equal(got, want) {
		t.Errorf("an item is not packed with %q, want %q", got, want)
	}
	step := stepState{Execution: "exe_1", Status: events.StepCompleted, Parts: partSet{N: 3}}
	if got, want := packs(t, step), []string{"Parts", "Status"}; !slices.Equal(got, want) {
		t.Errorf("a step is not packed with %q, want %q", got, want)
	}
	execution := executionState{
		Context: "ctx_1", Trigger: "itm_1", Reaction: "itm_2", Status: events.ExecutionFailed, Steps: 3, Session: "sess_1",
		Run: &runState{Agent: "support", Worker: "w", Token: 2, Side: events.SideB, Reason: "enough"},
	}
	open := []string{"By", "Calls", "First", "From", "Handoff", "Item", "Left", "Missing", "Parent", "Rights", "Room", "Said", "ServerMissingSince", "Settings", "Side", "Steers", "Step", "Turn", "UnavailableSince"}
	for i, name := range open {
		open[i] = "Run." + name
	}
	if got, want := packs(t, execution), append(open, "Status"); !slices.Equal(got, want) {
		t.Errorf("an execution is not packed with %q, want %q", got, want)
	}
	if _, packed := (executionState{Status: events.Executing}).Pack(&pool{}); packed {
		t.Error("an execution that runs is packed")
	}
	if _, packed := (stepState{Status: events.StepRunning}).Pack(nil); packed {
		t.Error("a step that runs is packed")
	}
	if _, packed := (stepState{Status: events.StepCompleted, Parts: partSet{N: 1 << 31}}).Pack(nil); packed {
		t.Error("a step of two thousand million parts is packed")
	}
}

// What is packed has no pointers, so that the garbage collector does not look at it.
func TestPack_HasNoPointers(t *testing.T) {
	for _, typ := range []reflect.Type{
		reflect.TypeFor[compact.ID](), reflect.TypeFor[packedItem](), reflect.TypeFor[packedStep](), reflect.TypeFor[packedExecution](), reflect.TypeFor[packedRun](),
	} {
		if name := pointer(typ); name != "" {
			t.Errorf("%s has a pointer at %s", typ, name)
		}
		if typ.Size() > 128 { // larger values of a map are behind a pointer
			t.Errorf("%s has %d bytes", typ, typ.Size())
		}
	}
}

// pointer returns the path of a pointer in a type, "" if there is none.
func pointer(typ reflect.Type) string {
	switch typ.Kind() {
	case reflect.Struct:
		for i := range typ.NumField() {
			if inner := pointer(typ.Field(i).Type); inner != "" {
				return typ.Field(i).Name + " " + inner
			}
		}
		return ""
	case reflect.Array:
		return pointer(typ.Elem())
	case reflect.Pointer, reflect.String, reflect.Slice, reflect.Map, reflect.Interface, reflect.Func, reflect.Chan:
		return typ.String()
	}
	return ""
}

// A draft's layer packs nothing: it is read often, and thrown away.
func TestPack_NotInALayer(t *testing.T) {
	s := &State{}
	s.setItem("itm_1", itemState{Type: events.Message, Status: events.ItemPending})
	l := s.layer()
	l.setItem("itm_1", itemState{Type: events.Message, Status: events.ItemCompleted})
	if above, below := slices.Collect(l.items.Open()), slices.Collect(s.items.Open()); len(above) != 1 || len(below) > 0 {
		t.Errorf("the layer keeps %q as they are, and the state %q", above, below)
	}
	if below, _ := s.item("itm_1"); below.Status != events.ItemPending {
		t.Errorf("the state is changed: %+v", below)
	}
	s.merge(l)
	if i, _ := s.item("itm_1"); i.Status != events.ItemCompleted || s.items.Len() != 1 {
		t.Errorf("merged it is %+v, of %d", i, s.items.Len())
	}
}

// A turn that has ended takes less than 800 bytes, besides the receipts of its commands.
func TestBytes_OfATurn(t *testing.T) {
	size := func(turns int) int64 {
		s := &State{}
		for i := range turns {
			id := fmt.Sprintf("_%032d", i)
			for _, kind := range []string{"itm_u", "itm_x", "itm_r", "itm_a"} {
				s.setItem(kind+id[1:], itemState{Context: "ctx_1", Type: events.Message, Status: events.ItemCompleted, Index: int64(i)})
			}
			s.setExecution("exe"+id, executionState{Context: "ctx_1", Trigger: "itm_u" + id[1:], Reaction: "itm_a" + id[1:], Status: events.ExecutionCompleted})
			s.setStep("stp"+id, stepState{Execution: "exe" + id, Status: events.StepCompleted, Parts: partSet{N: 2}})
		}
		for id := range s.executions.Open() {
			t.Fatalf("%s is not packed", id)
		}
		return s.Bytes()
	}
	if got := (size(3000) - size(1000)) / 2000; got > 800 {
		t.Errorf("a turn takes %d bytes", got)
	} else {
		t.Logf("a turn takes %d bytes", got)
	}
}
