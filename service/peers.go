package service

import (
	"crypto/rand"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/minio/highwayhash"
	"github.com/nats-io/nats.go"

	"github.com/skein-threads/skein/events"
)

const (
	// announceEvery is how often a process announces itself.
	announceEvery = 500 * time.Millisecond
	// aliveFor is how long after that it counts as alive.
	aliveFor = 4 * announceEvery
	// ailingFor is how long a process that ails owns nothing.
	ailingFor = 10 * time.Second
	// mostPeers is how many processes may be known.
	mostPeers = 256
)

// peers are the processes that serve the same requests, this one among them. Each
// announces itself to the others. They need not agree on who is alive, and so on which of
// them owns what: whatever is built on it must be right in any case. It is safe for
// concurrent use.
type peers struct {
	names events.Names
	self  string
	tell  func(*nats.Msg) // must return at once
	count func(int)       // receives how many there are

	owners atomic.Pointer[[]string] // the processes that may own something

	mu      sync.Mutex // guards what follows
	seen    map[string]peer
	ailing  time.Time // until when this process ails
	leaving bool
}

// peer is another process, as it announced itself.
type peer struct {
	at     time.Time
	ailing bool
}

// announcement is what a process tells the others about itself.
type announcement struct {
	ID      string `json:"id"`
	Leaving bool   `json:"leaving,omitzero"` // it takes no more requests
	Ailing  bool   `json:"ailing,omitzero"`  // it should own nothing, while another can
}

func newPeers(names events.Names, tell func(*nats.Msg), count func(int)) *peers {
	p := &peers{names: names, self: rand.Text(), tell: tell, count: count, seen: map[string]peer{}}
	p.owners.Store(&[]string{p.self})
	return p
}

// alone reports whether this process owns everything.
func (p *peers) alone() bool {
	owners := *p.owners.Load()
	return len(owners) == 1 && owners[0] == p.self
}

// unkeyed is the key of a hash that is the same in every process.
var unkeyed [highwayhash.Size]byte

// owner returns the process that a key belongs to: that with the highest hash of itself and
// the key, so that when one comes or goes only its own keys change hands.
func (p *peers) owner(key string) string {
	owner, most := "", uint64(0)
	var buf [128]byte
	for i, id := range *p.owners.Load() {
		if h := highwayhash.Sum64(append(append(buf[:0], id...), key...), unkeyed[:]); i == 0 || h > most {
			owner, most = id, h
		}
	}
	return owner
}

// announce tells the others about this process, and forgets those that were silent for some
// time, or all of them while it is not connected.
func (p *peers) announce(now time.Time, connected bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for id, other := range p.seen {
		if !connected || now.Sub(other.at) >= aliveFor {
			delete(p.seen, id)
		}
	}
	p.update(now)
	p.publish(now)
}

// leave tells the others to send nothing more to this process, which from then on knows
// none of them.
func (p *peers) leave(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.leaving = true
	clear(p.seen)
	p.update(now)
	p.publish(now)
}

// ail makes this process own nothing for some time, unless all others ail, too.
func (p *peers) ail(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	told := now.Before(p.ailing)
	p.ailing = now.Add(ailingFor)
	if !told {
		p.update(now)
		p.publish(now)
	}
}

// announced takes what a process tells about itself. One that was not known is told of this
// one, which it may not know either.
func (p *peers) announced(m *nats.Msg, now time.Time) {
	var a announcement
	if json.Unmarshal(m.Data, &a) != nil || !validPeer(a.ID) || a.ID == p.self {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.leaving {
		return
	}
	was, known := p.seen[a.ID]
	switch {
	case a.Leaving:
		delete(p.seen, a.ID)
	case known || len(p.seen) < mostPeers:
		p.seen[a.ID] = peer{now, a.Ailing}
	}
	if is, knows := p.seen[a.ID]; knows == known && is.ailing == was.ailing {
		return
	}
	p.update(now)
	if !known {
		p.publish(now)
	}
}

// lost forgets a process that does not take requests.
func (p *peers) lost(id string, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.seen, id)
	p.update(now)
}

// update computes the owners. Hold p.mu.
func (p *peers) update(now time.Time) {
	all := []string{p.self}
	var well []string
	if !now.Before(p.ailing) {
		well = append(well, p.self)
	}
	for id, other := range p.seen {
		all = append(all, id)
		if !other.ailing {
			well = append(well, id)
		}
	}
	if len(well) == 0 { // then none is better than another
		well = all
	}
	p.owners.Store(&well)
	p.count(len(p.seen) + 1)
}

// publish announces this process. What does not arrive is followed by the next. Hold p.mu.
func (p *peers) publish(now time.Time) {
	body, err := json.Marshal(announcement{ID: p.self, Leaving: p.leaving, Ailing: now.Before(p.ailing)})
	if err == nil {
		p.tell(&nats.Msg{Subject: p.names.Peers(), Data: body})
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
