package keys

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/skein-threads/skein/api/edge"
)

// watchEvery is how often the file is looked at.
const watchEvery = 200 * time.Millisecond

// Store authenticates by the keys of an access folder. It is safe for concurrent use.
type Store struct {
	set
	dir  string
	warn func(error) // called when the folder cannot be read or written; the keys stay as they were

	reading  sync.Mutex  // guards the fields below
	read     os.FileInfo // the file that was read
	revision string      // of its contents

	stop func()
	done sync.WaitGroup
}

// Open reads the keys of a folder and follows its changes until Close.
func Open(dir string, warn func(error)) (*Store, error) {
	watching, stop := context.WithCancel(context.Background())
	s := &Store{set: newSet(), dir: dir, warn: warn, stop: stop}
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
	id, secret, err := sent(r)
	if err != nil {
		return edge.Principal{}, err
	}
	return s.principal(id, secret, time.Now())
}

// Resume returns the principal of a key that another edge authenticated.
func (s *Store) Resume(_ context.Context, p edge.Principal) (edge.Principal, error) {
	id, ok := idOf(p)
	if !ok {
		return edge.Principal{}, refused()
	}
	return s.resume(id, time.Now())
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
	s.reading.Lock()
	defer s.reading.Unlock()
	if !sameFile(info, s.read) {
		list, err := Read(s.dir)
		if err != nil {
			return err
		}
		s.read, s.revision = info, revisionOf(list)
		s.replace(list)
	}
	s.endExpired(now)
	return nil
}

func sameFile(a, b os.FileInfo) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	return os.SameFile(a, b) && a.ModTime().Equal(b.ModTime()) && a.Size() == b.Size()
}

// writeUsed writes the last uses, together with those of other processes.
func (s *Store) writeUsed() {
	mine := s.takeUses()
	if len(mine) == 0 {
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
