package service

import (
	"encoding/json"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nuid"

	"github.com/skein-threads/skein/events"
)

const (
	// announceEvery is how often a process says that it serves requests.
	announceEvery = 500 * time.Millisecond
	// aliveFor is how long after that it counts as one that does.
	aliveFor = 4 * announceEvery
	// mostPeers is how many processes may be known.
	mostPeers = 256
)

// peers are the processes that serve the same requests, this one among them. Each
// announces itself to the others. They need not agree: who is alive, and so which of them
// owns what, is an opinion, and what is built on it must be right whatever it is. It is
// safe for concurrent use.
type peers struct {
	nc    *nats.Conn
	names events.Names
	self  string
	count func(int) // receives how many there are

	alive atomic.Pointer[[]string] // sorted, this process included

	mu      sync.Mutex // guards what follows
	seen    map[string]time.Time
	leaving bool
}

// announcement is what a process tells the others about itself.
type announcement struct {
	ID      string `json:"id"`
	Leaving bool   `json:"leaving,omitempty"` // it takes no more requests
}

func newPeers(nc *nats.Conn, names events.Names, count func(int)) *peers {
	p := &peers{nc: nc, names: names, self: nuid.Next(), count: count, seen: map[string]time.Time{}}
	p.alive.Store(&[]string{p.self})
	return p
}

// owner returns the process that a key belongs to: that with the highest hash of itself and
// the key, so that when one comes or goes only its own keys change hands.
func (p *peers) owner(key string) string {
	alive := *p.alive.Load()
	if len(alive) == 1 {
		return alive[0]
	}
	owner, most := "", uint64(0)
	var buf [128]byte
	for _, id := range alive {
		if h := xxhash.Sum64(append(append(buf[:0], id...), key...)); owner == "" || h > most {
			owner, most = id, h
		}
	}
	return owner
}

// announce tells the others that this process serves requests, and forgets those that have
// not done so for some time.
func (p *peers) announce(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for id, at := range p.seen {
		if now.Sub(at) >= aliveFor {
			delete(p.seen, id)
		}
	}
	p.update()
	p.tell(announcement{ID: p.self})
}

// alone reports whether no other process is known.
func (p *peers) alone() bool { return len(*p.alive.Load()) == 1 }

// leave tells the others to send nothing more to this process, which from then on knows
// none of them.
func (p *peers) leave() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.leaving = true
	clear(p.seen)
	p.update()
	p.tell(announcement{ID: p.self, Leaving: true})
}

// hear takes what a process says about itself. One that was not known is told of this one,
// which it may not know either.
func (p *peers) hear(m *nats.Msg, now time.Time) {
	var a announcement
	if json.Unmarshal(m.Data, &a) != nil || !validPeer(a.ID) || a.ID == p.self {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.leaving {
		return
	}
	_, known := p.seen[a.ID]
	switch {
	case a.Leaving:
		delete(p.seen, a.ID)
	case known || len(p.seen) < mostPeers:
		p.seen[a.ID] = now
	}
	if _, knows := p.seen[a.ID]; knows == known {
		return
	}
	p.update()
	if !known {
		p.tell(announcement{ID: p.self})
	}
}

// lost forgets a process that does not take requests.
func (p *peers) lost(id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.seen, id)
	p.update()
}

// update recomputes who is alive. Hold p.mu.
func (p *peers) update() {
	alive := make([]string, 0, len(p.seen)+1)
	alive = append(alive, p.self)
	for id := range p.seen {
		alive = append(alive, id)
	}
	slices.Sort(alive)
	p.alive.Store(&alive)
	p.count(len(alive))
}

// tell publishes an announcement. On a broken connection it is lost; the next follows.
func (p *peers) tell(a announcement) {
	body, err := json.Marshal(a)
	if err == nil {
		_ = p.nc.Publish(p.names.Peers(), body)
	}
}

// validPeer reports whether a process may be named so: its name is a token of a subject.
func validPeer(id string) bool {
	for _, c := range id {
		if (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') {
			return false
		}
	}
	return id != "" && len(id) <= 32
}
