package eventtext

import (
	"fmt"

	"github.com/skein-threads/skein/events"
)

// happenedOutside describes in a few words what happened outside the conversation: files, effects
// and shares.
func happenedOutside(e *events.Event) string {
	switch d := e.Data.(type) {
	case events.FileWritten:
		return Brief(fmt.Sprintf("%s, %d bytes of %s", d.Path, d.Size, d.MimeType), Width)
	case events.FileDeleted:
		return Brief(d.Path, Width)
	case events.DirectoryCreated:
		return Brief(d.Path, Width)
	case events.DirectoryRemoved:
		return Brief(d.Path, Width)
	case events.EffectScheduled:
		if d.Cron != "" {
			return Brief(d.Name+", by cron "+d.Cron, Width)
		}
		return Brief(d.Name+" at "+d.ScheduledAt, Width)
	case events.EffectCancelled:
		return Brief(ShortID(e.Subject)+" "+d.Reason, Width)
	case events.EffectStarted:
		return fmt.Sprintf("%s, attempt %d", ShortID(e.Subject), d.Attempt)
	case events.EffectCompleted:
		return ShortID(e.Subject)
	case events.EffectFailed:
		return Brief(fmt.Sprintf("%s, attempt %d: %s", ShortID(e.Subject), d.Attempt, d.ErrorText), Width)
	case events.ShareCreated:
		if d.ExpiresAt != "" {
			return ShortID(d.ID) + " until " + d.ExpiresAt
		}
		return ShortID(d.ID)
	case events.ShareRevoked:
		return ShortID(d.ID)
	}
	return ""
}
