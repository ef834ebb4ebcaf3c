package store

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// RepairConfig says what a repair may use and do.
type RepairConfig struct {
	Config
	From       []string  // backups, or stores of other servers or of earlier times
	AcceptLoss bool      // go on without what cannot be found anywhere
	Now        time.Time // names the folder of what is moved aside
}

// Repaired says what a repair has done.
type Repaired struct {
	Dir     string           `json:"dir"`
	Aside   string           `json:"aside,omitzero"` // where what was replaced is kept
	Streams []RepairedStream `json:"streams"`
	Rebuild []string         `json:"rebuild,omitempty"` // derived streams that were moved aside: the next start makes them again
}

// RepairedStream says what a repair has done with a stream.
type RepairedStream struct {
	Name     string `json:"name"`
	Messages int    `json:"messages"` // what it has now, of the blocks that were written again
	Found    int    `json:"found"`    // of those, from backups and other stores
	Lost     []Span `json:"lost,omitempty"`
	Last     uint64 `json:"last"` // sequence
}

// Span is a range of sequences; messages that had been deleted may be among them.
type Span struct {
	From uint64 `json:"from"`
	To   uint64 `json:"to"`
}

func (s Span) String() string {
	if s.From == s.To {
		return fmt.Sprint(s.From)
	}
	return fmt.Sprintf("%d to %d", s.From, s.To)
}

// LossError says that a repair would leave something out. Nothing was changed.
type LossError struct {
	Dir     string
	Streams []RepairedStream
}

func (e *LossError) Error() string {
	var list []string
	for _, s := range e.Streams {
		for _, span := range s.Lost {
			list = append(list, fmt.Sprintf("%s, sequences %s", s.Name, span))
		}
	}
	const most = 5
	if more := len(list) - most; more > 0 {
		list = append(list[:most], fmt.Sprintf("and %d more", more))
	}
	return fmt.Sprintf("of the store %s these are nowhere to be found: %s; nothing was changed: give a newer backup or a copy of the store with --from, "+
		"or go on without them with --accept-loss, which also has everything derived made again", e.Dir, strings.Join(list, "; "))
}

// Repair mends a store: it keeps every record that can be read, at its sequence,
// looks for the others in the guard and in what it is given, and replaces the
// streams that were damaged. What is replaced is moved aside, and nothing is thrown
// away. If something stays lost, that must be accepted: then the sequences are not
// used again, and what is derived is moved aside too, to be made again. No server
// may use the store meanwhile. The error is a *LossError if something is lost.
func Repair(ctx context.Context, cfg RepairConfig) (*Repaired, error) {
	if err := cfg.usable(); err != nil {
		return nil, err
	}
	m, err := readMark(cfg.Dir)
	if err != nil {
		return nil, err
	}
	cfg.all = true
	report, err := cfg.check(ctx, m, false)
	if err != nil {
		return nil, err
	}
	p := &repair{RepairConfig: cfg, mark: m, out: &Repaired{Dir: cfg.Dir}, aside: filepath.Join(cfg.Dir, asideDir, cfg.Now.UTC().Format("20060102T150405.000"))}
	if len(report.Damages) == 0 && !cfg.AcceptLoss {
		return p.out, nil
	}
	if err := p.openSources(); err != nil {
		return nil, err
	}
	defer os.RemoveAll(p.work())
	damaged := map[string][]Damage{}
	for _, d := range report.Damages {
		id := d.Account + "/" + d.Stream
		damaged[id] = append(damaged[id], d)
	}
	for _, id := range slices.Sorted(maps.Keys(damaged)) {
		if cfg.Derived(placeOf(cfg.Dir, id).stream) {
			p.rebuild = append(p.rebuild, placeOf(cfg.Dir, id))
			continue
		}
		if err := context.Cause(ctx); err != nil {
			return nil, err
		}
		if err := p.plan(placeOf(cfg.Dir, id), damaged[id]); err != nil {
			return nil, err
		}
	}
	lost := slices.DeleteFunc(slices.Clone(p.out.Streams), func(s RepairedStream) bool { return len(s.Lost) == 0 })
	if len(lost) > 0 && !cfg.AcceptLoss {
		return nil, &LossError{Dir: cfg.Dir, Streams: lost}
	}
	if cfg.AcceptLoss {
		if err := p.allDerived(); err != nil {
			return nil, err
		}
	}
	return p.out, p.apply()
}

// repair is the state of one Repair.
type repair struct {
	RepairConfig
	mark    mark
	sources []source
	guard   source // one of them
	out     *Repaired
	aside   string
	ready   []place // streams that were built, and replace those of the store
	rebuild []place // derived streams that are moved aside
}

// work is where streams are built.
func (p *repair) work() string { return filepath.Join(p.Dir, "skein-repair") }

func (p *repair) openSources() error {
	guard, err := guardSource(p.Dir)
	if err != nil {
		return err
	}
	if guard != nil {
		p.guard, p.sources = guard, append(p.sources, guard)
	}
	for _, dir := range p.From {
		s, err := openSource(dir)
		if err != nil {
			return err
		}
		p.sources = append(p.sources, s)
	}
	return os.RemoveAll(p.work()) // of a repair that was broken off
}

// plan builds a stream again, next to the store.
func (p *repair) plan(at place, damages []Damage) error {
	b := &builder{repair: p, at: at, to: place{at.account, at.stream, filepath.Join(p.work(), at.account, at.stream)}}
	b.known = p.mark.Streams[at.id()]
	done, empty, err := b.build(damages)
	if err != nil {
		return fmt.Errorf("repairing stream %s: %w", at.stream, err)
	}
	if last, known := p.mark.Empty[at.id()]; known && last >= b.known {
		done.Lost = nil // it held nothing
	}
	p.out.Streams = append(p.out.Streams, done)
	if empty {
		b.to.dir = ""
	}
	p.ready = append(p.ready, b.to)
	return nil
}

// allDerived has everything derived made again: it may show what is lost.
func (p *repair) allDerived() error {
	list, err := places(p.Dir)
	if err != nil {
		return err
	}
	p.rebuild = nil
	for _, at := range list {
		if p.Derived(at.stream) {
			p.rebuild = append(p.rebuild, at)
		}
	}
	return nil
}

// apply moves what is replaced aside, and what was built into its place.
func (p *repair) apply() error {
	p.out.Aside = p.aside
	for _, at := range p.rebuild {
		if err := p.moveAside(at); err != nil {
			return err
		}
		p.out.Rebuild = append(p.out.Rebuild, at.stream)
	}
	for i, to := range p.ready {
		at := placeOf(p.Dir, to.id())
		if err := p.moveAside(at); err != nil {
			return err
		}
		delete(p.mark.Streams, at.id())
		if to.dir == "" {
			continue
		}
		if err := os.MkdirAll(filepath.Dir(at.dir), 0o750); err != nil {
			return err
		}
		if err := os.Rename(to.dir, at.dir); err != nil {
			return err
		}
		p.mark.Streams[at.id()] = p.out.Streams[i].Last
		p.mark.Repaired = p.mark.Repaired || len(p.out.Streams[i].Lost) > 0
	}
	list, err := readSealed(p.Dir)
	if err != nil {
		return err
	}
	for _, to := range p.ready {
		delete(list, to.id())
	}
	if err := list.write(p.Dir, true); err != nil {
		return err
	}
	p.mark.Files, p.mark.Derived = nil, nil
	if err := p.mark.write(p.Dir, true); err != nil {
		return err
	}
	guard := filepath.Join(p.Dir, guardDir)
	if _, err := os.Stat(guard); err == nil {
		return os.Rename(guard, filepath.Join(p.aside, guardDir))
	}
	return nil
}

// moveAside moves a stream where no server looks.
func (p *repair) moveAside(at place) error {
	to := filepath.Join(p.aside, at.account, at.stream)
	if err := os.MkdirAll(filepath.Dir(to), 0o750); err != nil {
		return err
	}
	if _, err := os.Lstat(at.dir); err != nil {
		return nil // it is not there
	}
	return os.Rename(at.dir, to)
}
