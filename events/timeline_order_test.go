package events

import (
	"errors"
	"strings"
	"testing"
)

// The order: no gap, no step back in time, a first event, a last one.
func TestTimelineChecker_Order(t *testing.T) {
	edit := func(change func([]Event) []Event) []Event { return change(made().events()) }
	for name, c := range map[string]struct {
		list []Event
		at   int64
		want string
	}{
		"a gap":          {edit(func(l []Event) []Event { l[3].Version = 5; return l }), 5, "it follows version 3"},
		"the end cut":    {edit(func(l []Event) []Event { return l[:4] }), 0, ""}, // who reads on would see more
		"one missing":    {edit(func(l []Event) []Event { return append(l[:4], l[5:]...) }), 6, "it follows version 4"},
		"one twice":      {edit(func(l []Event) []Event { return append(l[:2], l[1:]...) }), 2, "it follows version 2"},
		"back in time":   {edit(func(l []Event) []Event { l[2].Time--; return l }), 3, "is before"},
		"no beginning":   {edit(func(l []Event) []Event { return l[1:] }), 2, "first event has version 2"},
		"another start":  {renumbered(made().events()[1:]), 1, "begins with thread.created"},
		"after deletion": {append(made(), sample{LifecycleDeletedType, thread, LifecycleDeleted{}}, sample{ProfileChangedType, thread, ProfileChanged{}}).events(), 8, "deleted before it"},
	} {
		err := ValidateTimeline(c.list)
		if c.want == "" {
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		var fault *TimelineError
		if !errors.As(err, &fault) || fault.Version != c.at || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s at version %d", name, err, c.want, c.at)
		}
	}
}

// A react is over once, with the state in which its execution ended (C-43).
func TestTimelineChecker_FinishedThreads(t *testing.T) {
	ended := append(made(), change("execution", "executing", "failed"))
	over := func(s ExecutionStatus) sample {
		return sample{ThreadFinishedType, thread, ThreadFinished{ExecutionID: execID, Status: s}}
	}
	for name, c := range map[string]struct {
		list sampleList
		want string
	}{
		"as it ended": {sampleList{over(ExecutionFailed)}, ""},
		"otherwise":   {sampleList{over(ExecutionCompleted)}, "is failed, and did not end as"},
		"twice":       {sampleList{over(ExecutionFailed), over(ExecutionFailed)}, "finished twice"},
	} {
		err := ValidateTimeline(append(ended[:len(ended):len(ended)], c.list...).events())
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// Of a thread that was purged only its last commit is left.
func TestTimelineChecker_PurgedThread(t *testing.T) {
	last := func(data ...sample) []Event {
		list := stream(data...)
		for i := range list {
			list[i].Version = int64(40 + i)
		}
		return list
	}
	released := sample{KeyReleasedType, thread, KeyReleased{Key: "k", ThreadID: thread}}
	gone := sample{LifecycleDeletedType, thread, LifecycleDeleted{Purge: true}}
	for name, list := range map[string][]Event{"with a key": last(released, gone), "without": last(gone)} {
		if err := ValidateTimeline(list); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	kept := sample{LifecycleDeletedType, thread, LifecycleDeleted{}}
	if err := ValidateTimeline(last(released, kept)); err == nil || !strings.Contains(err.Error(), "missing") {
		t.Errorf("erased without a word: %v", err)
	}
}

// Transient events have no place in the order: a stream may have them or not.
func TestTimelineChecker_IgnoresTransientEvents(t *testing.T) {
	list := made().events()
	chunk := sample{ChunkEmittedType, "exe_9", ChunkEmitted{}}.event()
	chunk.Version, chunk.Time = 99, 1
	if err := ValidateTimeline(append(list, chunk)); err != nil {
		t.Error(err)
	}
}

// Several threads of several tenants may be mixed, with a key's claim and the tenant's own
// events among them.
func TestTimelineChecker_SeveralThreads(t *testing.T) {
	one := react()
	others := map[[2]string][]Event{}
	for _, name := range [][2]string{{"other", thread}, {tenant, "thrd_" + strings.Repeat("a", 30)}} {
		list := react()
		for i := range list {
			list[i].Tenant, list[i].ThreadID = name[0], name[1]
			if list[i].Subject == thread {
				list[i].Subject = name[1]
			}
		}
		created := list[0].Data.(ThreadCreated)
		created.ID = name[1]
		list[0].Data = created
		others[name] = list
	}
	key := stream(samples()[28])
	key[0].ThreadID = KeyAggregate("support/42")
	own := stream(sample{DefinitionChangedType, "agent/triage", definedAs("triage", 1, 0, `{}`)})
	own[0].ThreadID = TenantAggregate
	mixed := append(key, own...)
	for i := range one {
		mixed = append(mixed, one[i])
		for _, list := range others {
			mixed = append(mixed, list[i])
		}
	}
	if err := ValidateTimeline(mixed); err != nil {
		t.Error(err)
	}
}

// A checker continues after a fault, and reports it once.
func TestTimelineChecker_ContinuesAfterFault(t *testing.T) {
	list := react()
	list[8].Version = 12 // a gap of three, and a gap back
	c := NewTimelineChecker()
	var faults []int64
	for i := range list {
		var fault *TimelineError
		if err := c.Check(&list[i]); errors.As(err, &fault) {
			faults = append(faults, fault.Version)
		} else if err != nil {
			t.Error(err)
		}
	}
	if len(faults) != 2 || faults[0] != 12 || faults[1] != 10 {
		t.Errorf("faults at %d", faults)
	}

	list = react()
	list[4].Time += 10 // one clock ahead: the next event seems to go back, and those after it do not
	c, faults = NewTimelineChecker(), nil
	for i := range list {
		if c.Check(&list[i]) != nil {
			faults = append(faults, list[i].Version)
		}
	}
	if len(faults) != 1 || faults[0] != 6 {
		t.Errorf("faults at %d", faults)
	}

	skipped := renumbered(append(made().events()[:2], react()[3:]...)) // without the trigger item
	c, faults = NewTimelineChecker(), nil
	for i := range skipped {
		if c.Check(&skipped[i]) != nil {
			faults = append(faults, skipped[i].Version)
		}
	}
	// The execution that names it, its edit and its deletion: no more.
	if len(faults) != 3 {
		t.Errorf("faults at %d", faults)
	}
}

func TestTimelineChecker_Forget(t *testing.T) {
	c := NewTimelineChecker()
	list := react()
	check := func() error {
		for i := range list {
			if err := c.Check(&list[i]); err != nil {
				return err
			}
		}
		return nil
	}
	if err := check(); err != nil {
		t.Fatal(err)
	}
	c.Forget("other", thread)
	if err := check(); err == nil {
		t.Error("another thread was forgotten")
	}
	c.Forget(tenant, thread)
	if err := check(); err != nil {
		t.Error(err)
	}
	c.Forget(tenant, thread)
	if len(c.threads) != 0 {
		t.Errorf("%d threads are kept", len(c.threads))
	}
}
