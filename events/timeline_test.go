package events

import (
	"errors"
	"strings"
	"testing"
)

// react returns a turn as a whole thread, in the order of EK 14, with the events around it.
func react() []Event {
	list := turn()
	more := stream(
		sample{ThreadStatusChangedType, thread, ThreadStatusChanged{From: ThreadStreaming, To: ThreadOpen}},
		sample{ContextStatusChangedType, ctxID, ContextStatusChanged{From: ContextStreaming, To: ContextOpen}},
		sample{ThreadFinishedType, thread, ThreadFinished{ExecutionID: execID, Status: ExecutionCompleted}},
		sample{PartUpdatedType, PartKey(stepID, 0), PartUpdated{Key: PartKey(stepID, 0), StepID: stepID, Part: raw(`{}`)}},
		sample{MessageEditedType, itemID, MessageEdited{Content: raw(`[]`)}},
		sample{MessageDeletedType, itemID, MessageDeleted{}},
		sample{ContextResolvedType, ctxID, ContextResolved{}},
		sample{ProfileChangedType, thread, ProfileChanged{Title: to("x")}},
	)
	return renumbered(append(list, more...))
}

// renumbered sets the events' versions to their places.
func renumbered(list []Event) []Event {
	for i := range list {
		list[i].Version = int64(i + 1)
	}
	return list
}

// EK-150, EK-186: a stream that follows the specification passes, both as it was made and as
// it is decoded from the log.
func TestTimelineChecker_AcceptsTurn(t *testing.T) {
	list := react()
	if err := ValidateTimeline(list); err != nil {
		t.Error(err)
	}
	back, err := reread(commitOf(t, list))
	if err != nil {
		t.Fatal(err)
	}
	if err := ValidateTimeline(back.Events); err != nil {
		t.Error(err)
	}
	if err := ValidateTimeline(nil); err != nil {
		t.Error(err)
	}
}

// Every change of state that EK 5 does not allow is reported, for each machine: EK-81..EK-101,
// EK-150.
func TestTimelineChecker_ReportsForbiddenMoves(t *testing.T) {
	// The moves that lead an entity from creation into each state, in the thread of the turn.
	path := map[string]map[string][]string{
		"thread":    {"open": {}, "streaming": {"streaming"}, "closed": {"streaming", "closed"}, "failed": {"streaming", "failed"}},
		"context":   {"open": {}, "streaming": {"streaming"}, "closed": {"closed"}},
		"item":      {"stored": {}, "pending": {"pending"}, "completed": {"completed"}},
		"execution": {"executing": {}, "completed": {"completed"}, "failed": {"failed"}},
		"step":      {"running": {}, "completed": {"completed"}, "failed": {"failed"}},
	}
	moves := 0
	for entity, states := range path {
		allowed := specifiedMoves(entity)
		for from, way := range states {
			for to := range states {
				moves++
				list := made()
				at := list[0].initial(entity)
				for _, next := range append(append([]string{}, way...), to) {
					list = append(list, change(entity, at, next))
					at = next
				}
				err := ValidateTimeline(renumbered(list.events()))
				legal := strings.Contains(" "+strings.Join(allowed[from], " ")+" ", " "+to+" ")
				if legal && err == nil {
					continue
				}
				var fault *TimelineError
				var refused *TransitionError
				switch {
				case legal:
					t.Errorf("%s %s -> %s: %v", entity, from, to, err)
				case !errors.As(err, &fault) || fault.Version != int64(len(list)) || !errors.As(err, &refused):
					t.Errorf("%s %s -> %s: %v", entity, from, to, err)
				case refused.Entity != entity || refused.From != from || refused.To != to:
					t.Errorf("%s %s -> %s: %v", entity, from, to, refused)
				}
			}
		}
	}
	if moves != 16+9+9+9+9 {
		t.Errorf("%d moves were tried", moves)
	}
}

type sampleList []sample

func (l sampleList) events() []Event { return stream(l...) }

func (sample) initial(entity string) string {
	return map[string]string{
		"thread": "open", "context": "open", "item": "stored", "execution": "executing", "step": "running",
	}[entity]
}

// made returns a thread with one entity of each kind, each in its initial state.
func made() sampleList {
	return sampleList{
		{ThreadCreatedType, thread, ThreadCreated{ID: thread, Status: ThreadOpen}},
		{ContextCreatedType, ctxID, ContextCreated{ID: ctxID, Status: ContextOpen, Content: raw("null")}},
		{ItemCreatedType, itemID, ItemCreated{ID: itemID, ContextID: ctxID, Type: Message, Status: ItemStored}},
		{ExecutionCreatedType, execID, ExecutionCreated{ID: execID, ContextID: ctxID, TriggerItemID: itemID, ReactionItemID: replyID, Status: Executing}},
		{StepCreatedType, stepID, StepCreated{ID: stepID, ExecutionID: execID, EventID: replyID, Status: StepRunning}},
		{PartCreatedType, PartKey(stepID, 0), PartCreated{Key: PartKey(stepID, 0), StepID: stepID}},
	}
}

func change(entity, from, to string) sample {
	switch entity {
	case "thread":
		return sample{ThreadStatusChangedType, thread, ThreadStatusChanged{From: ThreadStatus(from), To: ThreadStatus(to)}}
	case "context":
		return sample{ContextStatusChangedType, ctxID, ContextStatusChanged{From: ContextStatus(from), To: ContextStatus(to)}}
	case "item":
		return sample{ItemStatusChangedType, itemID, ItemStatusChanged{From: ItemStatus(from), To: ItemStatus(to)}}
	case "execution":
		return sample{ExecutionStatusChangedType, execID, ExecutionStatusChanged{From: ExecutionStatus(from), To: ExecutionStatus(to)}}
	default:
		return sample{StepStatusChangedType, stepID, StepStatusChanged{ExecutionID: execID, From: StepStatus(from), To: StepStatus(to)}}
	}
}

// Each way in which an event may not fit the ones before it. EK-160..EK-164: the links; EK-73:
// a part's key; EK-18, EK-25, EK-58, EK-65: the initial states.
func TestTimelineChecker_Faults(t *testing.T) {
	const ghost = "itm_ghost"
	next := int64(len(made()) + 1)
	for name, c := range map[string]struct {
		event sample
		want  string
	}{
		"a thread twice":              {made()[0], "is created twice"},
		"a context twice":             {made()[1], "is created twice"},
		"an item twice":               {made()[2], "is created twice"},
		"an execution twice":          {made()[3], "is created twice"},
		"a step twice":                {made()[4], "is created twice"},
		"a part twice":                {made()[5], "is created twice"},
		"another thread":              {sample{ThreadCreatedType, thread, ThreadCreated{ID: otherID, Status: ThreadOpen}}, "creates thread"},
		"a context by another":        {sample{ContextCreatedType, "ctx_2", ContextCreated{ID: "ctx_3", Status: ContextOpen}}, "about"},
		"a context that streams":      {sample{ContextCreatedType, "ctx_2", ContextCreated{ID: "ctx_2", Status: ContextStreaming}}, "begins as"},
		"an item failed":              {sample{ItemCreatedType, ghost, ItemCreated{ID: ghost, ContextID: ctxID, Status: "failed"}}, "begins as"},
		"an execution completed":      {sample{ExecutionCreatedType, "exe_2", ExecutionCreated{ID: "exe_2", ContextID: ctxID, TriggerItemID: itemID, ReactionItemID: replyID, Status: ExecutionCompleted}}, "begins as"},
		"a step completed":            {sample{StepCreatedType, "stp_2", StepCreated{ID: "stp_2", ExecutionID: execID, Status: StepCompleted}}, "begins as"},
		"an item without an id":       {sample{ItemCreatedType, "", ItemCreated{ContextID: ctxID, Status: ItemStored}}, "about"},
		"an item's context":           {sample{ItemCreatedType, ghost, ItemCreated{ID: ghost, ContextID: "ctx_9", Status: ItemStored}}, `context "ctx_9" is not in the thread`},
		"an execution's context":      {sample{ExecutionCreatedType, "exe_2", ExecutionCreated{ID: "exe_2", ContextID: "ctx_9", TriggerItemID: itemID, ReactionItemID: replyID, Status: Executing}}, `context "ctx_9"`},
		"an execution's trigger":      {sample{ExecutionCreatedType, "exe_2", ExecutionCreated{ID: "exe_2", ContextID: ctxID, TriggerItemID: ghost, ReactionItemID: replyID, Status: Executing}}, `item "itm_ghost"`},
		"an execution's reaction":     {sample{ExecutionCreatedType, "exe_2", ExecutionCreated{ID: "exe_2", ContextID: ctxID, TriggerItemID: itemID, Status: Executing}}, "no reaction item"},
		"a step's execution":          {sample{StepCreatedType, "stp_2", StepCreated{ID: "stp_2", ExecutionID: "exe_9", Status: StepRunning}}, `execution "exe_9"`},
		"a step of another":           {sample{StepStatusChangedType, stepID, StepStatusChanged{ExecutionID: "exe_9", From: StepRunning, To: StepCompleted}}, `not of "exe_9"`},
		"a part's step":               {sample{PartCreatedType, "stp_9:0", PartCreated{Key: "stp_9:0", StepID: "stp_9"}}, `step "stp_9"`},
		"a part's key":                {sample{PartCreatedType, PartKey(stepID, 2), PartCreated{Key: PartKey(stepID, 2), StepID: stepID, Idx: 3}}, "is not at"},
		"a part by another":           {sample{PartCreatedType, "x", PartCreated{Key: PartKey(stepID, 2), StepID: stepID, Idx: 2}}, "about"},
		"a part before it is created": {sample{PartUpdatedType, PartKey(stepID, 2), PartUpdated{Key: PartKey(stepID, 2), StepID: stepID, Idx: 2}}, "is not in the thread"},
		"a change of no item":         {sample{ItemStatusChangedType, ghost, ItemStatusChanged{From: ItemStored, To: ItemPending}}, `item "itm_ghost" is not in the thread`},
		"a change from elsewhere":     {sample{ItemStatusChangedType, itemID, ItemStatusChanged{From: ItemPending, To: ItemCompleted}}, "is stored, not"},
		"an edit of no item":          {sample{MessageEditedType, ghost, MessageEdited{}}, `item "itm_ghost"`},
		"a delete of no item":         {sample{MessageDeletedType, ghost, MessageDeleted{}}, `item "itm_ghost"`},
		"no such context":             {sample{ContextResolvedType, "ctx_9", ContextResolved{}}, `context "ctx_9"`},
		"over while it runs":          {sample{ThreadFinishedType, thread, ThreadFinished{ExecutionID: execID, Status: Executing}}, "is executing"},
		"over without a run":          {sample{ThreadFinishedType, thread, ThreadFinished{ExecutionID: "exe_9", Status: ExecutionFailed}}, `execution "exe_9"`},
		"an item's unknown event":     {sample{"item.renamed", ghost, Unknown{Reason: "unknown event type"}}, "the entity item has no such event"},
		"a thread's unknown event":    {sample{"thread.paused", thread, Unknown{Reason: "unknown event type"}}, "the entity thread has no such event"},
		"a chunk's unknown event":     {sample{"chunk.lost", ghost, Unknown{Reason: "unknown event type"}}, "the entity chunk has no such event"},
		"a later version":             {sample{ItemCreatedType, ghost, Unknown{Reason: "unknown version"}}, "cannot be checked"},
	} {
		err := ValidateTimeline(append(made(), c.event).events())
		var fault *TimelineError
		if !errors.As(err, &fault) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", name, err, c.want)
			continue
		}
		if fault.Tenant != tenant || fault.Thread != thread || fault.Version != next || fault.Type != c.event.of ||
			fault.ID != EventID(tenant, thread, cmdID, int(next-1)) || fault.Cause == nil {
			t.Errorf("%s: %#v", name, fault)
		}
		if !strings.HasPrefix(err.Error(), string(c.event.of)+", version 7 of acme/"+thread+" (event "+fault.ID+"): ") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Valid events that are not part of the turn.
func TestTimelineChecker_AcceptsValidEvents(t *testing.T) {
	for name, s := range map[string]sample{
		"an item that is pending (EK-189)": {ItemCreatedType, replyID, ItemCreated{ID: replyID, ContextID: ctxID, Status: ItemPending}},
		"an item that is completed":        {ItemCreatedType, replyID, ItemCreated{ID: replyID, ContextID: ctxID, Status: ItemCompleted}},
		"an event of an extension":         {"acme.happened", "x", Unknown{Reason: "unknown event type"}},
		"another part":                     {PartCreatedType, PartKey(stepID, 7), PartCreated{Key: PartKey(stepID, 7), StepID: stepID, Idx: 7}},
		"the tombstone":                    {LifecycleDeletedType, thread, LifecycleDeleted{}},
	} {
		if err := ValidateTimeline(append(made(), s).events()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
