package store

import (
	"fmt"
	"strings"
)

// Report is the result of a check.
type Report struct {
	Dir     string   `json:"dir"`
	Streams []Stream `json:"streams"`
	Damages []Damage `json:"damages"`
	Clean   bool     `json:"clean"` // the store was closed cleanly, and no file has changed since
	Quick   bool     `json:"-"`     // so that only the last blocks were read

	DerivedGone []Damage `json:"-"` // unless derived streams were looked at: what is gone of them
}

// count adds damages to the numbers of their streams.
func (r *Report) count(damages []Damage) {
	for _, d := range damages {
		for i := range r.Streams {
			if s := &r.Streams[i]; s.Account == d.Account && s.Name == d.Stream {
				s.Lost++
			}
		}
	}
}

// Stream is the result of a check for one stream.
type Stream struct {
	Account  string `json:"account"`
	Name     string `json:"name"`
	Derived  bool   `json:"derived,omitzero"`
	Skipped  string `json:"skipped,omitzero"` // why its blocks were not read
	Blocks   int    `json:"blocks"`
	Bytes    int64  `json:"bytes"` // on the disk
	Messages int    `json:"messages"`
	First    uint64 `json:"first"`
	Last     uint64 `json:"last"`             // the last sequence that its blocks show
	Known    uint64 `json:"known,omitzero"`   // the last sequence that the mark or the index knows
	Lost     int    `json:"damages,omitzero"` // how many damages it has
}

// Damage is a place of a stream that cannot be read, or a part that is missing.
type Damage struct {
	Account string `json:"account"`
	Stream  string `json:"stream"`
	File    string `json:"file"`            // relative to the store
	Offset  int64  `json:"offset,omitzero"` // in it; of a compressed block, in what it holds
	From    uint64 `json:"from,omitzero"`   // the first sequence that may be lost
	To      uint64 `json:"to,omitzero"`     // the last one; 0: it is not known
	Cause   string `json:"cause"`
	Derived bool   `json:"derived,omitzero"` // it can be made again from the log

	tail  bool // To is what is known; there may have been more
	stray bool // bytes behind the end, which are no record
}

// Range names the sequences that may be lost.
func (d Damage) Range() string {
	switch {
	case d.From == 0 && d.To == 0 && d.Derived:
		return "derived: the log has it"
	case d.From == 0 && d.To == 0:
		return "the whole stream"
	case d.To == 0:
		return fmt.Sprintf("sequences from %d on", d.From)
	case d.To < d.From:
		return "no sequence for certain"
	case d.From == d.To:
		return fmt.Sprintf("sequence %d", d.From)
	}
	return fmt.Sprintf("sequences %d to %d", d.From, d.To)
}

func (d Damage) String() string {
	at := ""
	if d.Offset > 0 {
		at = fmt.Sprintf(" at offset %d", d.Offset)
	}
	return fmt.Sprintf("stream %s, %s%s: %s (%s)", d.Stream, d.File, at, d.Cause, d.Range())
}

// DeniedError says that files of a store may not be read. Nothing was changed, and no server was
// started.
type DeniedError struct {
	Dir   string
	Cause error // of the first one
}

func (e *DeniedError) Error() string {
	return fmt.Sprintf("the store %s cannot be read: %v; nothing is known to be damaged, and nothing was started or changed: run Skein as the user who owns the files, "+
		"or give them to this one (chown -R), and start it again", e.Dir, e.Cause)
}

func (e *DeniedError) Unwrap() error { return e.Cause }

// DamagedError says that something of a store that has no other source cannot be
// read, or is missing. Nothing was changed, and no server was started.
type DamagedError struct {
	Dir     string
	Damages []Damage
}

func (e *DamagedError) Error() string {
	const most = 3
	var list []string
	for _, d := range e.Damages[:min(len(e.Damages), most)] {
		list = append(list, d.String())
	}
	if more := len(e.Damages) - most; more > 0 {
		list = append(list, fmt.Sprintf("and %d more", more))
	}
	return fmt.Sprintf("the store %s is damaged: %s; nothing was started or changed: see all of it with skein store check --store %s, "+
		"then mend it with skein store repair --store %s, which takes --from a backup, or restore a backup into an empty store",
		e.Dir, strings.Join(list, "; "), e.Dir, e.Dir)
}

// Truth lists the damages of what is not derived.
func (r *Report) truth() []Damage {
	var out []Damage
	for _, d := range r.Damages {
		if !d.Derived {
			out = append(out, d)
		}
	}
	return out
}

// Err returns a *DamagedError if something of what is not derived is damaged.
func (r *Report) Err() error {
	if damages := r.truth(); len(damages) > 0 {
		return &DamagedError{Dir: r.Dir, Damages: damages}
	}
	return nil
}
