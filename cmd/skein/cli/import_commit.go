package cli

import (
	"fmt"
	"strconv"

	"github.com/go-json-experiment/json"

	"github.com/skein-threads/skein/events"
)

// commit is one thread.commit of an import. Its id is the same at every import.
type commit struct {
	id      string
	planned []planned
	bytes   int
	counts  counts
}

// commands returns the commands of the commit.
func (c *commit) commands() []events.SubCommand {
	var out []events.SubCommand
	for _, p := range c.planned {
		if !p.done {
			out = append(out, p.command)
		}
	}
	return out
}

// counts are what a commit adds.
type counts struct{ turns, items, calls int }

// Bounds of one commit.
const (
	commitCommands = events.MaxCommands
	commitBytes    = 1 << 20
)

// planned is a command of a commit. One that was done by another import keeps its
// place, so that commits end where they ended then.
type planned struct {
	command events.SubCommand
	done    bool
}

// begin begins a run of commits whose ids have a name of their own.
func (p *planner) begin(what string, message, from int) {
	p.flush()
	p.prefix, p.place = fmt.Sprintf("import:%s:%d:%d:", what, message, from), 0
}

// add adds a command to the current group.
func (p *planner) add(name string, data any) {
	raw, err := json.Marshal(data, json.Deterministic(true))
	switch {
	case p.err != nil:
	case err != nil:
		p.err = fmt.Errorf("message %d: %s cannot be written: %w", p.at+1, name, err)
	case len(raw) > events.MaxEventBytes:
		p.err = fmt.Errorf("message %d: %s needs %d bytes; at most %d are allowed", p.at+1, name, len(raw), events.MaxEventBytes)
	case p.check != nil:
		if _, err := p.check.DecodeCommand(name, raw); err != nil {
			p.err = fmt.Errorf("message %d: %s: %s", p.at+1, name, events.AsError(err).Message)
		}
	}
	p.group = append(p.group, planned{command: events.SubCommand{Command: name, Data: raw}})
}

// end ends a group: it goes into the current commit if it fits, otherwise into a new one, and
// into several only if it is too large for one.
func (p *planner) end() {
	size := 0
	for _, c := range p.group {
		size += c.cost()
	}
	if !p.now.fits(len(p.group), size) {
		p.flush()
	}
	for _, c := range p.group {
		if !p.now.fits(1, c.cost()) {
			p.flush()
		}
		p.now.planned = append(p.now.planned, c)
		p.now.bytes += c.cost()
	}
	p.now.counts.add(p.counted)
	p.group, p.counted = nil, counts{}
}

// cost is the size of a command in a request.
func (p planned) cost() int { return len(p.command.Data) + len(p.command.Command) + 32 }

func (c *commit) fits(commands, bytes int) bool {
	return len(c.planned)+commands <= commitCommands && c.bytes+bytes <= commitBytes
}

// flush ends the current commit.
func (p *planner) flush() {
	if len(p.now.planned) == 0 {
		return
	}
	p.now.id = p.prefix + strconv.Itoa(p.place)
	p.place++
	p.commits = append(p.commits, p.now)
	p.now = commit{}
}

func (c *counts) add(d counts) {
	c.turns += d.turns
	c.items += d.items
	c.calls += d.calls
}
