package keys

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"
	"github.com/go-json-experiment/json"

	"github.com/skein-threads/skein/api/edge"
)

// times are how often keys are looked at, and how long what is known of them counts.
type times struct {
	poll    time.Duration // between two looks at the file, and between two requests to the process that has it
	hold    time.Duration // for which that process holds a request while nothing changes
	trusted time.Duration // for which keys count about which nobody answers
}

// usual returns the times of a server. Changes are told as they happen; the looks in between are
// for folders, such as those of another machine, whose changes the system does not tell.
func usual() times { return times{200 * time.Millisecond, time.Second, 10 * time.Second} }

// Store authenticates by the keys of an access folder. It is safe for concurrent use.
type Store struct {
	set
	dir  string
	warn func(error) // called when the folder cannot be read or written; the keys stay as they were

	reading  sync.Mutex    // guards the fields below
	read     os.FileInfo   // the file that was read
	revision string        // of its contents
	changed  chan struct{} // closed when there is another revision

	times   times
	waiting chan struct{} // has a place for each request that waits for a change
	closing context.Context
	stop    func()
	done    sync.WaitGroup
}

// Open reads the keys of a folder and follows its changes until Close.
func Open(dir string, warn func(error)) (*Store, error) { return open(dir, warn, usual()) }

func open(dir string, warn func(error), t times) (*Store, error) {
	closing, stop := context.WithCancel(context.Background())
	s := &Store{set: newSet(), dir: dir, warn: warn, changed: make(chan struct{}), times: t, waiting: make(chan struct{}, mostWaiting), closing: closing, stop: stop}
	told, closeTold := s.notifications()
	if err := s.refresh(time.Now()); err != nil {
		stop()
		closeTold()
		return nil, err
	}
	s.done.Go(func() {
		defer closeTold()
		s.watch(closing, told)
	})
	return s, nil
}

// notifications returns a channel that is told of changes in the folder, unless the system
// cannot tell them.
func (s *Store) notifications() (told <-chan fsnotify.Event, closeTold func()) {
	w, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, func() {}
	}
	go func() {
		for range w.Errors { // what was missed the next look finds
		}
	}()
	closeTold = func() { _ = w.Close() } // nothing is written
	if err := w.Add(s.dir); err != nil {
		closeTold()
		return nil, func() {}
	}
	return w.Events, closeTold
}

// Close ends the following.
func (s *Store) Close() {
	s.reading.Lock() // no request is held from here on
	s.stop()
	s.reading.Unlock()
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
func (s *Store) watch(ctx context.Context, told <-chan fsnotify.Event) {
	tick := time.NewTicker(s.times.poll)
	defer tick.Stop()
	failed := ""
	refresh := func() {
		err := s.refresh(time.Now())
		if err != nil && err.Error() != failed {
			s.warn(err)
		}
		if failed = ""; err != nil {
			failed = err.Error()
		}
	}
	for n := 0; ; {
		select {
		case <-ctx.Done():
			return
		case e := <-told:
			if filepath.Base(e.Name) == File {
				refresh()
			}
		case <-tick.C:
			refresh()
			if n++; n%5 == 1 {
				s.writeUsed()
			}
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
		close(s.changed)
		s.changed = make(chan struct{})
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
