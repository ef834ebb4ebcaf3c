package edge

import (
	"errors"
	"testing"

	"github.com/skein-threads/skein/events"
)

func TestBeginOnce(t *testing.T) {
	conflict := events.Errorf(events.VersionConflict, "expected 3, have 5")
	other := errors.New("no answer")
	for name, c := range map[string]struct {
		fails func(try int) error
		tries int
		want  error
	}{
		"begins":             {func(int) error { return nil }, 1, nil},
		"begins later":       {func(try int) error { return map[bool]error{true: conflict}[try < 3] }, 3, nil},
		"another error":      {func(int) error { return other }, 1, other},
		"deleted":            {func(int) error { return events.TakenByDeleted("thr_1") }, 1, &events.Error{Code: events.NotFound}},
		"another's thread":   {func(int) error { return events.Taken("thread", "thr_1") }, 4, &events.Error{Code: events.NotFound}},
		"conflicts each try": {func(int) error { return conflict }, 4, conflict},
	} {
		tried := 0
		begun, err := BeginOnce("key", "context", "c", 4, func(try int) (int, error) { tried++; return try, c.fails(try) })
		if tried != c.tries || !errors.Is(err, c.want) || err == nil && begun != c.tries {
			t.Errorf("%s: %d, %v after %d tries; want %d, %v", name, begun, err, tried, c.tries, c.want)
		}
	}
	var reused *statusError
	_, err := BeginOnce("key", "context", "c", 2, func(int) (int, error) { return 0, events.ReusedID("cmd_1") })
	if !errors.As(err, &reused) || reused.param != "key" {
		t.Errorf("a reused key: %v", err)
	}
}
