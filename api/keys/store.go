package keys

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/skein-threads/skein/api/edge"
	"github.com/skein-threads/skein/events"
)

// watchEvery is how often the file is looked at.
const watchEvery = 200 * time.Millisecond

// Store authenticates by the keys of an access folder. It is safe for concurrent use.
type Store struct {
	dir  string
	warn func(error) // called when the folder cannot be read or written; the keys stay as they were

	mu   sync.Mutex
	keys map[string]*live // by id, those that may be used
	read os.FileInfo      // the file that was read
	used map[string]time.Time
	new  bool // uses since they were written

	stop func()
	done sync.WaitGroup
}

// live is a key in use.
type live struct {
	Key
	valid context.Context // ends when the key does
	end   context.CancelCauseFunc
}

// errEnded ends what a key is doing.
var errEnded = errors.New("the API key was revoked, or has expired")

// Open reads the keys of a folder and follows its changes until Close.
func Open(dir string, warn func(error)) (*Store, error) {
	watching, stop := context.WithCancel(context.Background())
	s := &Store{dir: dir, warn: warn, keys: map[string]*live{}, used: map[string]time.Time{}, stop: stop}
	if err := s.refresh(time.Now()); err != nil {
		stop()
		return nil, err
	}
	s.done.Go(func() { s.watch(watching) })
	return s, nil
}

// Close ends the following.
func (s *Store) Close() {
	s.stop()
	s.done.Wait()
	s.writeUsed()
}

// Authenticate returns the principal of a request with a key.
func (s *Store) Authenticate(r *http.Request) (edge.Principal, error) {
	refused := events.Errorf(events.Unauthorized, "the request has no valid API key; send it as Authorization: Bearer %sID_SECRET", Prefix)
	text, ok := edge.Bearer(r)
	if !ok {
		return edge.Principal{}, refused
	}
	id, secret, ok := parse(text)
	if !ok {
		return edge.Principal{}, refused
	}
	now := time.Now()
	s.mu.Lock()
	k, known := s.keys[id]
	s.mu.Unlock()
	if !known || !k.matches(secret) || k.State(now) != "active" {
		return edge.Principal{}, refused
	}
	s.note(id, now)
	p := edge.Principal{
		Tenant: k.Tenant, Roles: k.Roles, Subject: "key:" + k.ID, User: k.User, Threads: k.Threads, Can: k.Can, Valid: k.valid,
	}
	if k.Expires != nil {
		p.Expires = *k.Expires
	}
	return p, nil
}

// note notes a use, to the second.
func (s *Store) note(id string, now time.Time) {
	now = now.UTC().Truncate(time.Second)
	s.mu.Lock()
	defer s.mu.Unlock()
	if now.After(s.used[id]) {
		s.used[id], s.new = now, true
	}
}

// watch follows changes, and writes the last uses, until ctx ends.
func (s *Store) watch(ctx context.Context) {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	failed := ""
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			err := s.refresh(now)
			if err != nil && err.Error() != failed {
				s.warn(err)
			}
			if failed = ""; err != nil {
				failed = err.Error()
			}
		}
		if n%5 == 0 {
			s.writeUsed()
		}
	}
}

// refresh reads the file again if it has changed, and ends what the keys do that are no
// longer valid.
func (s *Store) refresh(now time.Time) error {
	info, err := os.Stat(filepath.Join(s.dir, File))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !sameFile(info, s.read) {
		list, err := Read(s.dir)
		if err != nil {
			return err
		}
		s.read = info
		s.take(list)
	}
	for id, k := range s.keys {
		if k.State(now) != "active" {
			k.end(errEnded)
			delete(s.keys, id)
		}
	}
	return nil
}

// take replaces the keys. One that is as it was continues.
func (s *Store) take(list []Key) {
	before := s.keys
	s.keys = map[string]*live{}
	for _, k := range list {
		if old, was := before[k.ID]; was && old.Hash == k.Hash && k.Revoked == nil {
			s.keys[k.ID] = &live{k, old.valid, old.end}
			delete(before, k.ID)
			continue
		}
		made := &live{Key: k}
		made.valid, made.end = context.WithCancelCause(context.Background())
		s.keys[k.ID] = made
	}
	for _, gone := range before {
		gone.end(errEnded)
	}
}

func sameFile(a, b os.FileInfo) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	return os.SameFile(a, b) && a.ModTime().Equal(b.ModTime()) && a.Size() == b.Size()
}

// writeUsed writes the last uses, together with those of other processes.
func (s *Store) writeUsed() {
	s.mu.Lock()
	mine, write := maps.Clone(s.used), s.new
	s.new = false
	s.mu.Unlock()
	if !write {
		return
	}
	all, err := Used(s.dir)
	if err != nil {
		all = map[string]time.Time{} // unreadable, and written again
	}
	for id, at := range mine {
		if at.After(all[id]) {
			all[id] = at
		}
	}
	if err := s.write(all); err != nil {
		s.warn(err)
	}
}

func (s *Store) write(used map[string]time.Time) error {
	body, err := json.Marshal(used, json.Deterministic(true))
	if err != nil {
		return err
	}
	file, err := os.CreateTemp(s.dir, ".used-*") // 0600
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(file.Name()) }() // gone, if it was renamed
	_, err = file.Write(body)
	if err = errors.Join(err, file.Close()); err != nil {
		return err
	}
	return os.Rename(file.Name(), filepath.Join(s.dir, UsedFile))
}
