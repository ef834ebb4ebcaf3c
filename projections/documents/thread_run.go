package documents

import (
	"slices"

	"github.com/skein-threads/skein/events"
)

// ofThreadRun shows the current run, and what it waits for, in the thread's document.
func ofThreadRun() []reaction {
	type T = events.Thread
	return []reaction{
		on(events.RunRequestedType, own, func(c *change, doc *T, _ events.RunRequested) {
			r := events.ThreadRun{ExecutionID: c.event.Subject}
			if doc.Run != nil && doc.Run.ExecutionID == c.event.Subject {
				r = *doc.Run
			}
			r.Parked = false
			doc.Run = &r
		}),
		onRun(events.RunClaimedType, func(_ *change, r *events.ThreadRun, _ events.RunClaimed) {
			r.Parked, r.Until = false, ""
			drop(r, func(w events.RunWait) bool { return w.Kind == events.RunWaitsWorker })
		}),
		onRun(events.RunAwaitedType, func(_ *change, r *events.ThreadRun, d events.RunAwaited) {
			drop(r, func(w events.RunWait) bool { return w.Kind == events.RunWaitsWorker })
			for _, w := range d.For {
				add(r, events.RunWait{Kind: events.RunWaitsWorker, Worker: w.Kind, Name: w.Name, CallID: w.CallID})
			}
			r.Until = d.Until
		}),
		onRun(events.RunParkedType, func(_ *change, r *events.ThreadRun, _ events.RunParked) { r.Parked = true }),
		onRun(events.RunSuspendedType, func(_ *change, r *events.ThreadRun, d events.RunSuspended) {
			for _, call := range d.Calls {
				add(r, events.RunWait{Kind: events.RunWaitsThread, CallID: call})
			}
		}),
		onRun(events.RunResumedType, func(_ *change, r *events.ThreadRun, d events.RunResumed) {
			drop(r, func(w events.RunWait) bool {
				return w.Kind == events.RunWaitsThread && slices.Contains(d.Calls, w.CallID)
			})
		}),
		onRun(events.ApprovalRequestedType, func(c *change, r *events.ThreadRun, d events.ApprovalRequested) {
			add(r, events.RunWait{Kind: events.RunWaitsApproval, Name: d.Name, CallID: d.CallID, Since: c.time()})
		}),
		onRun(events.ApprovalGrantedType, func(_ *change, r *events.ThreadRun, d events.ApprovalGranted) { decided(r, d.CallID) }),
		onRun(events.ApprovalDeniedType, func(_ *change, r *events.ThreadRun, d events.ApprovalDenied) { decided(r, d.CallID) }),
		onRun(events.ApprovalResolvedType, func(_ *change, r *events.ThreadRun, d events.ApprovalResolved) { decided(r, d.CallID) }),
		on(events.ExecutionStatusChangedType, own, func(c *change, doc *T, d events.ExecutionStatusChanged) {
			if doc.Run != nil && doc.Run.ExecutionID == c.event.Subject && d.To != events.Executing {
				doc.Run = nil
			}
		}),
	}
}

// onRun reacts to an event of the current run. Readers share what a document refers to, so it
// is changed in a copy.
func onRun[E any](of events.Type, how func(*change, *events.ThreadRun, E)) reaction {
	return on(of, own, func(c *change, doc *events.Thread, d E) {
		execution := c.event.Correlation
		if execution == "" {
			execution = c.event.Subject
		}
		if doc.Run == nil || doc.Run.ExecutionID != execution {
			return
		}
		r := *doc.Run
		r.WaitingFor = slices.Clone(r.WaitingFor)
		how(c, &r, d)
		if len(r.WaitingFor) == 0 {
			r.WaitingFor = nil
		}
		doc.Run = &r
	})
}

func decided(r *events.ThreadRun, call string) {
	drop(r, func(w events.RunWait) bool { return w.Kind == events.RunWaitsApproval && w.CallID == call })
}

func add(r *events.ThreadRun, w events.RunWait) {
	drop(r, func(old events.RunWait) bool {
		return old.Kind == w.Kind && old.CallID == w.CallID && old.Name == w.Name
	})
	r.WaitingFor = append(r.WaitingFor, w)
}

func drop(r *events.ThreadRun, which func(events.RunWait) bool) {
	r.WaitingFor = slices.DeleteFunc(r.WaitingFor, which)
}
