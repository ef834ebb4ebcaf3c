package events

import (
	"regexp"
	"unicode/utf8"
)

// LiveEvent is what emit sends to connected clients. It is no event of
// the log: nobody keeps it, and who does not listen has missed it.
type LiveEvent struct {
	Event    string `json:"event"`
	Data     JSON   `json:"data"` // any JSON
	ThreadID string `json:"threadId"`
	Time     string `json:"time"`    // when it was sent, UTC with six fraction digits
	Emitter  string `json:"emitter"` // who sent it: one handle of one process
	N        int64  `json:"n"`       // its place among what that emitter sent, from 1
}

// liveNameMax is how long the name of a live event may be, in letters.
const liveNameMax = 128

var (
	liveNamePattern  = regexp.MustCompile(`^[a-z][a-z0-9_]*$`)
	liveTokenPattern = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)
)

// CheckLiveName says whether a name may be that of a live event. proper reports
// whether it is as it should be: lower-case letters, digits and underscores.
func CheckLiveName(name string) (proper bool, err error) {
	if name == "" || !utf8.ValidString(name) || utf8.RuneCountInString(name) > liveNameMax {
		return false, Invalid("/event", "an event has a name of 1 to %d letters", liveNameMax)
	}
	return liveNamePattern.MatchString(name), nil
}

// Live gives the subject of a live event: skein.live.{tenant}.{thread}.{event}.
// A name that is no token of a subject gives the token _; the event itself has
// the name.
func (n Names) Live(tenant, thread, event string) string {
	if !liveTokenPattern.MatchString(event) {
		event = "_"
	}
	return n.Prefix + ".live." + tenant + "." + thread + "." + event
}

// AllLive gives the subject of all live events of a thread, or of every thread of
// the tenant if it is "*".
func (n Names) AllLive(tenant, thread string) string {
	return n.Prefix + ".live." + tenant + "." + thread + ".*"
}
