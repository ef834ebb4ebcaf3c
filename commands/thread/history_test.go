package thread

import (
	"bytes"
	"iter"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/skein-threads/skein/events"
)

// dice returns a number from 0 up to n.
type dice func(n int) int

func pick[T any](roll dice, list ...T) T { return list[roll(len(list))] }

// entity returns the id of an existing entity, and occasionally of none.
func entity[V any](roll dice, there iter.Seq2[string, V]) string {
	var ids []string
	for id := range there {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	if len(ids) == 0 || roll(12) == 0 {
		return "nobody"
	}
	return pick(roll, ids...)
}

// chance returns something with a chance of one in n, and otherwise nil.
func chance[T any](roll dice, n int, something T) T {
	if roll(n) == 0 {
		return something
	}
	return *new(T)
}

// anyCommand makes a command that the state may take or refuse.
func anyCommand(roll dice, s *State) any {
	ctx := chance(roll, 2, entity(roll, maps.All(s.contexts)))
	key := chance(roll, 2, "k"+strconv.Itoa(roll(3)))
	json := pick(roll, raw(`null`), raw(`{"a":1}`), raw(`[1,"ü"]`), raw(`"text"`))
	switch roll(27) {
	case 0:
		return events.CreateThread{Key: key}
	case 1:
		return events.ResolveThread{Key: "k"}
	case 2:
		return chance[any](roll, 30, events.DeleteThread{Purge: roll(2) == 0})
	case 3, 4:
		return events.SetThreadStatus{To: pick(roll, events.ThreadMachine().States...)}
	case 5:
		return events.UpdateThread{Title: chance(roll, 2, to("t"))}
	case 6:
		return events.FinishThread{ExecutionID: entity(roll, s.executions.All(s.pool))}
	case 7:
		return events.CreateContext{Key: key, Content: json, ID: chance(roll, 4, entity(roll, maps.All(s.contexts)))}
	case 8:
		return events.ResolveContext{Key: key}
	case 9:
		return events.SetContextStatus{ContextID: ctx, To: pick(roll, events.ContextMachine().States...)}
	case 10:
		return events.SetContext{ContextID: ctx, Content: json}
	case 11:
		return events.SetContext{ContextID: ctx, Patch: raw(`{"n` + strconv.Itoa(roll(3)) + `":` + pick(roll, "null", "1", `{"a":null,"b":2}`) + `}`)}
	case 12, 13:
		c := message(chance(roll, 8, entity(roll, s.items.All(s.pool))), "x")
		c.ContextID, c.Item.Status = ctx, pick(roll, "", events.ItemStored, events.ItemPending, events.ItemCompleted)
		c.Item.ParentItemID = chance(roll, 4, entity(roll, s.items.All(s.pool)))
		return c
	case 14:
		return events.SetItemStatus{ItemID: entity(roll, s.items.All(s.pool)), To: pick(roll, events.ItemMachine().States...)}
	case 15:
		return events.EditMessage{ItemID: entity(roll, s.items.All(s.pool)), Silent: chance(roll, 2, to(true))}
	case 16:
		return chance[any](roll, 3, events.DeleteMessage{ItemID: entity(roll, s.items.All(s.pool))})
	case 17:
		return events.CreateExecution{ContextID: ctx, TriggerItemID: entity(roll, s.items.All(s.pool)), ID: chance(roll, 8, entity(roll, s.executions.All(s.pool)))}
	case 18:
		return events.SetExecutionStatus{ExecutionID: entity(roll, s.executions.All(s.pool)), To: pick(roll, events.ExecutionMachine().States...)}
	case 19:
		return events.CreateStep{ExecutionID: entity(roll, s.executions.All(s.pool)), Iteration: chance(roll, 4, to(int64(roll(5))))}
	case 20:
		return events.SetStepStatus{StepID: entity(roll, s.steps.All(s.pool)), To: pick(roll, events.StepMachine().States...), ExecutionID: chance(roll, 8, entity(roll, s.executions.All(s.pool)))}
	case 21, 22:
		return events.ScheduleEffect{Name: "remind", EveryMs: chance(roll, 3, to(int64(1000))), Retries: to(int64(roll(3)))}
	case 23:
		return events.CancelEffect{EffectID: entity(roll, maps.All(s.effects))}
	case 24:
		id := entity(roll, maps.All(s.effects))
		e, _ := s.effect(id)
		return StartEffect{ID: id, Firing: e.Firing, Attempt: e.Attempt + 1, Claim: uint64(1 + roll(5)), Lost: chance(roll, 2, e.Claim)}
	case 25:
		id := entity(roll, maps.All(s.effects))
		e, _ := s.effect(id)
		if roll(2) == 0 {
			return CompleteEffect{ID: id, Firing: e.Firing, Attempt: e.Attempt}
		}
		return FailEffect{ID: id, Firing: e.Firing, Attempt: e.Attempt, ErrorText: "it failed"}
	default:
		return events.PutPart{StepID: entity(roll, s.steps.All(s.pool)), Idx: to(int64(roll(6))), Part: json}
	}
}

// history runs random commands. After each commit the deciding state is compared with one
// folded from the stored bytes (by the story), and at the end with one that was encoded and
// decoded in between. A refused command changes nothing. It returns how many commands
// succeeded and were refused.
func history(t testing.TB, roll dice, commands int) (done, refused int) {
	k := newStory(t)
	k.do(events.CreateThread{Key: "k"})
	checker := events.NewTimelineChecker()
	first, err := Decide(&State{}, &Command{ID: "cmd-1", Tenant: tenant, ThreadID: threadID, Time: dawn + 1000, Parts: []Part{{"thread.create", events.CreateThread{Key: "k"}}}})
	if err != nil {
		t.Fatal(err)
	}
	check := func(made []events.Event) {
		t.Helper()
		for i := range made {
			if err := checker.Check(&made[i]); err != nil {
				t.Fatal(err)
			}
		}
	}
	check(first)
	var middle *State
	at := roll(commands)
	for n := range commands {
		if n == at {
			if middle, err = DecodeState(encoded(t, k.state)); err != nil {
				t.Fatal(err)
			}
		}
		d := NewDraft(k.state)
		before := k.bytes()
		for range 1 + roll(3) { // commands that share a commit
			var data []any
			for range 1 + chance(roll, 4, 1+roll(3)) { // parts of a thread.commit
				if one := anyCommand(roll, k.state); one != nil {
					data = append(data, one)
				}
			}
			if slices.ContainsFunc(data, isDelete) {
				if len(data) > 1 || len(d.Events()) > 0 {
					continue // it stands alone in its commit
				}
			}
			if len(data) == 0 || d.layer.Deleted {
				continue
			}
			c := k.command(data...)
			c.Time += events.Time(roll(3)) * day / 3
			drafted, version := len(d.Events()), d.layer.Version
			made, err := d.Do(c)
			if err == nil {
				done++
				check(made)
			} else if refused++; len(d.Events()) != drafted || d.layer.Version != version {
				t.Fatalf("a refused command left something in the draft: %v", err)
			}
		}
		if !bytes.Equal(before, encoded(t, k.state)) {
			t.Fatal("a draft changed the state below")
		}
		if len(d.Events()) == 0 {
			continue
		}
		commit := k.store(d)
		if middle != nil {
			read, err := events.DecodeCommit(tenant, threadID, commit.Seq, commit.Version, commit.Chain, commit.Body)
			if err != nil {
				t.Fatal(err)
			}
			Apply(middle, read)
		}
	}
	if mine, other := encoded(t, k.state), encoded(t, middle); !bytes.Equal(mine, other) {
		t.Fatalf("the state that was encoded amid the history differs\n%s\n%s", mine, other)
	}
	if mine, other := k.state.Bytes(), middle.Bytes(); mine != other {
		t.Fatalf("the state counts as %d bytes, the one that was encoded amid the history as %d", mine, other)
	}
	return done, refused
}

func isDelete(data any) bool {
	_, ok := data.(events.DeleteThread)
	return ok
}

// Random histories, legal and refused commands mixed, hold what the package
// promises, and are timelines that the checker accepts (EK-124, EK-150,
// EK-160..EK-164).
func TestDecide_RandomHistories(t *testing.T) {
	done, refused := 0, 0
	for seed := range uint64(60) {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			d, r := history(t, rand.New(rand.NewPCG(seed, 7)).IntN, 80)
			done, refused = done+d, refused+r
		})
	}
	if done < 2000 || refused < 1000 {
		t.Errorf("only %d commands were done and %d refused", done, refused)
	}
	t.Logf("%d commands done, %d refused", done, refused)
}

// Whatever bytes choose the commands, nothing panics and the same holds.
func FuzzHistory(f *testing.F) {
	f.Add([]byte("a thread of agents"))
	f.Add(bytes.Repeat([]byte{12, 0, 17, 3}, 40))
	f.Add([]byte{2, 0, 0, 0, 0, 0, 0, 1, 1, 1})
	f.Fuzz(func(t *testing.T, ops []byte) {
		roll := func(n int) int {
			if len(ops) == 0 {
				return 0
			}
			b := ops[0]
			ops = ops[1:]
			return int(b) % n
		}
		history(t, roll, min(1+len(ops)/8, 60))
	})
}
