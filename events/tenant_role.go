package events

import "strings"

// TenantRole is what a user of a tenant may do, over NATS and over HTTP.
type TenantRole string

// The roles of a tenant.
const (
	Publisher  TenantRole = "publisher"  // sends commands and queries
	Subscriber TenantRole = "subscriber" // sends queries, and follows the timeline and live events
)

// Enum lists the roles.
func (TenantRole) Enum() []string { return []string{string(Publisher), string(Subscriber)} }

// Subjects returns what a user of the tenant with that role may publish on, and subscribe
// to besides the user's own inboxes. It is the one table of docs/access.md: the NATS server
// holds connections to it, and the HTTP edge its principals.
func (r TenantRole) Subjects(n Names, tenant string) (publish, subscribe []string) {
	live := n.Prefix + ".live." + tenant + ".>"
	switch r {
	case Publisher:
		return []string{n.Command(tenant, ">"), n.Submit(tenant, ">"), n.Query(tenant, ">"), n.File(tenant, ">"), n.Upload(tenant, ">"), live}, nil
	case Subscriber:
		return []string{n.Query(tenant, ">")}, []string{n.Prefix + ".timeline." + tenant + ".>", live}
	default:
		return nil, nil
	}
}

// Covers reports whether a pattern, in which * is one token and a final > one or more,
// covers everything that a subject, or another pattern, matches.
func Covers(pattern, subject string) bool {
	for {
		p, restOfPattern, morePattern := strings.Cut(pattern, ".")
		s, restOfSubject, moreSubject := strings.Cut(subject, ".")
		switch {
		case s == "":
			return false
		case p == ">" && !morePattern:
			return true
		case s == ">" || p != s && p != "*":
			return false
		case !morePattern || !moreSubject:
			return morePattern == moreSubject
		}
		pattern, subject = restOfPattern, restOfSubject
	}
}

// Scope is what of a tenant a query reads or a command changes. Someone who may use some
// threads only is held to them by it.
type Scope string

// The scopes.
const (
	OneThread     Scope = ""            // a thread: that of threadId, or, of a query without it, that of the answer
	ManyThreads   Scope = "threads"     // a query: threads of the tenant, each named by an entry of the answer
	OfDefinitions Scope = "definitions" // definitions, which all threads of the tenant share
	WholeTenant   Scope = "tenant"      // what belongs to no thread
	Unscoped      Scope = "none"        // a query: nothing of any thread, or what its own data permits
)

// Entries names the list of threads, or of what belongs to them, in the answer of a query of
// ManyThreads.
type Entries struct {
	List   string // the field of the answer
	Thread string // the field of an entry with the thread's id; empty: it is an event
}

// Relates names the fields of a command's data that concern threads other than its own.
type Relates struct {
	Threads []string // each names another thread, which must exist
	Finds   string   // a key, whose thread the command finds
	User    string   // whose thread it makes, or whose the thread becomes
	Makes   bool     // it may make its own thread, although Creates is false
	Child   bool     // it makes another thread, of the same user
}
