package query

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/projections/buckets"
)

// directoryUpdate is a change of the bucket of threads: a document, the removal of a thread if doc is nil,
// or, if seq is not 0, the progress of the bucket.
type directoryUpdate struct {
	tenant, id string
	doc        *brief
	seq        uint64
	at         time.Time // when the bucket stored it
}

// brief holds the fields of a thread's document that a directory uses.
type brief struct {
	ID        string              `json:"id"`
	Key       *string             `json:"key"`
	Status    events.ThreadStatus `json:"status"`
	CreatedAt string              `json:"createdAt"`
	UpdatedAt string              `json:"updatedAt"`
	AgentID   string              `json:"agentId"`
	UserID    string              `json:"userId"`
	Archived  bool                `json:"archived"`
	Seq       uint64              `json:"seq"`
	ListedSeq uint64              `json:"listedSeq"`
	Run       *events.ThreadRun   `json:"run"`

	mark buckets.Mark // of the message
}

func (b *brief) key() string {
	if b.Key == nil {
		return ""
	}
	return *b.Key
}

// changed returns when the thread last changed, or was created.
func (b *brief) changed() events.Time {
	at := b.UpdatedAt
	if at == "" {
		at = b.CreatedAt
	}
	t, _ := events.ParseTime(at) // an invalid time sorts first
	return t
}

// directoryUpdateOf decodes a message of the bucket of threads. ok is false if the message is no change of
// a thread. The error says that a document cannot be read.
func directoryUpdateOf(key string, m jetstream.Msg) (u directoryUpdate, ok bool, err error) {
	if key == buckets.CheckpointKey {
		var c buckets.Checkpoint
		err := json.Unmarshal(m.Data(), &c)
		return directoryUpdate{seq: c.Seq}, err == nil, nil
	}
	tenant, id, ok := strings.Cut(key, ".")
	if !ok || tenant == "_" {
		return directoryUpdate{}, false, nil
	}
	u = directoryUpdate{tenant: tenant, id: id}
	if m.Headers().Get(buckets.HeaderOperation) != "" {
		return u, true, nil
	}
	u.doc = &brief{mark: buckets.MarkOf(m.Headers())}
	if meta, err := m.Metadata(); err == nil {
		u.at = meta.Timestamp
	}
	if err := json.Unmarshal(m.Data(), u.doc); err != nil {
		return directoryUpdate{}, false, err
	}
	if u.doc.ID != id {
		return directoryUpdate{}, false, fmt.Errorf("it is that of thread %.80q", u.doc.ID)
	}
	return u, true, nil
}

// Apply applies changes in their order.
func (d *directory) Apply(list []directoryUpdate) {
	seq := uint64(0)
	d.mu.Lock()
	for _, u := range list {
		switch {
		case u.seq != 0:
			seq = u.seq
		case u.doc != nil:
			d.put(u.tenant, u.doc)
			if u.doc.mark.Bare {
				d.claimed(claim{strings.Clone(u.tenant), strings.Clone(u.id), u.at})
			}
		default:
			d.remove(u.tenant, u.id)
		}
	}
	d.mu.Unlock()
	d.progress.Raise(seq)
}

// put applies a thread's document. The caller holds the lock.
func (d *directory) put(tenant string, doc *brief) {
	t := d.tenants[tenant]
	if t == nil {
		t = &memberSets{byID: map[string]uint32{}, runs: map[uint32]*events.ThreadRun{}}
		d.tenants[strings.Clone(tenant)] = t
	}
	m := listed{
		key: strings.Clone(doc.key()), seq: cmp.Or(doc.ListedSeq, doc.Seq), changed: doc.changed(), status: statusNumber(doc.Status), archived: doc.Archived,
		cold: doc.mark.Cold, bare: doc.mark.Bare,
		agent: d.names.Number(doc.AgentID), user: d.names.Number(doc.UserID),
	}
	id := packID(doc.ID)
	t.put(id, m)
	if at := t.byID[id]; doc.Run != nil {
		t.runs[at] = doc.Run
	} else {
		delete(t.runs, at)
	}
}

func (t *memberSets) put(id string, m listed) {
	at, known := t.byID[id]
	switch {
	case known:
		m.id = t.list[at].id
		if t.list[at].key == m.key {
			m.key = t.list[at].key
		}
		if t.list[at].seq == m.seq {
			t.list[at] = m
			return
		}
		t.stale++
	case len(t.free) > 0:
		at, t.free = t.free[len(t.free)-1], t.free[:len(t.free)-1]
	default:
		at = uint32(len(t.list))
		t.list = append(t.list, listed{})
	}
	if !known {
		m.id = id
		t.byID[id] = at
	}
	t.list[at] = m
	c := change{m.seq, at}
	i := len(t.order)
	for i > 0 && t.order[i-1].seq > m.seq && len(t.order)-i < 64 {
		i-- // nearly always the last; documents of one batch arrive in any order
	}
	if i > 0 && t.order[i-1].seq > m.seq {
		i, _ = slices.BinarySearchFunc(t.order, m.seq, func(c change, seq uint64) int { return cmp.Compare(c.seq, seq) })
	}
	t.order = slices.Insert(t.order, i, c)
	t.compact()
}

// remove removes a thread. The caller holds the lock.
func (d *directory) remove(tenant, id string) {
	t := d.tenants[tenant]
	if t == nil {
		return
	}
	packed := packID(id)
	if at, ok := t.byID[packed]; ok {
		delete(t.byID, packed)
		delete(t.runs, at)
		t.list[at] = listed{}
		t.free = append(t.free, at)
		t.stale++
		t.compact()
	}
}

// compact drops stale changes from the order when they are more than half of it.
func (t *memberSets) compact() {
	if t.stale < 1024 || t.stale < len(t.order)/2 {
		return
	}
	t.order = slices.Clip(slices.DeleteFunc(t.order, func(c change) bool { return t.list[c.member].seq != c.seq }))
	t.stale = 0
}
