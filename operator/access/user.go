package access

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/excerpt"
)

// User is somebody who may connect.
type User struct {
	Name     string     `json:"name"`               // unique among the users of its account that may still connect
	Tenant   string     `json:"tenant,omitzero"`    // empty for roles of no tenant
	Roles    []Role     `json:"roles"`              // at least one
	Reactors []string   `json:"reactors,omitempty"` // that a worker is
	Tools    []string   `json:"tools,omitempty"`    // that a worker is
	Effects  []string   `json:"effects,omitempty"`  // that a worker runs
	Serves   []string   `json:"serves,omitempty"`   // the tenants that a gateway serves; default all
	Key      string     `json:"key"`                // the public key
	Issued   time.Time  `json:"issued"`
	Expires  *time.Time `json:"expires,omitzero"` // nil: never
	Revoked  *time.Time `json:"revoked,omitzero"` // nil: not
}

// State says whether the user may connect: active, expired or revoked.
func (u User) State(now time.Time) string {
	switch {
	case u.Revoked != nil:
		return "revoked"
	case u.Expires != nil && !now.Before(*u.Expires):
		return "expired"
	}
	return "active"
}

// serves returns the tenants that a gateway serves, or what is any tenant in a subject.
func (u User) serves() []string {
	if len(u.Serves) == 0 {
		return []string{"*"}
	}
	return u.Serves
}

// keysOf returns the tenants for whose keys a gateway may ask; empty is all.
func (u User) keysOf() []string {
	if len(u.Serves) == 0 {
		return []string{""}
	}
	return u.Serves
}

// check says what is wrong with a user who is to be added.
func (u User) check(n events.Names, now time.Time) error {
	refuse := func(format string, args ...any) error { return &BadUserError{fmt.Sprintf(format, args...)} }
	switch {
	case !events.ValidTenant(u.Name): // the same letters: one token of a subject
		return refuse("the name %q is not 1 to 64 letters, digits, dashes and underscores", named(u.Name))
	case len(u.Roles) == 0:
		return refuse("a role is needed: one of %v", Roles())
	case u.Expires != nil && !u.Expires.After(now):
		return refuse("it would expire at %s, which is past", u.Expires.Format(time.RFC3339))
	}
	for _, r := range u.Roles {
		switch {
		case !slices.Contains(Roles(), r):
			return refuse("there is no role %q; give one of %v", named(string(r)), Roles())
		case len(u.Roles) > 1 && !r.ofTenant():
			return refuse("the role %s stands alone; add another user for the others", r)
		case r.ofTenant() && u.Tenant == "":
			return refuse("the role %s belongs to a tenant: give one", r)
		case r.ofTenant() && !events.ValidTenant(u.Tenant):
			return badTenant(u.Tenant)
		case !r.ofTenant() && u.Tenant != "":
			return refuse("the role %s belongs to no tenant: it sees all of them", r)
		}
	}
	switch worker := u.Roles[0] == Worker; {
	case worker && len(u.Reactors)+len(u.Tools)+len(u.Effects) == 0:
		return refuse("a worker is a reactor, a tool or an effect: name it")
	case !worker && len(u.Reactors)+len(u.Tools)+len(u.Effects) > 0:
		return refuse("only a worker is a reactor, a tool or an effect")
	}
	if len(u.Serves) > 0 && u.Roles[0] != Gateway {
		return refuse("only a gateway serves tenants that are listed")
	}
	for _, tenant := range u.Serves {
		if !events.ValidTenant(tenant) {
			return badTenant(tenant)
		}
	}
	_, err := permissions(n, u)
	return err
}

// File returns the path of a user's credentials, relative to the folder.
func (u User) File() string { return credsDir + "/" + u.file() }

func (u User) file() string {
	if u.Name == skeinUser && len(u.Roles) > 0 && u.Roles[0] == Administrator {
		return filepath.Base(SkeinCreds) // Skein's own
	}
	parts := []string{u.Name, "creds"}
	switch {
	case u.Tenant != "":
		parts = append([]string{"tenant", u.Tenant}, parts...)
	case len(u.Roles) > 0:
		parts = append([]string{string(u.Roles[0])}, parts...)
	}
	return strings.Join(parts, ".")
}

// badTenant refuses a tenant that is not valid.
func badTenant(tenant string) error {
	return &BadUserError{events.AsError(events.CheckTenant("", tenant)).Message}
}

// named shortens what an error tells of what was given.
func named(s string) string { return excerpt.Of(s, 80) }
