package query

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/projections/documents"
)

// runsUsual is the default number of runs or approvals on a page.
const runsUsual = 50

// threadsWalked bounds how many threads one page examines.
const threadsWalked = 200

// runWalk iterates over the runs of a tenant, thread by thread, from a cursor on.
type runWalk struct {
	fresh  events.Fresh
	cursor string
	query  uint64 // the mark of the list
	wish   directoryWish
	agent  string
	most   int
}

func listRuns(a *asking, d events.ListRuns) (*events.RunList, error) {
	w := runWalk{
		fresh: d.Fresh, cursor: d.Cursor, query: mark("run.list", a.tenant, string(d.Status), d.AgentID),
		wish: directoryWish{Runs: activeRuns(d.Status == events.Executing, func(*events.ThreadRun) bool { return true })}, agent: d.AgentID, most: limit(d.Limit, runsUsual),
	}
	list, next, err := walkRuns(a, w, func(x *events.Execution) []events.Run {
		if d.Status != "" && x.Status != d.Status {
			return nil
		}
		return []events.Run{runOf(x)}
	})
	return &events.RunList{Runs: list, NextCursor: next}, err
}

func listApprovals(a *asking, d events.ListApprovals) (*events.ApprovalList, error) {
	status := cmp.Or(d.Status, events.ApprovalWaiting)
	w := runWalk{
		fresh: d.Fresh, cursor: d.Cursor, query: mark("approval.list", a.tenant, string(status), d.AgentID),
		wish: directoryWish{Runs: activeRuns(status == events.ApprovalWaiting, waitsFor(events.RunWaitsApproval))}, agent: d.AgentID, most: limit(d.Limit, runsUsual),
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

// activeRuns returns the filter for active runs if only threads with such a run are wanted, else
// nil.
func activeRuns(only bool, which func(*events.ThreadRun) bool) func(*events.ThreadRun) bool {
	if only {
		return which
	}
	return nil
}

// runOf returns a run from its document.
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

// walkRuns returns a page of the elements that of returns for the runs. As in a list of threads, a
// thread that changes between pages moves to the front, and the following pages may miss it.
func walkRuns[T any](a *asking, w runWalk, of func(*events.Execution) []T) (list []T, next string, err error) {
	list = []T{}
	if w.fresh.MinVersion != nil {
		return list, "", events.Invalid("/minVersion", "a list of the tenant's runs has no version; use minSeq")
	}
	last, from, skip, err := w.start()
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
			return list, w.at(p.Seq, 0, 0), nil
		}
		if p.Seq != last {
			from, skip = 0, 0
		}
		a.thread = p.ID
		see := func(x *events.Execution, version int64) (more bool, err error) {
			if x.AgentID == "" || w.agent != "" && x.AgentID != w.agent { // an execution without an agent is run by a client
				return true, nil
			}
			for n, one := range of(x) {
				if version == from && n < skip {
					continue
				}
				size, err := json.Marshal(one)
				if err != nil {
					return false, err
				}
				if room -= len(size) + 1; len(list) == w.most || room < 0 && len(list) > 0 {
					next = w.at(p.Seq, version, n)
					return false, nil
				}
				list = append(list, one)
			}
			return true, nil
		}
		if err := a.eachRunOf(p, w.wish.Runs != nil, from, w.most+1-len(list), see); err != nil || next != "" {
			return list, next, err
		}
	}
	return list, "", nil
}

// eachRunOf calls see with the runs of a thread, the newest first, from a version on (0: all), each
// with its own version. active says that only the active one is wanted.
func (a *asking) eachRunOf(p pickedThread, active bool, from int64, usual int, see func(x *events.Execution, version int64) (bool, error)) error {
	if active {
		got, err := a.source.get(a.ctx, a.place(documents.Executions, p.Run))
		if err == nil && got[0].doc != nil {
			_, err = see(got[0].doc.(*events.Execution), 0)
		}
		return err
	}
	thread, err := a.threadOfIndex(p.ID)
	if events.IsNotFound(err) { // deleted since
		return nil
	}
	if err != nil {
		return err
	}
	w := listWalk{
		asking: a, list: documents.ExecutionList, kind: documents.Executions, end: thread.Version, desc: true,
		next: cmp.Or(from, thread.Version), usual: usual,
	}
	return w.each(func(f found, e *documents.ListEntry) (bool, error) { return see(f.doc.(*events.Execution), e.Version) })
}

// at returns the cursor of a place: a thread, the version of a run, and how many of its elements
// were shown.
func (w *runWalk) at(seq uint64, version int64, shown int) string {
	return encodeCursor(w.query, seq) + "." + strconv.FormatInt(version, 10) + "." + strconv.Itoa(shown)
}

// start reads the cursor.
func (w *runWalk) start() (seq uint64, version int64, shown int, err error) {
	if w.cursor == "" {
		return 0, 0, 0, nil
	}
	parts := strings.Split(w.cursor, ".")
	if seq, err = decodeCursor(parts[0], w.query); err != nil {
		return 0, 0, 0, err
	}
	wrong := events.Invalid("/cursor", "this is not a cursor; use nextCursor as it came")
	if len(parts) != 3 || seq == 0 {
		return 0, 0, 0, wrong
	}
	of, err := strconv.ParseInt(parts[1], 10, 64)
	n, bad := strconv.ParseUint(parts[2], 10, 31)
	if err != nil || bad != nil || of < 0 {
		return 0, 0, 0, wrong
	}
	return seq, of, int(n), nil
}

// listQueue returns the queue of a thread's agent. It reads the log and no read model, so that a
// caller that waits for a queued message sees it leave the queue. A page begins after the entry
// that the cursor names, or with the first entry if that one has left the queue.
func listQueue(a *asking, d events.ListQueue) (*events.QueueList, error) {
	if err := a.about(d.ThreadID, nil, d.Fresh); err != nil {
		return nil, err
	}
	list, err := a.cfg.States.Queued(a.ctx, a.tenant, a.thread)
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

// waitsFor reports whether a run waits for something of a kind.
func waitsFor(kind events.RunWaitKind) func(*events.ThreadRun) bool {
	return func(r *events.ThreadRun) bool {
		return slices.ContainsFunc(r.WaitingFor, func(w events.RunWait) bool { return w.Kind == kind })
	}
}
