package capacity

import "math"

// Costs are of one commit of twelve events, in microseconds of a processor.
type Costs struct {
	Server float64 // nats-server: log, timeline, documents, connections
	Skein  float64 // deciding, and folding what is derived
	Log    float64 // of Server: what one stream does after another, so that more processors do not help
	Runner float64 // of Skein: the same, of the one runner of a log
}

// Machine is a server, or several.
type Machine struct {
	Cores  float64
	Nodes  float64
	Copies float64 // of each stream
	Share  float64 // of the processors that is used; the rest is headroom
}

// Limit is what bounds a cell, in commits a second.
type Limit struct {
	Processor float64 // all nodes together
	Log       float64 // one log has one leader
	Runner    float64 // one log has one runner
}

// Of returns the limits of one log on machines.
func (c Costs) Of(m Machine) Limit {
	const second = 1e6 // microseconds
	return Limit{
		Processor: m.Nodes * m.Cores * m.Share * second / (c.Server*m.Copies + c.Skein),
		Log:       second / c.Log,
		Runner:    second / c.Runner,
	}
}

// Commits returns what one log does.
func (l Limit) Commits() float64 { return math.Min(l.Processor, math.Min(l.Log, l.Runner)) }

// Cells returns how many logs it takes to use all processors.
func (l Limit) Cells() int { return int(math.Ceil(l.Processor / math.Min(l.Log, l.Runner))) }
