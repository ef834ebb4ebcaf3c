package keys

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/skein-threads/skein/api/edge"
	"github.com/skein-threads/skein/events"
)

// set is the keys that an edge knows, and when they were last used. It is safe for concurrent
// use.
type set struct {
	mu   sync.Mutex
	keys map[string]*live     // by id, those that may be used
	used map[string]time.Time // since the uses were taken
}

func newSet() set { return set{keys: map[string]*live{}, used: map[string]time.Time{}} }

// live is a key in use.
type live struct {
	Key
	valid context.Context // ends when the key does
	end   context.CancelCauseFunc
}

// errEnded ends what a key is doing.
var errEnded = errors.New("the API key was revoked, or has expired")

// subject begins the subject of a principal with a key.
const subject = "key:"

// refused is the answer to a request without a valid key.
func refused() error {
	return events.Errorf(events.Unauthorized, "the request has no valid API key; send it as Authorization: Bearer %sID_SECRET", Prefix)
}

// sent returns the id and the secret of the key that a request has.
func sent(r *http.Request) (id, secret string, err error) {
	text, ok := edge.Bearer(r)
	if ok {
		id, secret, ok = parse(text)
	}
	if !ok || len(id) > 64 {
		return "", "", refused()
	}
	return id, secret, nil
}

// idOf returns the id of the key that a principal has.
func idOf(p edge.Principal) (string, bool) { return strings.CutPrefix(p.Subject, subject) }

// find returns a key that may be used now.
func (s *set) find(id string, now time.Time) (*live, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k, known := s.keys[id]
	return k, known && k.State(now) == active
}

// principal returns who has a key, and notes its use.
func (s *set) principal(id, secret string, now time.Time) (edge.Principal, error) {
	k, ok := s.find(id, now)
	if !ok || !k.matches(secret) {
		return edge.Principal{}, refused()
	}
	s.note(id, now)
	return k.principal(), nil
}

// resume returns who has a key whose secret was checked elsewhere.
func (s *set) resume(id string, now time.Time) (edge.Principal, error) {
	k, ok := s.find(id, now)
	if !ok {
		return edge.Principal{}, refused()
	}
	return k.principal(), nil
}

func (k *live) principal() edge.Principal {
	p := edge.Principal{
		Tenant: k.Tenant, Roles: k.Roles, Subject: k.Actor(), User: k.User, Threads: k.Threads, Can: k.Can, Valid: k.valid,
	}
	if k.Expires != nil {
		p.Expires = *k.Expires
	}
	return p
}

// note notes a use, to the second.
func (s *set) note(id string, at time.Time) {
	at = at.UTC().Truncate(time.Second)
	s.mu.Lock()
	defer s.mu.Unlock()
	if at.After(s.used[id]) {
		s.used[id] = at
	}
}

// takeUses returns when keys were used since it was called last.
func (s *set) takeUses() map[string]time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	taken := s.used
	s.used = map[string]time.Time{}
	return taken
}

// replace replaces the keys. One that is as it was continues.
func (s *set) replace(list []Key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.keys
	s.keys = map[string]*live{}
	for _, k := range list {
		if old, was := before[k.ID]; was && old.Hash == k.Hash && k.Revoked == nil {
			s.keys[k.ID] = &live{k, old.valid, old.end}
			delete(before, k.ID)
			continue
		}
		s.add(k)
	}
	for _, gone := range before {
		gone.end(errEnded)
	}
}

// add adds a key. The caller holds mu.
func (s *set) add(k Key) {
	made := &live{Key: k}
	made.valid, made.end = context.WithCancelCause(context.Background())
	s.keys[k.ID] = made
}

// endExpired ends what the keys do that are no longer valid.
func (s *set) endExpired(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, k := range s.keys {
		if k.State(now) != active {
			k.end(errEnded)
			delete(s.keys, id)
		}
	}
}

// revisionOf returns a text that differs where lists of keys do.
func revisionOf(list []Key) string {
	raw, err := json.Marshal(list, json.Deterministic(true))
	if err != nil { // they were decoded: cannot fail
		return ""
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:])
}
