package thread

import (
	"strings"
	"testing"
	"time"

	"github.com/skein-threads/skein/events"
)

// share shares the story's thread until a time, for ever if it is empty.
func (k *story) share(until string) ([]events.Event, error) {
	return k.try(k.command(events.ShareThread{ExpiresAt: until}))
}

// A thread has so many shares at a time; those that have ended or were revoked do not count.
func TestShares_InForce(t *testing.T) {
	k := newStory(t)
	k.do(events.CreateThread{})
	in := func(d time.Duration) string { return (k.now + 1000 + events.Time(d.Microseconds())).String() }
	for name, until := range map[string]string{"no time": "tomorrow", "the past": in(-time.Second), "now": in(0)} {
		if _, err := k.share(until); events.AsError(err).Code != events.InvalidRequest {
			t.Errorf("a share until %s: %v", name, err)
		}
	}
	unasked := k.command(events.ShareThread{})
	unasked.ShareKey = nil
	if _, err := k.try(unasked); err == nil || !strings.Contains(err.Error(), "cannot be submitted") {
		t.Errorf("a share that nobody learns the token of: %v", err)
	}
	var ids []string
	for n := range events.MaxShares {
		until := ""
		if n == 0 {
			until = in(time.Hour)
		}
		made, err := k.share(until)
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, made[0].Data.(events.ShareCreated).ID)
	}
	if _, err := k.share(""); events.AsError(err).Code != events.QueueFull {
		t.Errorf("one share more: %v", err)
	}
	k.pass(2 * time.Hour)
	made, err := k.share("")
	if err != nil {
		t.Fatalf("one share in the place of one that has ended: %v", err)
	}
	if _, err := k.share(""); events.AsError(err).Code != events.QueueFull {
		t.Errorf("one share more, again: %v", err)
	}
	k.do(events.UnshareThread{ShareID: ids[1]})
	if k.state.placeOfShare(ids[1]) >= 0 || k.state.placeOfShare(ids[2]) < 0 || len(k.state.Shares) != events.MaxShares {
		t.Errorf("after one was revoked there are %d shares", len(k.state.Shares))
	}
	again := made[0].Data.(events.ShareCreated)
	first := k.state.Shares[0].ID
	holdsBut(t, k, k.after(events.ShareCreatedType, "shr_9", "", events.ShareCreated{ID: "shr_9", Digest: again.Digest}),
		anotherSubject("its subject should be"),
		forgery{"a share that is there", func(e *events.Event) {
			e.Subject, e.Data = first, events.ShareCreated{ID: first, Digest: again.Digest}
		}, "exists already"},
		the("no digest", "has no digest", func(d *events.ShareCreated) { d.Digest = "" }))
	holdsBut(t, k, k.after(events.ShareRevokedType, first, "", events.ShareRevoked{ID: first}),
		forgery{"a share that is not there", func(e *events.Event) { e.Subject, e.Data = "shr_9", events.ShareRevoked{ID: "shr_9"} }, "there is no share"})
}
