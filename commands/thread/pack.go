package thread

import (
	"math"
	"slices"
	"unsafe"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/compact"
)

// pool holds what the packed entities of a thread refer to by number: texts (ids of contexts and
// sessions, names of agents and workers) and ended runs.
type pool struct {
	compact.Pool
	runs []packedRun // of executions that have ended
}

func (p *pool) size() int64 {
	if p == nil {
		return 0
	}
	return p.Bytes() + int64(len(p.runs))*int64(unsafe.Sizeof(packedRun{}))
}

// word returns the number of a type, status or side; 0 stands for the empty string. ok is false if
// this version does not know s. The numbers are valid within this process only.
func word[S ~string](s S) (n uint8, ok bool) {
	if s == "" {
		return 0, true
	}
	words := words()
	n = uint8(slices.Index(words[:], string(s)) + 1)
	return n, n > 0
}

// wordOf returns the text with that number.
func wordOf[S ~string](n uint8) S {
	if n == 0 {
		return ""
	}
	return S(words()[n-1])
}

func words() [10]string {
	return [...]string{
		string(events.ItemCompleted), string(events.ItemStored), string(events.ItemPending), string(events.ExecutionFailed),
		string(events.Message), string(events.ActionExecute), string(events.ActionResult), string(events.ItemReference),
		string(events.SideA), string(events.SideB),
	}
}

// packedItem is an itemState without calls of its own.
type packedItem struct {
	index                      int64
	context                    uint32 // a text
	depth                      int32
	kind, status               uint8 // words
	deleted, assistant, silent bool
	failed, partOf, system     bool
}

func (i itemState) Pack(in *pool) (packedItem, bool) {
	kind, known := word(i.Type)
	status, too := word(i.Status)
	if !known || !too || i.Calls != nil {
		return packedItem{}, false
	}
	return packedItem{
		index: i.Index, context: in.Number(i.Context), depth: i.Depth, kind: kind, status: status,
		deleted: i.Deleted, assistant: i.Assistant, silent: i.Silent, failed: i.Failed, partOf: i.PartOf, system: i.System,
	}, true
}

func (p packedItem) Unpack(in *pool) itemState {
	return itemState{
		Index: p.index, Context: in.Text(p.context), Depth: p.depth, Type: wordOf[events.ItemType](p.kind), Status: wordOf[events.ItemStatus](p.status),
		Deleted: p.deleted, Assistant: p.assistant, Silent: p.silent, Failed: p.failed, PartOf: p.partOf, System: p.system,
	}
}

// packedStep is the stepState of a step that has ended, and has parts 0 to n-1.
type packedStep struct {
	execution compact.ID
	parts     int32
	status    uint8 // a word
}

func (t stepState) Pack(*pool) (packedStep, bool) {
	id, fits := compact.IDOf(t.Execution)
	status, known := word(t.Status)
	ended := t.Status == events.StepCompleted || t.Status == events.StepFailed
	return packedStep{execution: id, parts: int32(t.Parts.N), status: status}, fits && known && ended && t.Parts.More == nil && t.Parts.N <= math.MaxInt32
}

func (p packedStep) Unpack(*pool) stepState {
	return stepState{Execution: p.execution.String(), Status: wordOf[events.StepStatus](p.status), Parts: partSet{N: int64(p.parts)}}
}

// packedExecution is the executionState of an execution that has ended.
type packedExecution struct {
	trigger, reaction  compact.ID
	steps              int64
	context, session   uint32 // texts
	run                uint32 // the place in the pool's runs, plus one; 0: it has none
	status             uint8  // a word
	finished, stumbled bool
}

func (x executionState) Pack(in *pool) (packedExecution, bool) {
	trigger, fits := compact.IDOf(x.Trigger)
	reaction, too := compact.IDOf(x.Reaction)
	status, known := word(x.Status)
	ended := x.Status == events.ExecutionCompleted || x.Status == events.ExecutionFailed
	if !fits || !too || !known || !ended {
		return packedExecution{}, false
	}
	p := packedExecution{
		trigger: trigger, reaction: reaction, steps: x.Steps, context: in.Number(x.Context), session: in.Number(x.Session),
		status: status, finished: x.Finished, stumbled: x.Stumbled,
	}
	if x.Run != nil {
		run, ok := x.Run.pack(in)
		if !ok {
			return packedExecution{}, false
		}
		in.runs = append(in.runs, run)
		p.run = uint32(len(in.runs))
	}
	return p, true
}

func (p packedExecution) Unpack(in *pool) executionState {
	x := executionState{
		Trigger: p.trigger.String(), Reaction: p.reaction.String(), Steps: p.steps, Context: in.Text(p.context), Session: in.Text(p.session),
		Status: wordOf[events.ExecutionStatus](p.status), Finished: p.finished, Stumbled: p.stumbled,
	}
	if p.run > 0 {
		x.Run = in.runs[p.run-1].unpack(in)
	}
	return x
}

// packedRun is the runState of a run that has ended. Nothing of it is open or waiting, and it has
// no settings that a retry would need.
type packedRun struct {
	begun                     events.Time
	wanted, token             int64
	sideA, sideB              int64
	place, base               int64
	steered, asked            int64
	agent, worker             uint32 // texts
	reason, asks              uint32 // texts
	by, side, turn            uint8  // words
	parked, free, stop, abort bool
	once, drained, reacted    bool
}

func (r *runState) pack(in *pool) (packedRun, bool) {
	by, known := word(r.By)
	side, too := word(r.Side)
	turn, also := word(r.Turn)
	open := r.Step != "" || r.Calls != nil || r.First != nil || r.Missing != nil || r.Left != nil || r.Item != "" || r.Steers != "" || r.Room|r.From|r.Said != 0 || r.UnavailableSince != 0 || r.ServerMissingSince != 0
	if !known || !too || !also || open || r.Parent != nil || r.Handoff != nil || r.Settings != nil || r.Rights != nil {
		return packedRun{}, false
	}
	return packedRun{
		begun: r.Begun, wanted: r.Wanted, token: r.Token, sideA: r.SideA, sideB: r.SideB,
		place: r.Place, base: r.Base, steered: r.Steered, asked: r.Asked,
		agent: in.Number(r.Agent), worker: in.Number(r.Worker), reason: in.Number(r.Reason), asks: in.Number(r.Asks), by: by, side: side, turn: turn,
		parked: r.Parked, free: r.Free, stop: r.Stop, abort: r.Abort, once: r.Once, drained: r.Drained, reacted: r.Reacted,
	}, true
}

func (p packedRun) unpack(in *pool) *runState {
	return &runState{
		Begun: p.begun, Wanted: p.wanted, Token: p.token, SideA: p.sideA, SideB: p.sideB,
		Place: p.place, Base: p.base, Steered: p.steered, Asked: p.asked,
		Agent: in.Text(p.agent), Worker: in.Text(p.worker), Reason: in.Text(p.reason), Asks: in.Text(p.asks),
		By: wordOf[events.Side](p.by), Side: wordOf[events.Side](p.side), Turn: wordOf[events.Side](p.turn),
		Parked: p.parked, Free: p.free, Stop: p.stop, Abort: p.abort, Once: p.once, Drained: p.drained, Reacted: p.reacted,
	}
}
