package edge

import "github.com/skein-threads/skein/events"

// NamedActor returns the refusal of a request whose body names an actor: over HTTP that is the
// principal.
func NamedActor() error {
	return events.Invalid("/actor", "the actor of a request over HTTP is its principal; leave the field out")
}
