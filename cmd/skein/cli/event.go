package cli

import (
	"fmt"
	"strings"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/eventtext"
)

// EventLine formats an event on one line.
func EventLine(e *events.Event, colour bool) string {
	at := e.Time.Go().Local().Format("15:04:05.000")
	name := fmt.Sprintf("%-24s", e.Type)
	thread := eventtext.ShortID(e.ThreadID)
	if colour {
		name = hue(e.Type.Entity()) + name + "\x1b[0m"
		thread = "\x1b[2m" + thread + "\x1b[0m"
	}
	return strings.TrimRight(at+"  "+thread+"  "+name+" "+eventtext.Line(e), " ")
}

// hue returns the colour of an entity's events.
func hue(entity string) string {
	switch entity {
	case "item", "message":
		return "\x1b[32m"
	case "thread", "context", "state":
		return "\x1b[34m"
	case "execution", "step", "part", "chunk":
		return "\x1b[35m"
	case "command", "lifecycle":
		return "\x1b[31m"
	default:
		return "\x1b[36m"
	}
}
