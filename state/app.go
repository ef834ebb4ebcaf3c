package state

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/netip"
	"time"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
)

// AppState is what an application set up for all of its requests: any value of its own.
type AppState any

// Options configures an App. Client is required, and so is a key unless Development is set.
type Options struct {
	// Client stores the states, and acts for one tenant. It stays the caller's.
	Client *client.Client
	// Keys sign the ids of threads. The first one signs, all are accepted: to replace a key,
	// put the new one first, and remove the old one after a week, when its cookies have
	// expired.
	Keys [][]byte
	// Development permits to have no keys: ids are then signed with a key that is public.
	Development bool
	// ThreadIDs names the thread of a request. The default takes it from a signed header or
	// cookie, or makes a new one.
	ThreadIDs ThreadIDProvider
	// RouteID returns the id of the thread that the route of a request names, or an empty text.
	// It is believed without a signature: return one only for a caller that the application
	// has authenticated as a service.
	RouteID func(*http.Request) string
	// User returns the authenticated user of a request, or an empty text. It owns the threads
	// that its requests create.
	User func(*http.Request) string
	// Setup returns what Session shows as App. An error fails New.
	Setup func(context.Context) (AppState, error)
	// Name names the application in the log, for its Listeners.
	Name string
	// Listeners run after events of threads and sessions, in the processes that call App.Listen.
	Listeners []Listener
	// Idle is how long after its last use the state of a thread ends, in whole seconds; an
	// hour if 0, at most 366 days.
	Idle time.Duration
	// TrustedProxies are the addresses whose X-Forwarded-Proto is believed.
	TrustedProxies []netip.Prefix
	// Logger receives what concerns no response; slog.Default if nil.
	Logger *slog.Logger
	// Now is the clock; time.Now if nil.
	Now func() time.Time
}

// App is an application whose requests have state. It is safe for concurrent use.
type App struct {
	opts  Options
	keys  keyring
	state AppState
	tasks tasks

	base   context.Context // ends when Shutdown gives up
	cancel context.CancelCauseFunc
}

// maxIdle is the longest idle time that a merge takes.
const maxIdle = 366 * 24 * time.Hour

// developmentKey signs when an application in development has no key.
const developmentKey = "agentuity"

// New returns an application. The error is an invalid_request if the options are wrong, or that
// of Setup.
func New(ctx context.Context, o Options) (*App, error) {
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if err := o.validate(); err != nil {
		return nil, err
	}
	keys, err := signingKeys(ctx, o)
	if err != nil {
		return nil, err
	}
	a := &App{opts: o, keys: keys}
	if a.opts.ThreadIDs == nil {
		a.opts.ThreadIDs = signedIDs{keys: a.keys, logger: o.Logger}
	}
	if o.Setup != nil {
		if a.state, err = o.Setup(ctx); err != nil {
			return nil, err
		}
	}
	a.base, a.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	return a, nil
}

// validate reports everything that is wrong with the options.
func (o *Options) validate() error {
	var wrong []error
	if o.Client == nil {
		wrong = append(wrong, events.Invalid("/client", "a client is required"))
	}
	if o.Idle < 0 || o.Idle%time.Second != 0 || o.Idle > maxIdle {
		wrong = append(wrong, events.Invalid("/idle", "the idle time is %v; use whole seconds, at most %v", o.Idle, maxIdle))
	}
	if err := o.checkListeners(); err != nil {
		wrong = append(wrong, err)
	}
	return errors.Join(wrong...)
}

// signingKeys returns the keys, or in development that of development if there is none.
func signingKeys(ctx context.Context, o Options) (keyring, error) {
	for _, key := range o.Keys {
		switch {
		case len(key) == 0:
			return nil, events.Invalid("/keys", "a key is empty; is the variable set that it comes from?")
		case string(key) == developmentKey && !o.Development:
			return nil, events.Invalid("/keys", "a key is that of development, which is public; use a random one of 32 bytes")
		}
	}
	if len(o.Keys) > 0 {
		keys := make(keyring, len(o.Keys))
		for i, key := range o.Keys {
			keys[i] = bytes.Clone(key)
		}
		return keys, nil
	}
	if !o.Development {
		return nil, events.Invalid("/keys", "a key is required to sign thread ids; set one, or set Development on the machine of a developer")
	}
	o.Logger.WarnContext(ctx, "thread ids are signed with the public key of development; set a key in production")
	return keyring{[]byte(developmentKey)}, nil
}

// idle returns how long after its last use a state ends.
func (o *Options) idle() time.Duration {
	if o.Idle == 0 {
		return events.DefaultIdle
	}
	return o.Idle
}

// Shutdown waits until no request and no background work is in progress, and refuses new
// requests with 503. Call it after http.Server.Shutdown, which waits for the requests. If ctx
// ends first, the contexts of background work end too, and the error says how many are still in
// progress. What they have written is saved all the same, if the process lives long enough.
func (a *App) Shutdown(ctx context.Context) error {
	left := a.tasks.drain(ctx)
	if left == 0 {
		a.cancel(errShutdown)
		return nil
	}
	a.cancel(errShutdown)
	return &UnfinishedError{Count: left, Cause: context.Cause(ctx)}
}

// detach returns a context for background work: it has the values of a request's, outlives it,
// and ends when Shutdown gives up.
func (a *App) detach(ctx context.Context) (context.Context, context.CancelFunc) {
	out, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	stop := context.AfterFunc(a.base, func() { cancel(context.Cause(a.base)) })
	return out, func() { stop(); cancel(nil) }
}
