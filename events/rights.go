package events

import "slices"

// Capability is a kind of operation that a credential may be limited to.
type Capability string

// The capabilities.
const (
	CanRead    Capability = "read"    // queries, timelines, chunks, contents of files
	CanWrite   Capability = "write"   // commands on threads
	CanApprove Capability = "approve" // approvals, granted, denied and resolved
	CanDefine  Capability = "define"  // definitions of models, prompts, agents, tools and policies
	CanTools   Capability = "tools"   // calls of tools that the thread's agent does not list, and effects
)

// Enum lists the capabilities.
func (Capability) Enum() []string {
	return []string{string(CanRead), string(CanWrite), string(CanApprove), string(CanDefine), string(CanTools)}
}

// Rights are what a limited credential may do. A run has those of the credential that started it.
// A nil *Rights has no limits within the tenant.
type Rights struct {
	User    string       `json:"user,omitzero" schema:"maxLength=256" doc:"Only threads of this user."`
	Threads []string     `json:"threads,omitempty" doc:"Only these threads."`
	None    bool         `json:"none,omitzero" doc:"Only the thread of the run: two credentials that share no thread took part in it."`
	Can     []Capability `json:"can,omitempty" doc:"What it may do; absent: nothing."`
	Code    bool         `json:"code,omitzero" doc:"In a command: server code within a run sends it, which may call every tool and write every message."`
}

// May reports whether the rights include a capability.
func (r *Rights) May(what Capability) bool { return r == nil || slices.Contains(r.Can, what) }

// Reach reports whether the rights include a thread, which belongs to a user.
func (r *Rights) Reach(thread, user string) bool {
	return r == nil || !r.None && (r.User == "" || r.User == user) && (len(r.Threads) == 0 || slices.Contains(r.Threads, thread))
}

// Scoped reports whether the rights are for some threads only.
func (r *Rights) Scoped() bool { return r != nil && (r.None || r.User != "" || len(r.Threads) > 0) }

// Recorded returns the rights as events record them.
func (r *Rights) Recorded() *Rights {
	if r == nil || !r.Code {
		return r
	}
	recorded := *r
	recorded.Code = false
	return &recorded
}

// Intersect returns what both rights include, as events record them.
func (r *Rights) Intersect(o *Rights) *Rights {
	switch {
	case r == nil:
		return o.Recorded()
	case o == nil:
		return r.Recorded()
	}
	both := &Rights{User: r.User, Threads: r.Threads, None: r.None || o.None || r.User != "" && o.User != "" && r.User != o.User}
	if both.User == "" {
		both.User = o.User
	}
	if len(r.Threads) == 0 {
		both.Threads = o.Threads
	} else if len(o.Threads) > 0 {
		both.Threads = shared(r.Threads, o.Threads)
		both.None = both.None || len(both.Threads) == 0
	}
	if both.None {
		both.User, both.Threads = "", nil
	}
	both.Can = shared(r.Can, o.Can)
	return both
}

// Equal reports whether two rights are the same.
func (r *Rights) Equal(o *Rights) bool {
	if r == nil || o == nil {
		return r == o
	}
	return r.User == o.User && r.None == o.None && r.Code == o.Code && slices.Equal(r.Threads, o.Threads) && slices.Equal(r.Can, o.Can)
}

// shared returns the elements of a that b has, too.
func shared[T comparable](a, b []T) (both []T) {
	for _, v := range a {
		if slices.Contains(b, v) {
			both = append(both, v)
		}
	}
	return both
}
