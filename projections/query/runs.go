package query

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/projections/directory"
	"github.com/skein-threads/skein/projections/documents"
)

// runsUsual is how many runs or approvals a page has if the query does not say.
const runsUsual = 50

// threadsWalked bounds how many threads one page examines.
const threadsWalked = 200

// runWalk goes through the runs of a tenant, thread by thread, from a cursor on.
type runWalk struct {
	fresh  events.Fresh
	cursor string
	query  uint64 // the mark of the list
	wish   directory.Wish
	agent  string
	most   int
}

func (a *asking) listRuns(d events.ListRuns) (*events.RunList, error) {
	w := runWalk{
		fresh: d.Fresh, cursor: d.Cursor, query: mark("run.list", a.tenant, string(d.Status), d.AgentID),
		wish: directory.Wish{Runs: activeRuns(d.Status == events.Executing, func(*events.ThreadRun) bool { return true })}, agent: d.AgentID, most: limit(d.Limit, runsUsual),
	}
	list, next, err := walkRuns(a, w, func(x *events.Execution) []events.Run {
		if d.Status != "" && x.Status != d.Status {
			return nil
		}
		return []events.Run{runOf(x)}
	})
	return &events.RunList{Runs: list, NextCursor: next}, err
}

func (a *asking) listApprovals(d events.ListApprovals) (*events.ApprovalList, error) {
	status := cmp.Or(d.Status, events.ApprovalWaiting)
	w := runWalk{
		fresh: d.Fresh, cursor: d.Cursor, query: mark("approval.list", a.tenant, string(status), d.AgentID),
		wish: directory.Wish{Runs: activeRuns(status == events.ApprovalWaiting, waitsFor(events.RunWaitsApproval))}, agent: d.AgentID, most: limit(d.Limit, runsUsual),
	}
	list, next, err := walkRuns(a, w, func(x *events.Execution) []events.Approval {
		var of []events.Approval
		for _, one := range slices.Backward(x.Approvals) {
			if one.Status == status {
				of = append(of, events.Approval{ThreadID: x.ThreadID, ExecutionID: x.ID, AgentID: x.AgentID, CallApproval: one})
			}
		}
		return of
	})
	return &events.ApprovalList{Approvals: list, NextCursor: next}, err
}

// activeRuns returns which if only threads with such an active run are wanted, else nil.
func activeRuns(only bool, which func(*events.ThreadRun) bool) func(*events.ThreadRun) bool {
	if only {
		return which
	}
	return nil
}

// runOf returns a run as its document has it.
func runOf(x *events.Execution) events.Run {
	r := events.Run{
		ThreadID: x.ThreadID, ExecutionID: x.ID, ContextID: x.ContextID, SessionID: x.SessionID, AgentID: x.AgentID, Status: x.Status, ErrorText: x.ErrorText,
		Worker: x.Worker, StepCount: x.StepCount, CreatedAt: x.CreatedAt, UpdatedAt: x.UpdatedAt,
	}
	if x.Status != events.Executing {
		return r
	}
	asked := map[string]bool{}
	for _, one := range x.Approvals {
		if one.Status == events.ApprovalWaiting {
			asked[one.CallID] = true
			r.WaitingFor = append(r.WaitingFor, events.RunWait{Kind: events.RunWaitsApproval, Name: one.Name, CallID: one.CallID, Since: one.RequestedAt})
		}
	}
	for _, call := range x.Waiting {
		if !asked[call] {
			r.WaitingFor = append(r.WaitingFor, events.RunWait{Kind: events.RunWaitsThread, CallID: call})
		}
	}
	for _, one := range x.WaitingFor {
		r.WaitingFor = append(r.WaitingFor, events.RunWait{Kind: events.RunWaitsWorker, Worker: one.Kind, Name: one.Name, CallID: one.CallID})
	}
	return r
}

// walkRuns returns a page of what of returns for the runs. A thread that changes while
// a caller pages moves to the front, as in a list of threads: the pages that follow may
// miss it.
func walkRuns[T any](a *asking, w runWalk, of func(*events.Execution) []T) (list []T, next string, err error) {
	list = []T{}
	if w.fresh.MinVersion != nil {
		return list, "", events.Invalid("/minVersion", "a list of the tenant's runs has no version; use minSeq")
	}
	last, skip, err := w.start()
	if err != nil {
		return list, "", err
	}
	if err := a.about("", nil, w.fresh); err != nil {
		return list, "", err
	}
	if err := a.awaitDirectory(w.fresh.MinSeq); err != nil {
		return list, "", err
	}
	if last > 0 {
		w.wish.Before = last + 1
	}
	picked := a.directory.Pick(a.tenant, w.wish, threadsWalked+1)
	room := a.answerBytes()
	for i, p := range picked {
		if i == threadsWalked {
			return list, w.at(p.Seq, 0), nil
		}
		if p.Seq != last {
			skip = 0
		}
		a.thread = p.ID
		which := "*"
		if w.wish.Runs != nil { // no other is active, or waits
			which = p.Run
		}
		got, err := a.source.find(a.ctx, documents.Executions, a.name()+"."+which)
		if err != nil {
			return list, "", err
		}
		slices.SortFunc(got, func(a, b found) int { return newestRun(a.doc.(*events.Execution), b.doc.(*events.Execution)) })
		n := 0 // of this thread
		for _, f := range got {
			x := f.doc.(*events.Execution)
			if x.AgentID == "" || w.agent != "" && x.AgentID != w.agent { // one without an agent is a program's own
				continue
			}
			for _, one := range of(x) {
				if n++; n <= skip {
					continue
				}
				size, err := json.Marshal(one)
				if err != nil {
					return list, "", err
				}
				if room -= len(size) + 1; len(list) == w.most || room < 0 && len(list) > 0 {
					return list, w.at(p.Seq, n-1), nil
				}
				list = append(list, one)
			}
		}
	}
	return list, "", nil
}

func newestRun(a, b *events.Execution) int {
	return cmp.Or(cmp.Compare(b.CreatedAt, a.CreatedAt), cmp.Compare(b.ID, a.ID))
}

// at returns the cursor of a place: a thread, and how many of its own were shown.
func (w *runWalk) at(seq uint64, shown int) string {
	return encodeCursor(w.query, seq) + "." + strconv.Itoa(shown)
}

// start reads the cursor.
func (w *runWalk) start() (seq uint64, shown int, err error) {
	if w.cursor == "" {
		return 0, 0, nil
	}
	thread, count, _ := strings.Cut(w.cursor, ".")
	if seq, err = decodeCursor(thread, w.query); err != nil {
		return 0, 0, err
	}
	n, err := strconv.ParseUint(count, 10, 31)
	if err != nil || seq == 0 {
		return 0, 0, events.Invalid("/cursor", "this is not a cursor; use nextCursor as it came")
	}
	return seq, int(n), nil
}

// listQueue returns what waits for a thread's agent. It reads the log and no read model,
// so that a caller that waits for a queued message sees it leave the queue. A page begins after the
// one that the cursor names, or with the first one if that has left the queue.
func (a *asking) listQueue(d events.ListQueue) (*events.QueueList, error) {
	if err := a.about(d.ThreadID, nil, d.Fresh); err != nil {
		return nil, err
	}
	list, err := a.cfg.Queue(a.ctx, a.tenant, a.thread)
	if err != nil {
		return nil, err
	}
	query := mark("queue.list", a.name())
	if d.Cursor != "" {
		last, err := decodeKeyCursor(d.Cursor, query)
		if err != nil {
			return nil, err
		}
		list.Queued = list.Queued[1+slices.IndexFunc(list.Queued, func(w events.Queued) bool { return w.ID == last }):]
	}
	most, room := limit(d.Limit, len(list.Queued)), a.answerBytes()
	for i, w := range list.Queued {
		room -= len(w.Item) + 1<<10
		if i > 0 && (room < 0 || i == most) {
			list.Queued, list.NextCursor = list.Queued[:i], encodeKeyCursor(query, list.Queued[i-1].ID)
			break
		}
	}
	return list, nil
}

// listExecutions returns a page of a thread's executions: as many as were asked for, and as one
// answer can hold. A cursor is a place among all executions of the thread, so that a page does
// not move when one of them changes its state.
func (a *asking) listExecutions(d events.ListExecutions) (*events.ExecutionList, error) {
	if err := a.about(d.ThreadID, d.At, d.Fresh); err != nil {
		return nil, err
	}
	query := mark("execution.list", a.name(), d.ContextID, string(d.Status), cmp.Or(string(d.Order), "asc"))
	got, err := a.source.find(a.ctx, documents.Executions, a.name()+".*")
	if err != nil {
		return nil, err
	}
	if len(got) == 0 {
		if _, err := a.ofThread(d.ThreadID); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(got, func(a, b found) int {
		x, y := a.doc.(*events.Execution), b.doc.(*events.Execution)
		return cmp.Or(cmp.Compare(x.CreatedAt, y.CreatedAt), cmp.Compare(x.ID, y.ID))
	})
	at, step := 0, 1
	if d.Order == "desc" {
		at, step = len(got)-1, -1
	}
	if d.Cursor != "" {
		begin, err := decodeCursor(d.Cursor, query)
		if err != nil {
			return nil, err
		}
		at = int(begin)
	}
	list := &events.ExecutionList{Executions: []events.Execution{}}
	most, room := limit(d.Limit, len(got)), a.answerBytes()
	for ; at >= 0 && at < len(got); at += step {
		x := got[at].doc.(*events.Execution)
		if d.ContextID != "" && x.ContextID != d.ContextID || d.Status != "" && x.Status != d.Status {
			continue
		}
		room -= got[at].bytes + 1
		if n := len(list.Executions); n > 0 && (room < 0 || n == most) {
			list.NextCursor = encodeCursor(query, uint64(at))
			return list, nil
		}
		list.Executions = append(list.Executions, *x)
	}
	return list, nil
}

// waitsFor reports whether a run waits for something of a kind.
func waitsFor(kind events.RunWaitKind) func(*events.ThreadRun) bool {
	return func(r *events.ThreadRun) bool {
		return slices.ContainsFunc(r.WaitingFor, func(w events.RunWait) bool { return w.Kind == kind })
	}
}
