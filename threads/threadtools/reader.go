package threadtools

import (
	"context"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
)

// Reader reads threads of a tenant. It is safe for concurrent use.
type Reader struct {
	c   *client.Client
	own string // the thread that reads
	run bool   // for a run of it: only threads of the same user

	rights *events.Rights // of the run; nil: those of the tenant
}

// New returns a reader that may read every thread of the client's tenant.
func New(c *client.Client) *Reader { return &Reader{c: c} }

// For returns a reader for what works on a thread: reads are recorded there as mentions.
func (r *Reader) For(thread string) *Reader {
	return &Reader{c: r.c, own: thread, run: r.run, rights: r.rights}
}

// ForRun returns a reader for a run on a thread: reads are recorded there as mentions, and only
// threads of that thread's user can be read; if it has none, only threads without a user. Of these
// it reads those that the rights of the run include, and its own.
func ForRun(c *client.Client, thread string, rights *events.Rights) *Reader {
	return &Reader{c: c, own: thread, run: true, rights: rights}
}

// maxMain bounds the chain of main threads above a thread.
const maxMain = 16

// view is what a reader may read at one moment.
type view struct {
	c      *client.Client // whose answers show everything that was committed before
	own    *events.Thread // the thread that reads; nil: none
	run    bool
	rights *events.Rights    // of the run
	user   string            // the user whose threads a run may read; "": threads without a user
	owner  map[string]*owner // of main threads, by id
}

// owner is the user of a thread; nil where that cannot be told, since its main thread is gone.
type owner struct{ user string }

// view returns what may be read now.
func (r *Reader) view(ctx context.Context) (*view, error) {
	if !r.rights.May(events.CanRead) {
		return nil, events.Errorf(events.Forbidden, "the run was started with a credential that cannot %s", events.CanRead)
	}
	v := &view{c: r.c, run: r.run, rights: r.rights, owner: map[string]*owner{}}
	switch now, err := r.c.UpToDate(ctx); {
	case err == nil:
		v.c = now
	case !events.HasCode(err, events.Forbidden): // if it is, the latest commits may be missing
		return nil, err
	}
	if r.own == "" {
		return v, nil
	}
	own, err := client.Read(ctx, v.c, events.GetThread{ThreadID: r.own})
	if err != nil {
		return nil, err
	}
	v.own = own
	if !r.run {
		return v, nil
	}
	of, err := v.ownerOf(ctx, own)
	switch {
	case err != nil:
		return nil, err
	case of == nil:
		return nil, events.Errorf(events.Forbidden, "thread %s works for a thread that was deleted; it may read no other", own.ID)
	}
	v.user = of.user
	return v, nil
}

// ownerOf returns the user of a thread: its own, or else that of the thread that it works for.
func (v *view) ownerOf(ctx context.Context, t *events.Thread) (*owner, error) {
	for range maxMain {
		if t.UserID != "" || t.MainThreadID == "" {
			return &owner{t.UserID}, nil
		}
		main, err := client.Read(ctx, v.c, events.GetThread{ThreadID: t.MainThreadID})
		switch {
		case events.IsNotFound(err):
			return nil, nil
		case err != nil:
			return nil, err
		}
		t = main
	}
	return nil, nil
}

// mayRead reports whether a thread may be read.
func (v *view) mayRead(ctx context.Context, t *events.Thread) (bool, error) {
	if !v.run {
		return true, nil
	}
	if t.ID != v.own.ID && !v.rights.Reach(t.ID, t.UserID) {
		return false, nil
	}
	if t.UserID != "" || t.MainThreadID == "" {
		return t.UserID == v.user, nil
	}
	of, known := v.owner[t.MainThreadID]
	if !known {
		var err error
		if of, err = v.ownerOf(ctx, t); err != nil {
			return false, err
		}
		v.owner[t.MainThreadID] = of
	}
	return of != nil && of.user == v.user, nil
}

// thread returns a thread that may be read.
func (v *view) thread(ctx context.Context, ref string) (*events.Thread, error) {
	t, err := client.Read(ctx, v.c, events.GetThread{ThreadID: ref})
	if err == nil {
		var ok bool
		if ok, err = v.mayRead(ctx, t); err == nil && ok {
			return t, nil
		}
	}
	if err == nil || events.IsNotFound(err) {
		return nil, notFound(ref)
	}
	return nil, err
}

// notFound is the refusal of a thread that does not exist, or may not be read.
func notFound(ref string) error {
	return events.Errorf(events.NotFound, "there is no thread %.200s that can be read here; find_thread lists those that can", ref)
}
