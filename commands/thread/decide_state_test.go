package thread

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/skein-threads/skein/events"
)

func setKey(key, value string) events.StateOperation {
	return events.StateOperation{Op: events.SetOp, Key: key, Value: raw(value)}
}

func push(key, value string, most int64) events.StateOperation {
	return events.StateOperation{Op: events.PushOp, Key: key, Value: raw(value), Max: most}
}

func deleteKey(key string) events.StateOperation {
	return events.StateOperation{Op: events.DeleteOp, Key: key}
}

func clearAll() events.StateOperation { return events.StateOperation{Op: events.ClearOp} }

func merge(operations ...events.StateOperation) events.MergeState {
	return events.MergeState{Operations: operations}
}

// values returns the state's values and life as a reader sees them now.
func (k *story) values() (string, int64) {
	k.t.Helper()
	v, err := k.state.Values(0, k.now)
	if err != nil {
		k.t.Fatal(err)
	}
	return string(v.Values), v.Life
}

func (k *story) wantValues(values string, life int64) {
	k.t.Helper()
	if have, n := k.values(); have != values || n != life {
		k.t.Errorf("the state is %s of life %d, want %s of %d", have, n, values, life)
	}
}

// pass lets time pass.
func (k *story) pass(d time.Duration) { k.now += events.Time(d.Microseconds()) }

// wantMade compares the types of events.
func wantMade(t testing.TB, made []events.Event, expected string) {
	t.Helper()
	if types := typesOf(made); types != expected {
		t.Errorf("made %s, want %s", types, expected)
	}
}

// AG-21, AG-24 to AG-27, AG-35, AG-36: one merge sets, deletes, pushes with a window and
// clears, and keeps the other keys.
func TestMergeState_Operations(t *testing.T) {
	k := begun(t)
	for _, c := range []struct {
		name   string
		merge  events.MergeState
		values string
	}{
		{"set", merge(setKey("a", `1`), setKey("b", ` { "x" : [ 1 , 2 ] } `)), `{"a":1,"b":{"x":[1,2]}}`},
		{"set again", merge(setKey("a", `null`)), `{"a":null,"b":{"x":[1,2]}}`},
		{"delete, also what is absent", merge(deleteKey("a"), deleteKey("z")), `{"b":{"x":[1,2]}}`},
		{"push makes the list", merge(push("m", `"1"`, 0), push("m", `"2"`, 0)), `{"b":{"x":[1,2]},"m":["1","2"]}`},
		{"push keeps the last", merge(push("m", `"3"`, 2)), `{"b":{"x":[1,2]},"m":["2","3"]}`},
		{"set a list, and push to it", merge(setKey("m", `[0]`), push("m", `[]`, 0)), `{"b":{"x":[1,2]},"m":[0,[]]}`},
		{"names of prototypes are names", merge(setKey("__proto__", `{"constructor":1}`)), `{"b":{"x":[1,2]},"m":[0,[]],"__proto__":{"constructor":1}}`},
		{"names with escapes are the same names", merge(setKey("é\"", `1`), setKey("é\"", `2`), deleteKey("__proto__")), `{"b":{"x":[1,2]},"m":[0,[]],"é\"":2}`},
		{"delete and set is a new key", merge(deleteKey("b"), setKey("b", `0`)), `{"m":[0,[]],"é\"":2,"b":0}`},
		{"clear, then set", merge(setKey("lost", `1`), clearAll(), setKey("c", `true`)), `{"c":true}`},
		{"clear", merge(clearAll()), `{}`},
	} {
		made := k.do(c.merge)
		k.wantValues(c.values, 1)
		changed := made[len(made)-1].Data.(events.StateChanged)
		var object map[string]any
		if err := json.Unmarshal([]byte(c.values), &object); err != nil {
			t.Fatal(err)
		}
		if changed.Life != 1 || changed.Size != int64(len(object)) || changed.Bytes != int64(len(c.values)) {
			t.Errorf("%s: life %d, %d keys, %d bytes", c.name, changed.Life, changed.Size, changed.Bytes)
		}
	}
}

// AG-90 and C-4: each life is a context of its own. The first merge makes it.
func TestMergeState_OpensALife(t *testing.T) {
	k := begun(t)
	made := k.do(merge(setKey("a", `1`)))
	wantMade(t, made, "context.created state.renewed state.changed")
	created, renewed := made[0].Data.(events.ContextCreated), made[1].Data.(events.StateRenewed)
	if *created.Key != "skein.state.1" || created.Status != events.ContextOpen {
		t.Errorf("created %+v", created)
	}
	if renewed.IdleSeconds != 3600 || renewed.Until != (made[0].Time+3600e6).String() {
		t.Errorf("renewed %+v", renewed)
	}
	wantMade(t, k.do(merge(setKey("a", `2`))), "state.changed")
	wantMade(t, k.do(events.DestroyState{}), "lifecycle.destroyed context.status.changed state.closed")
	k.wantValues(`{}`, 0)
	wantMade(t, k.do(events.DestroyState{}), "")
	wantMade(t, k.do(merge(setKey("b", `1`))), "context.created state.renewed state.changed")
	k.wantValues(`{"b":1}`, 2)
	if c, _ := k.state.context(created.ID); c.Status != events.ContextClosed || c.Content != nil {
		t.Errorf("the context of the last life is %+v", c)
	}
}

// A merge to a thread that does not exist is a not_found, unless it may create it.
func TestMergeState_CreatesTheThread(t *testing.T) {
	k := newStory(t)
	wantRefusal(t, k.refuse(merge(setKey("a", `1`))), events.NotFound, events.ErrorDetails{Entity: "thread", ID: threadID})
	d := merge(setKey("a", `1`))
	d.Create, d.UserID = true, "ada"
	wantMade(t, k.do(d), "thread.created context.created context.created state.renewed state.changed")
	if k.state.UserID() != "ada" {
		t.Errorf("the thread belongs to %q", k.state.UserID())
	}
	wantMade(t, k.do(d), "state.changed")
	k.do(events.DeleteThread{})
	wantRefusal(t, k.refuse(d), events.NotFound, events.ErrorDetails{Entity: "thread", ID: threadID})
}

// A refused merge changes nothing and names the operation and the key at fault.
func TestMergeState_RefusesWhole(t *testing.T) {
	k := begun(t)
	k.do(merge(setKey("text", `"x"`), setKey("nothing", `null`), setKey("n", `1`)))
	for _, c := range []struct {
		name  string
		merge events.MergeState
		path  string
		says  string
	}{
		{"push to what is no list", merge(setKey("n", `2`), push("text", `1`, 0)), "/data/operations/1", `push to key "text": its value is not a list`},
		{"push to null", merge(push("nothing", `1`, 0)), "/data/operations/0", `key "nothing"`},
		{"a number that overflows", merge(setKey("n", `2`), setKey("m", `[1e400]`)), "/data/operations/1/value", `key "m": 1e400 is too large`},
	} {
		err := k.refuse(c.merge)
		if err.Code != events.InvalidRequest || err.Details == nil || err.Details.Path != c.path || !strings.Contains(err.Message, c.says) {
			t.Errorf("%s: %v, %+v", c.name, err, err.Details)
		}
		k.wantValues(`{"text":"x","nothing":null,"n":1}`, 1)
	}
}

// AG-74, C-16: a state over 1,048,576 bytes of JSON is refused whole.
func TestMergeState_SizeLimit(t *testing.T) {
	k := begun(t)
	half := `"` + strings.Repeat("x", 500_000) + `"`
	k.do(merge(setKey("a", half)))
	k.do(merge(setKey("b", half)))
	rest := int64(events.MaxStateBytes) - k.do(merge(setKey("c", `""`)))[0].Data.(events.StateChanged).Bytes
	k.do(merge(setKey("c", `"`+strings.Repeat("x", int(rest))+`"`)))
	before, _ := k.values()
	if len(before) != events.MaxStateBytes {
		t.Fatalf("the state has %d bytes", len(before))
	}
	err := k.refuse(merge(setKey("c", `"`+strings.Repeat("x", int(rest)+1)+`"`)))
	if err.Code != events.PayloadTooLarge {
		t.Errorf("refused with %v", err)
	}
	k.wantValues(before, 1)
	if opening := newStory(t); opening.do(events.CreateThread{}) != nil {
		many := merge()
		for i := range 3 {
			many.Operations = append(many.Operations, setKey(fmt.Sprint(i), half))
		}
		if err := opening.refuse(many); err.Code != events.PayloadTooLarge {
			t.Errorf("the first merge: %v", err)
		}
		opening.wantValues(`{}`, 0)
	}
}

// A push to a large list is a small event.
func TestMergeState_PushIsASmallEvent(t *testing.T) {
	k := begun(t)
	line := `"` + strings.Repeat("x", 1000) + `"`
	for range 9 {
		d := merge()
		for range 100 {
			d.Operations = append(d.Operations, push("messages", line, 0))
		}
		k.do(d)
	}
	body, err := events.NewCommit(k.state.Chain, k.do(merge(push("messages", `"hi"`, 0))))
	if err != nil {
		t.Fatal(err)
	}
	if len(body.Body) > 1500 {
		t.Errorf("a push to a list of 900 KB is a commit of %d bytes", len(body.Body))
	}
}

// Only merges change a life's context.
func TestMergeState_OwnsItsContexts(t *testing.T) {
	k := begun(t)
	life := k.do(merge(setKey("a", `1`)))[0].Subject
	for _, d := range []any{
		events.SetContext{ContextID: life, Content: raw(`[]`)},
		events.SetContextStatus{ContextID: life, To: events.ContextStreaming},
		events.SetContextStatus{ContextID: life, To: events.ContextClosed},
		events.CreateContext{Key: "skein.state.7"},
		events.ResolveContext{Key: "skein.state.7"},
		events.ReactThread{ContextID: life, Text: to("hi")},
		events.CreateItem{ContextID: life, Item: message("", "x").Item},
	} {
		if err := k.refuse(d); err.Code != events.InvalidRequest || !strings.Contains(err.Message, "key-value state") {
			t.Errorf("%T: %v", d, err)
		}
	}
	k.do(events.CreateContext{Key: "skein.state.x"}, events.CreateContext{Key: "skein.state.01"}) // no lives
}

// AG-3, AG-18: a life ends an hour after the last activity, once, and never earlier. What
// renews it is recorded at most once a minute.
func TestState_Expires(t *testing.T) {
	k := begun(t)
	k.do(merge(setKey("a", `1`)))
	wantMade(t, k.do(events.TouchState{}), "")
	k.pass(59 * time.Second)
	wantMade(t, k.do(events.TouchState{}), "")
	k.pass(time.Second)
	wantMade(t, k.do(events.TouchState{}), "state.renewed")
	wantMade(t, k.do(events.TouchState{}), "")
	k.pass(time.Hour)
	wantMade(t, k.do(ExpireState{Life: 1}), "") // renewals may have been missed
	k.wantValues(`{"a":1}`, 1)
	k.do(merge(setKey("b", `1`)))
	due, _ := k.state.LifeDue(1)
	if left := due.Go().Sub(k.now.Go()); left < time.Hour {
		t.Errorf("a change of the values leaves the life %v", left)
	}
	k.pass(due.Go().Sub(k.now.Go()) - time.Millisecond)
	wantMade(t, k.do(ExpireState{Life: 1}), "lifecycle.destroyed context.status.changed state.closed")
	wantMade(t, k.do(ExpireState{Life: 1}), "")
	k.wantValues(`{}`, 0)
}

// A life is over at its end to the microsecond, and shows until when it lasts before.
func TestState_EndsWhenItIsDue(t *testing.T) {
	k := begun(t)
	k.do(merge(setKey("a", `1`)))
	due, ok := k.state.LifeDue(1)
	if _, other := k.state.LifeDue(2); !ok || other {
		t.Errorf("life 1 is due: %v, life 2: %v", ok, other)
	}
	for at, want := range map[events.Time]struct{ now, one bool }{due - 1: {true, true}, due: {false, true}} {
		now, err := k.state.Values(0, at)
		if err != nil || now.Loaded != want.now || want.now && (now.Ended || now.ExpiresAt == "") {
			t.Errorf("%d before its end the state is %+v, %v", due-at, now, err)
		}
		one, err := k.state.Values(1, at)
		if err != nil || one.Loaded != want.one || one.Ended == want.now || (one.ExpiresAt == "") == want.now {
			t.Errorf("%d before its end life 1 is %+v, %v", due-at, one, err)
		}
	}
	if _, err := k.state.Values(2, due-1); events.AsError(err).Code != events.NotFound {
		t.Errorf("a life to come: %v", err)
	}
}

// A life whose end nobody recorded in time is over all the same, for readers and for writers.
func TestState_ExpiresWithoutATimer(t *testing.T) {
	k := begun(t)
	k.do(merge(setKey("a", `1`)))
	k.pass(25 * time.Hour)
	k.wantValues(`{}`, 0)
	wantMade(t, k.do(merge(setKey("b", `1`))), "lifecycle.destroyed context.status.changed state.closed context.created state.renewed state.changed")
	k.wantValues(`{"b":1}`, 2)
	wantMade(t, k.do(ExpireState{Life: 1}), "")
	k.pass(25 * time.Hour)
	wantMade(t, k.do(events.TouchState{}), "lifecycle.destroyed context.status.changed state.closed")
}

// The idle time of a life can be chosen, and changed.
func TestState_IdleTime(t *testing.T) {
	k := begun(t)
	d := merge(setKey("a", `1`))
	d.IdleSeconds = 60
	k.do(d)
	wantMade(t, k.do(merge(setKey("a", `2`))), "state.changed") // it stays what it was
	k.pass(50 * time.Second)
	k.wantValues(`{"a":2}`, 1)
	d.IdleSeconds = 7200
	wantMade(t, k.do(d), "state.renewed state.changed")
	k.pass(2 * time.Hour)
	k.wantValues(`{"a":1}`, 1)
	k.pass(2*time.Minute + time.Second)
	k.wantValues(`{}`, 0)
}

// AG-46 to AG-48, AG-87: the values stay until every listener has released them; meanwhile the
// next life has begun.
func TestState_ListenersBeforeItIsCleared(t *testing.T) {
	k := begun(t)
	d := merge(setKey("a", `1`))
	d.Listeners = []string{"shop", "audit"}
	k.do(d)
	wantMade(t, k.do(d), "state.changed")
	if err := k.refuse(events.ReleaseState{Life: 1, Listener: "shop"}); err.Code != events.InvalidRequest {
		t.Errorf("a release of a life that goes on: %v", err)
	}
	made := k.do(events.DestroyState{Reason: "reset"})
	wantMade(t, made, "lifecycle.destroyed context.status.changed")
	if ended := made[0].Data.(events.LifecycleDestroyed); ended.Life != 1 || ended.Reason != "reset" || len(ended.Listeners) != 2 {
		t.Errorf("ended with %+v", ended)
	}
	k.wantValues(`{}`, 0)
	k.do(merge(setKey("b", `1`)))
	k.wantValues(`{"b":1}`, 2)
	if last, err := k.state.Values(1, k.now); err != nil || string(last.Values) != `{"a":1}` || !last.Ended {
		t.Errorf("the ended life shows %+v, %v", last, err)
	}
	wantMade(t, k.do(events.ReleaseState{Life: 1, Listener: "shop"}), "state.released")
	wantMade(t, k.do(events.ReleaseState{Life: 1, Listener: "shop"}), "") // it may be told twice
	wantMade(t, k.do(events.ReleaseState{Life: 1, Listener: "audit", ErrorText: "no"}), "state.released state.closed")
	wantMade(t, k.do(events.ReleaseState{Life: 1, Listener: "audit"}), "")
	if _, err := k.state.Values(1, k.now); events.AsError(err).Code != events.NotFound {
		t.Errorf("a cleared life: %v", err)
	}
	if err := k.refuse(events.ReleaseState{Life: 3, Listener: "shop"}); err.Code != events.NotFound {
		t.Errorf("a life that never was: %v", err)
	}
}

// An application that never comes back does not keep the values for ever.
func TestState_ListenersAreWaitedForThreeDays(t *testing.T) {
	k := begun(t)
	d := merge(setKey("a", `1`))
	d.Listeners = []string{"shop"}
	k.do(d)
	k.do(events.DestroyState{})
	k.pass(events.ListenerPatience - time.Second)
	wantMade(t, k.do(ExpireState{Life: 1}), "")
	k.pass(time.Second)
	made := k.do(ExpireState{Life: 1})
	wantMade(t, made, "state.released state.closed")
	if made[0].Data.(events.StateReleased).ErrorText == "" {
		t.Error("it is not recorded why")
	}
}

// A thread with a state is not archived before that has ended and is cleared.
func TestState_KeepsTheThreadFromTheArchive(t *testing.T) {
	k := newStory(t)
	k.do(events.CreateThread{})
	d := merge(setKey("a", `1`))
	d.Listeners = []string{"shop"}
	for _, do := range []any{d, events.DestroyState{}} {
		k.do(do)
		if k.state.Busy() == "" {
			t.Errorf("after %T it can be archived", do)
		}
	}
	if k.do(events.ReleaseState{Life: 1, Listener: "shop"}); k.state.Busy() != "" {
		t.Error("it cannot be archived:", k.state.Busy())
	}
}

// Each event of a state holds the facts of the state that it follows, and nothing else.
func TestHolds_State(t *testing.T) {
	k := begun(t)
	d := merge(setKey("a", `1`))
	d.Listeners = []string{"shop"}
	life := k.do(d)[0].Subject
	held := k.do(merge(setKey("b", `2`)))[0].Data.(events.StateChanged)
	held.Operations = []events.StateOperation{setKey("b", `3`)}
	other := k.do(events.CreateContext{Key: "other"})[0].Subject
	holdsBut(t, k, k.after(events.StateChangedType, life, "", held),
		anotherSubject("not in the thread"),
		the("a wrong size", "2 keys", func(d *events.StateChanged) { d.Size++ }),
		the("wrong bytes", "13 bytes", func(d *events.StateChanged) { d.Bytes++ }),
		the("another life", "current life is 1", func(d *events.StateChanged) { d.Life = 2 }),
		the("a push to a number", "not a list", func(d *events.StateChanged) { d.Operations = []events.StateOperation{push("b", `1`, 0)} }),
		the("content", "takes operations only", func(d *events.StateChanged) { d.Operations, d.Content = nil, raw(`{"a":1,"b":3}`) }),
		forgery{"a context that is no life", func(e *events.Event) { e.Subject = other }, "takes no operations"})
	at := k.after(events.StateRenewedType, life, "", events.StateRenewed{}).Time
	holdsBut(t, k, k.after(events.StateRenewedType, life, "", events.StateRenewed{Life: 1, Until: (at + 60e6).String(), IdleSeconds: 60, Listeners: []string{"shop", "x"}}),
		anotherSubject("its subject should be"),
		the("another life", "current life is 1", func(d *events.StateRenewed) { d.Life = 2 }),
		the("another time", "not its idle time later", func(d *events.StateRenewed) { d.IdleSeconds = 61 }),
		the("a listener less", "drops", func(d *events.StateRenewed) { d.Listeners = nil }))
	holdsBut(t, k, k.after(events.LifecycleDestroyedType, threadID, "", events.LifecycleDestroyed{Reason: "expired", Life: 1, ContextID: life, Listeners: []string{"shop"}}),
		anotherSubject("its subject should be"), anotherCorrelation("its correlation should be"),
		the("another life", "current life is 1", func(d *events.LifecycleDestroyed) { d.Life = 2 }),
		the("another context", "current life is 1", func(d *events.LifecycleDestroyed) { d.ContextID = other }),
		the("other listeners", "those that listen", func(d *events.LifecycleDestroyed) { d.Listeners = nil }))
	holdsBut(t, k, k.after(events.ContextCreatedType, "ctx_b", "", events.ContextCreated{ID: "ctx_b", Key: to("b"), Status: events.ContextOpen, Content: raw(`null`)}),
		the("the key of a life", "life 2 of the state", func(d *events.ContextCreated) { d.Key = to("skein.state.2") }))
	if err := holds(k.state, []events.Event{k.after(events.ContextStatusChangedType, life, "", events.ContextStatusChanged{From: events.ContextOpen, To: events.ContextClosed})}); err == nil {
		t.Error("a life's context closes without its end")
	}
	k.do(events.DestroyState{})
	holdsBut(t, k, k.after(events.StateReleasedType, life, "", events.StateReleased{Life: 1, Listener: "shop"}),
		anotherSubject("its subject should be"),
		the("another life", "has not ended", func(d *events.StateReleased) { d.Life = 2 }),
		the("another listener", "does not listen", func(d *events.StateReleased) { d.Listener = "x" }))
	holdsBut(t, k, k.after(events.StateReleasedType, life, "", events.StateReleased{Life: 1, Listener: "shop"}), anotherCorrelation("its correlation should be"))
	if err := holds(k.state, []events.Event{k.after(events.StateClosedType, life, "", events.StateClosed{Life: 1, Reason: "destroyed"})}); err == nil {
		t.Error("a life is cleared before its listener has released it")
	}
	released, err := Decide(k.state, k.command(events.ReleaseState{Life: 1, Listener: "shop"}))
	if err != nil || len(released) != 2 {
		t.Fatal(released, err)
	}
	for _, f := range []forgery{
		{"another life", func(e *events.Event) { e.Data = events.StateClosed{Life: 2, Reason: "destroyed"} }, "has not ended"},
		{"another reason", func(e *events.Event) { e.Data = events.StateClosed{Life: 1, Reason: "expired"} }, "ended because"},
		anotherSubject("its subject should be"), anotherCorrelation("its correlation should be"),
	} {
		forged := []events.Event{released[0], released[1]}
		f.change(&forged[1])
		if err := holds(k.state, forged); err == nil || !strings.Contains(err.Error(), f.says) {
			t.Errorf("state.closed with %s: %v, want %q", f.name, err, f.says)
		}
	}
}

// Random merges leave what a plain map would hold, whatever the fold does to stay fast.
func TestMergeState_Random(t *testing.T) {
	k := begun(t)
	r := rand.New(rand.NewPCG(1, 2))
	model, life := map[string]any{}, int64(0)
	for range 400 {
		if r.IntN(40) == 0 {
			if k.do(events.DestroyState{}); len(model) > 0 || life > 0 {
				model = map[string]any{}
			}
			k.wantValues(`{}`, 0)
			continue
		}
		d, next := merge(), map[string]any{}
		for key, v := range model {
			next[key] = v
		}
		legal := true
		for range 1 + r.IntN(4) {
			key, n := string(rune('a'+r.IntN(4))), float64(r.IntN(9))
			switch r.IntN(8) {
			case 0, 1:
				d.Operations, next[key] = append(d.Operations, setKey(key, fmt.Sprint(n))), n
			case 2:
				d.Operations = append(d.Operations, deleteKey(key))
				delete(next, key)
			case 3:
				if r.IntN(6) == 0 {
					d.Operations, next = append(d.Operations, clearAll()), map[string]any{}
				} else {
					d.Operations, next[key] = append(d.Operations, setKey(key, `[]`)), []any{}
				}
			default:
				most := int64(r.IntN(4))
				d.Operations = append(d.Operations, push(key, fmt.Sprint(n), most))
				list, isList := next[key].([]any)
				if _, has := next[key]; has && !isList {
					legal = false
				}
				list = append(list[:len(list):len(list)], n)
				if most > 0 && int64(len(list)) > most {
					list = list[int64(len(list))-most:]
				}
				next[key] = list
			}
		}
		if len(d.Operations) == 0 {
			continue
		}
		if !legal {
			k.refuse(d)
			continue
		}
		k.do(d)
		model = next
		have, n := k.values()
		life = n
		var got map[string]any
		if err := json.Unmarshal([]byte(have), &got); err != nil {
			t.Fatal(err)
		}
		if fmt.Sprint(got) != fmt.Sprint(model) {
			t.Fatalf("after %+v the state is %v, want %v", d.Operations, got, model)
		}
	}
}
