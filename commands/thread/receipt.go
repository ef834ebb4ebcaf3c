package thread

import "github.com/skein-threads/skein/events"

// window is how long a repeated command returns its first reply.
const window = 24 * 3600 * 1e6 // microseconds

// receipts records which commit executed which command, oldest first, for 24 hours of the
// thread's own time.
type receipts struct {
	List []receipt `json:"list,omitempty"`
	byID map[string]uint64
	text int64
}

type receipt struct {
	ID   string      `json:"id"`
	Seq  uint64      `json:"seq"`
	Time events.Time `json:"time"`
}

func (r *receipts) find(id string) (uint64, bool) {
	seq, ok := r.byID[id]
	return seq, ok
}

func (r *receipts) add(id string, seq uint64, at events.Time) {
	if r.byID == nil {
		r.byID = map[string]uint64{}
	}
	old := 0
	for old < len(r.List) && r.List[old].Time < at-window {
		r.forget(r.List[old])
		old++
	}
	r.List = append(r.List[old:], receipt{id, seq, at})
	r.byID[id] = seq
	r.text += int64(len(id))
}

// forget removes a receipt, unless the same id was used again after the 24 hours.
func (r *receipts) forget(old receipt) {
	if r.byID[old.ID] == old.Seq {
		delete(r.byID, old.ID)
	}
	r.text -= int64(len(old.ID))
}

// index builds the map of a decoded list.
func (r *receipts) index() {
	list := r.List
	r.List = nil
	for _, one := range list {
		r.add(one.ID, one.Seq, one.Time)
	}
}

func (r *receipts) bytes() int64 { return r.text + int64(len(r.List))*104 }
