package events

import (
	"reflect"
	"slices"
	"strings"
	"testing"
)

// namingFields returns the fields of a type, through nested objects and lists, whose values have the
// pattern of a thread's id, or that name a user.
func namingFields(t reflect.Type, within string) (threads, users []string) {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return nil, nil
	}
	for f := range t.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		path := within + name
		if name != "" {
			path += "."
		}
		rules := strings.Split(f.Tag.Get("schema"), ",")
		switch {
		case slices.Contains(rules, "pattern=thread"), slices.Contains(rules, "pattern=threadRef"):
			threads = append(threads, within+name)
		case name == "userId":
			users = append(users, within+name)
		default:
			deeperThreads, deeperUsers := namingFields(f.Type, path)
			threads, users = append(threads, deeperThreads...), append(users, deeperUsers...)
		}
	}
	return threads, users
}

// Every field of a command that names a thread or a user is declared in its row, so that
// someone who may use some threads only is held to them by it.
func TestCommands_DeclareTheThreadsThatTheyConcern(t *testing.T) {
	for _, c := range Commands() {
		threads, users := namingFields(reflect.TypeOf(c.Example), "")
		if !slices.Equal(threads, c.Relates.Threads) {
			t.Errorf("%s: the fields %v name threads, and its row declares %v; add .relating(Relates{...})", c.Name, threads, c.Relates.Threads)
		}
		if want := strings.Join(users, ","); want != c.Relates.User {
			t.Errorf("%s: the fields %v name users, and its row declares %q", c.Name, users, c.Relates.User)
		}
		if makes := slices.Contains(c.Events, ThreadCreatedType) && !c.Creates; makes != (c.Relates.Makes || c.Relates.Child) {
			t.Errorf("%s: it makes threads: %v; its row declares %+v", c.Name, makes, c.Relates)
		}
	}
}

// A query whose data names no thread declares what it reads.
func TestQueries_DeclareWhatTheyRead(t *testing.T) {
	for _, q := range Queries() {
		threads, _ := namingFields(reflect.TypeOf(q.Example), "")
		switch {
		case q.Scope == OneThread && !slices.Equal(threads, []string{"threadId"}):
			t.Errorf("%s: the fields %v name threads; a query of one thread has threadId, and another declares its scope", q.Name, threads)
		case q.Scope == ManyThreads:
			list, ok := fieldOf(reflect.TypeOf(q.Answer), q.Entries.List)
			if !ok || list.Kind() != reflect.Slice {
				t.Errorf("%s: its answer has no list %q", q.Name, q.Entries.List)
			} else if _, ok := fieldOf(list.Elem(), q.Entries.Thread); !ok && q.Entries.Thread != "" {
				t.Errorf("%s: the entries of %s have no field %q", q.Name, q.Entries.List, q.Entries.Thread)
			}
		}
	}
}

func fieldOf(t reflect.Type, name string) (reflect.Type, bool) {
	for f := range t.Fields() {
		if is, _, _ := strings.Cut(f.Tag.Get("json"), ","); is == name {
			return f.Type, true
		}
	}
	return nil, false
}

func TestCovers(t *testing.T) {
	for _, c := range []struct {
		pattern, subject string
		want             bool
	}{
		{"a.b.>", "a.b.c", true}, {"a.b.>", "a.b.c.d", true}, {"a.b.>", "a.b", false}, {"a.b.>", "a.b.", false}, {"a.b.>", "a.c.d", false},
		{"a.*.c", "a.b.c", true}, {"a.*.c", "a.b.c.d", false}, {"a.*.c", "a.b", false}, {"a.b", "a.b", true}, {"a.b", "a.bc", false},
		{"a.b.>", "a.b.*", true}, {"a.b.>", "a.b.>", true}, {"a.b.>", "a.*.c", false}, {"a.b.>", "a.>", false}, {"a.b.>", ">", false}, {"a.*", "a.>", false}, {">", "a", true},
		{"a.b.>", "", false}, {"a.b.>", "a..c", false}, {"a.b.>.c", "a.b.x.c", false},
	} {
		if got := Covers(c.pattern, c.subject); got != c.want {
			t.Errorf("%s covers %s: %v", c.pattern, c.subject, got)
		}
	}
}
