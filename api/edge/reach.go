package edge

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/nats-io/nats.go"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
)

// reach is which threads of its tenant a principal may use. Others do not exist for it.
type reach struct {
	who     Principal
	tenant  *client.Client // of the whole tenant, to look up whose a thread is
	defines bool           // the credential names the capability define

	mu   sync.Mutex
	seen map[string]sighting
}

// sighting is whether a thread may be used, as it was when it was looked up.
type sighting struct {
	shown bool
	until time.Time
}

// commitCommand has several commands on one thread.
const commitCommand = "thread.commit"

const (
	sightingLasts = 5 * time.Second // of what is shown in lists and streams; requests look up each time
	mostSightings = 4096
)

// reachOf returns the reach of a principal, nil if it may use all threads; o is how a client of
// the whole tenant is made.
func reachOf(who Principal, nc *nats.Conn, o client.Options) (*reach, error) {
	if who.User == "" && len(who.Threads) == 0 {
		return nil, nil
	}
	tenant, err := client.New(nc, o)
	if err != nil {
		return nil, err
	}
	return &reach{who: who, tenant: tenant, defines: slices.Contains(who.Can, Define), seen: map[string]sighting{}}, nil
}

// thread returns the id of the thread that ref names, an id or key: and a key. The error is a
// not_found if the principal may not use it.
func (r *reach) thread(ctx context.Context, ref string) (string, error) {
	id, found, err := r.find(ctx, ref)
	if err == nil && !found {
		err = events.MissingThread(ref)
	}
	return id, err
}

// made returns an already_exists unless the principal may use a thread that its command made. The
// thread's id is derived from the command's, so that another caller with the same command and id
// gets the first reply.
func (r *reach) made(ctx context.Context, id string, seq int64, commandID string) error {
	t, err := client.Read(ctx, r.tenant, events.GetThread{ThreadID: id, Fresh: events.Fresh{MinSeq: &seq}})
	if err == nil && !r.covers(t) {
		return events.ReusedID(commandID)
	}
	return err
}

// covers reports whether the principal may use a thread.
func (r *reach) covers(t *events.Thread) bool {
	return (r.who.User == "" || t.UserID == r.who.User) && (len(r.who.Threads) == 0 || slices.Contains(r.who.Threads, t.ID))
}

// find is thread, and reports whether there is a thread: found is false if there is none at
// all, and the error a not_found if it is another's.
func (r *reach) find(ctx context.Context, ref string) (id string, found bool, err error) {
	if r.who.User == "" && events.ValidThreadID(ref) {
		if slices.Contains(r.who.Threads, ref) {
			return ref, true, nil
		}
		return "", false, events.MissingThread(ref)
	}
	t, err := client.Read(ctx, r.tenant, events.GetThread{ThreadID: ref})
	switch {
	case events.IsNotFound(err):
		return "", false, nil
	case err != nil:
		return "", false, err
	case !r.covers(t):
		return "", true, events.MissingThread(ref)
	}
	return t.ID, true, nil
}

// shows reports whether the principal may use a thread, as it was a moment ago.
func (r *reach) shows(ctx context.Context, id string) (bool, error) {
	if !events.ValidThreadID(id) { // it belongs to the tenant
		return false, nil
	}
	r.mu.Lock()
	last, known := r.seen[id]
	r.mu.Unlock()
	if known && time.Now().Before(last.until) {
		return last.shown, nil
	}
	_, err := r.thread(ctx, id)
	if err != nil && !events.IsNotFound(err) {
		return false, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.seen) >= mostSightings {
		clear(r.seen)
	}
	r.seen[id] = sighting{err == nil, time.Now().Add(sightingLasts)}
	return err == nil, nil
}

// field replaces the thread that a field names by its id.
func (r *reach) field(ctx context.Context, f fields, name string) error {
	ref, set := text(f, name)
	if !set {
		return nil // absent, or refused by the service
	}
	id, err := r.thread(ctx, ref)
	if err == nil {
		f[name] = quoted(id)
	}
	return err
}

// command holds a command to the threads, and sets whose the threads are that it makes.
func (r *reach) command(ctx context.Context, name string, request *events.Request) error {
	row, known := events.LookupCommand(name)
	if !known {
		return nil // the service refuses it
	}
	switch row.Scope() {
	case events.OfDefinitions:
		if r.defines {
			return nil
		}
		return tenantwide(name)
	case events.WholeTenant:
		return tenantwide(name)
	}
	data, err := decodeFields(request.Data)
	if err != nil {
		return events.Invalid("/data", "it is not a JSON object: %w", err)
	}
	if len(r.who.Threads) > 0 && begins(row, data) && !slices.Contains(r.who.Threads, request.ThreadID) {
		return noNewThreads() // whether or not there is one
	}
	if err := r.own(ctx, row, request); err != nil {
		return err
	}
	if err := r.data(ctx, row, data); err != nil {
		return err
	}
	if len(data) > 0 || request.Data != nil {
		request.Data = encodeFields(data)
	}
	return nil
}

// begins reports whether a command makes the thread that it is for.
func begins(row events.Command, data fields) bool {
	if row.Name != commitCommand {
		return row.Creates && row.Relates.Finds == ""
	}
	var list []events.SubCommand
	_ = json.Unmarshal(data["commands"], &list) // batch refuses what is no list
	return slices.ContainsFunc(list, func(c events.SubCommand) bool {
		one, known := events.LookupCommand(c.Command)
		return known && one.Creates
	})
}

// own checks the thread of a command, which may not exist yet.
func (r *reach) own(ctx context.Context, row events.Command, request *events.Request) error {
	if request.ThreadID == "" {
		if row.Creates && len(r.who.Threads) > 0 && row.Relates.Finds == "" {
			return noNewThreads()
		}
		return nil
	}
	id, found, err := r.find(ctx, request.ThreadID)
	if err == nil && !found && !row.Creates && !row.Relates.Makes {
		err = events.MissingThread(request.ThreadID)
	}
	if err == nil && found {
		request.ThreadID = id
	}
	return err
}

// data checks what a command's data names, and sets the user of threads that it makes.
func (r *reach) data(ctx context.Context, row events.Command, data fields) error {
	for _, name := range row.Relates.Threads {
		if err := r.field(ctx, data, name); err != nil {
			return err
		}
	}
	if key, set := text(data, row.Relates.Finds); set {
		_, found, err := r.find(ctx, "key:"+key)
		if err != nil {
			return err
		}
		if !found && len(r.who.Threads) > 0 {
			return noNewThreads()
		}
	}
	if row.Relates.Child && len(r.who.Threads) > 0 {
		return noNewThreads()
	}
	if err := r.user(row, data); err != nil || row.Name != commitCommand {
		return err
	}
	return r.batch(ctx, data)
}

// user sets whose the thread is that a command makes, and refuses to give one away.
func (r *reach) user(row events.Command, data fields) error {
	field := row.Relates.User
	if field == "" {
		return nil
	}
	_, present := data[field]
	user, _ := text(data, field)
	switch {
	case r.who.User == "" && present:
		return events.Errorf(events.Forbidden, "the credential is limited to some threads, and sets no thread's user; leave %s out", field)
	case r.who.User == "":
		return nil
	case present && user != r.who.User:
		return events.Errorf(events.Forbidden, "the credential is limited to the threads of one user; leave %s out", field)
	case row.Creates || row.Relates.Makes:
		data[field] = quoted(r.who.User)
	}
	return nil
}

// batch checks the commands of a thread.commit, all on its thread.
func (r *reach) batch(ctx context.Context, data fields) error {
	var list []events.SubCommand
	if err := json.Unmarshal(data["commands"], &list); err != nil {
		return events.Invalid("/data/commands", "they are not commands: %w", err)
	}
	for i := range list {
		row, known := events.LookupCommand(list[i].Command)
		if !known || row.Single {
			continue // the service refuses it
		}
		inner, err := decodeFields(list[i].Data)
		if err == nil {
			err = r.data(ctx, row, inner)
		}
		if err != nil {
			return err
		}
		if len(inner) > 0 || list[i].Data != nil {
			list[i].Data = encodeFields(inner)
		}
	}
	raw, err := json.Marshal(list)
	data["commands"] = jsontext.Value(raw)
	return err
}

func tenantwide(name string) error {
	return events.Errorf(events.Forbidden, "%s concerns the whole tenant; the credential is limited to some of its threads", name)
}

func noNewThreads() error {
	return events.Errorf(events.Forbidden, "the credential is limited to threads that it names, and makes no others")
}
