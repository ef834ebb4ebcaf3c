package events

import (
	"regexp"
	"unicode/utf8"
)

// LiveEvent is what emit sends to connected clients. It is not an event of the log: it is not
// stored, and clients that are not subscribed miss it.
type LiveEvent struct {
	Event    string `json:"event"`
	Data     JSON   `json:"data"` // any JSON
	ThreadID string `json:"threadId"`
	Time     string `json:"time"`    // when it was sent, UTC with six fraction digits
	Emitter  string `json:"emitter"` // one handle of one process
	N        int64  `json:"n"`       // its number among those of its emitter, from 1
}

// liveNameMax bounds the name of a live event, in characters.
const liveNameMax = 128

var (
	liveNamePattern  = regexp.MustCompile(`^[a-z][a-z0-9_]*$`)
	liveTokenPattern = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)
)

// CheckLiveName validates the name of a live event. proper reports whether it follows the
// convention: lower-case letters, digits and underscores.
func CheckLiveName(name string) (proper bool, err error) {
	if name == "" || !utf8.ValidString(name) || utf8.RuneCountInString(name) > liveNameMax {
		return false, Invalid("/event", "an event has a name of 1 to %d letters", liveNameMax)
	}
	return liveNamePattern.MatchString(name), nil
}

// Live returns the subject of a live event: skein.live.{tenant}.{thread}.{event}. A name that
// is not a subject token becomes the token _; the event itself has the name.
func (n Names) Live(tenant, thread, event string) string {
	if !liveTokenPattern.MatchString(event) {
		event = "_"
	}
	return n.Prefix + ".live." + tenant + "." + thread + "." + event
}

// AllLive returns the subject of all live events of a thread, or of every thread of the tenant
// if it is "*".
func (n Names) AllLive(tenant, thread string) string {
	return n.Prefix + ".live." + tenant + "." + thread + ".*"
}
