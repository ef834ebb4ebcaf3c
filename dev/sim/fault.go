package sim

import (
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// strike lets a fault happen to a process or the server. False: it is one of
// those that happen to the next frame.
func (r *Run) strike(kind string) bool {
	p := pick(r.rng, r.procs)
	switch kind {
	case "Crash":
		r.crash(p)
	case "Cut":
		r.cut(p)
	case "Takeover":
		r.takeover()
	case "Power":
		r.powerFails()
	case "Trouble":
		for _, rd := range r.server.readers {
			rd.tell(func() { rd.trouble = jetstream.ErrNoHeartbeat })
		}
	case "Sleep":
		time.Sleep(r.lateness())
	default:
		return false
	}
	r.trace.note(kind, p.name)
	return true
}

// crash kills a process: what it had sent may still arrive, nothing that is
// answered does, and it is started again later.
func (r *Run) crash(p *process) {
	if p.dead() {
		return
	}
	r.loseSent(p.conn)
	p.die()
	p.upAt = time.Now().Add(time.Duration(r.rng.Int64N(int64(2 * time.Second))))
	if r.lead == p {
		r.lead, r.leadAt = nil, time.Now().Add(time.Duration(r.rng.Int64N(int64(2*time.Second))))
	}
}

// cut loses a connection, which is re-established later.
func (r *Run) cut(p *process) {
	if p.dead() || !p.conn.IsConnected() {
		return
	}
	r.loseSent(p.conn)
	p.conn.cut()
	p.mendAt = time.Now().Add(time.Duration(r.rng.Int64N(int64(pick(r.rng, []time.Duration{10 * time.Millisecond, 3 * ackTimeout})))))
}

// loseSent loses the rest of each flow of a connection, from anywhere on, and
// every answer to it.
func (r *Run) loseSent(c *Conn) {
	for _, fl := range r.flows {
		if fl.conn == c && fl.life == c.life {
			fl.frames = fl.frames[:r.rng.IntN(len(fl.frames)+1)]
		}
	}
	r.flows = slices.DeleteFunc(r.flows, func(fl *flow) bool { return len(fl.frames) == 0 })
	r.answers = slices.DeleteFunc(r.answers, func(f *frame) bool { return f.conn == c })
}

// takeover lets another process run the relay and the runner, while the one
// that did does not know it for a while.
func (r *Run) takeover() {
	old := r.lead
	for _, p := range r.procs {
		if p != old && !p.dead() {
			p.takeLead()
			if old != nil {
				old.restAt = time.Now().Add(time.Duration(r.rng.Int64N(int64(2 * time.Second))))
			}
			return
		}
	}
}

// powerFails takes away the newest of what is derived, which is stored without
// waiting for the disk, and every connection.
func (r *Run) powerFails() {
	for _, p := range r.procs {
		r.cut(p)
	}
	for _, name := range r.server.names() {
		s := r.server.streams[name]
		if name == "SKEIN_LOG" || r.rng.IntN(2) == 0 {
			continue
		}
		s.lose(s.last() - r.rng.Uint64N(min(s.last(), pick(r.rng, []uint64{3, 12, 1000}))+1))
	}
}

// recover lets what was lost come back when its time has come.
func (r *Run) recover() {
	if r.ending {
		return
	}
	now := time.Now()
	for _, p := range r.procs {
		switch {
		case p.dead() && !p.upAt.After(now):
			r.trace.note("start", p.name)
			p.start()
		case !p.dead() && !p.conn.IsConnected() && !p.mendAt.After(now):
			r.trace.note("mend", p.name)
			r.mend(p)
		}
		if !p.restAt.IsZero() && !p.restAt.After(now) {
			r.trace.note("rest", p.name)
			p.rest()
		}
	}
	if r.shape.readSide && r.lead == nil && !r.leadAt.After(now) {
		for _, p := range r.procs {
			if !p.dead() {
				r.trace.note("lead", p.name)
				p.takeLead()
				break
			}
		}
	}
}

func (r *Run) mend(p *process) {
	p.conn.mend()
	for _, rd := range r.server.readers {
		if rd.conn == p.conn {
			rd.tell(func() { rd.trouble = jetstream.ErrNoHeartbeat })
		}
	}
}

// heal ends all faults, so that whatever works can finish.
func (r *Run) heal() {
	r.calm, r.planned, r.next = true, nil, ""
	for _, fl := range r.flows {
		for _, f := range fl.frames {
			f.after = time.Time{}
		}
	}
	for _, f := range r.answers {
		f.after = time.Time{}
	}
	r.leadAt = time.Time{}
	for _, p := range r.procs {
		p.upAt, p.mendAt = time.Time{}, time.Time{}
		if p.leading != nil && p != r.lead {
			p.rest()
		}
		p.restAt = time.Time{}
	}
}
