package console

import (
	"github.com/skein-threads/skein/console/page"
	"github.com/skein-threads/skein/events"
)

// stepReach is how many events are examined to find those of one commit.
const stepReach = 50

// nextStep returns the step that playing a thread shows after the current version: the next event,
// with those that were recorded together with it.
func nextStep(a *page.Ask) (*page.Step, error) {
	shown := a.Shown()
	list, err := eventsBetween(a, shown, min(shown+stepReach, a.Last), nil)
	if err != nil || len(list) < 2 {
		return nil, err
	}
	return stepOf(list), nil
}

// stepOf returns the step that begins with the first of some events.
func stepOf(list []events.Event) *page.Step {
	first, next := list[0], list[1]
	s := &page.Step{Version: next.Version, Wait: max(0, int64(next.Time-first.Time)/1000)}
	for _, e := range list[2:] {
		if e.Time != next.Time {
			break
		}
		s.Version = e.Version
	}
	return s
}
