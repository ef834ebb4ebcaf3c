package edge

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/skein-threads/skein/events"
)

// Capability is a kind of operation to which a principal may be limited.
type Capability = events.Capability

// The capabilities.
const (
	Read    = events.CanRead
	Write   = events.CanWrite
	Approve = events.CanApprove
	Define  = events.CanDefine
	Tools   = events.CanTools
)

// Capabilities lists the capabilities.
func Capabilities() []Capability { return []Capability{Read, Write, Approve, Define, Tools} }

// Principal is who makes a request, as the request's credential says.
type Principal struct {
	Tenant  string
	Roles   []string     // publisher, subscriber: those of docs/access.md
	Subject string       // what the log records as actor, such as key:3f6c
	User    string       // limits the principal to the threads of this user; default none
	Threads []string     // limits it to these threads; default none
	Can     []Capability // limits what it may do; default all that its roles permit
	Desk    bool         // nobody was authenticated: see Desk
	Expires time.Time    // when the credential ends; zero: never
	// Valid ends when the credential is revoked, and with it what it is used for; nil: never.
	Valid context.Context `json:"-"`
}

// rights returns the rights of the runs that the principal starts; nil if it is not limited.
func (p Principal) rights() *events.Rights {
	if p.User == "" && len(p.Threads) == 0 && len(p.Can) == 0 {
		return nil
	}
	r := &events.Rights{User: p.User, Threads: p.Threads, Can: p.Can}
	if len(r.Can) == 0 { // definitions and tools are the tenant's
		r.Can = []Capability{Read, Write, Approve}
	}
	return r
}

// credential names what a principal was authenticated by.
func (p Principal) credential() string { return p.Tenant + " " + p.Subject }

// May reports whether the principal's roles and capabilities permit a kind of operation at
// all. The guard of its client decides on each.
func (p Principal) May(what Capability) bool {
	if len(p.Can) > 0 && !slices.Contains(p.Can, what) {
		return false
	}
	return slices.Contains(p.Roles, string(events.Publisher)) || what == Read && p.Follows()
}

// Follows reports whether the principal may subscribe to its tenant's events.
func (p Principal) Follows() bool { return slices.Contains(p.Roles, string(events.Subscriber)) }

// Bearer returns the token in the header Authorization of a request.
func Bearer(r *http.Request) (string, bool) {
	scheme, token, ok := strings.Cut(r.Header.Get("Authorization"), " ")
	token = strings.TrimSpace(token)
	return token, ok && strings.EqualFold(scheme, "Bearer") && token != ""
}

// Authenticator determines the principal of a request. The error is an *events.Error,
// unauthorized if the request has no valid credential.
type Authenticator interface {
	Authenticate(r *http.Request) (Principal, error)
}
