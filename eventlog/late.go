package eventlog

import "errors"

// settle frees what late writes kept busy, and sets aside what has to wait for one.
func (l *Log) settle(held []*unit) []*unit {
	if len(l.busy) == 0 {
		return held
	}
	for {
		select {
		case u := <-l.late:
			held = l.free(u, held)
			continue
		default:
		}
		break
	}
	ready := held[:0:0]
	for _, u := range held {
		if !l.park(u) {
			ready = append(ready, u)
		}
	}
	return ready
}

// park sets a unit aside if an aggregate of it is busy with a late write.
func (l *Log) park(u *unit) bool {
	if !l.isBusy(u) {
		return false
	}
	if len(l.parked) >= l.cfg.QueueCommits {
		u.answer(&UnavailableError{Cause: errLate})
		return true
	}
	l.parked = append(l.parked, u)
	return true
}

var errLate = errors.New("too many commits wait for writes whose outcome is not known yet")

func (l *Log) isBusy(u *unit) bool {
	for _, m := range u.msgs {
		if l.busy[m.Subject] {
			return true
		}
	}
	return false
}

// free lets the aggregates of a late write go on, and adds to held what waited for
// them.
func (l *Log) free(u *unit, held []*unit) []*unit {
	for _, m := range u.msgs {
		delete(l.busy, m.Subject)
	}
	waiting := l.parked[:0:0]
	for _, p := range l.parked {
		if l.isBusy(p) {
			waiting = append(waiting, p)
		} else {
			held = append(held, p)
		}
	}
	l.parked = waiting
	return held
}

// leave goes on without the answer of a unit, if it has none yet.
func (l *Log) leave(u *unit) {
	select {
	case <-u.over:
		return
	default:
	}
	for _, m := range u.msgs {
		l.busy[m.Subject] = true
	}
	go func() {
		<-u.over
		l.late <- u
	}()
}
