package edge

import (
	"context"
	"errors"
	"io"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/skein-threads/skein/events"
)

// A request that would wait for longer than a second is refused, and takes no turn.
func TestMeters_PaceIsBounded(t *testing.T) {
	m := newMeters(Limits{}, Limits{}, 10, nil)
	ended, end := context.WithCancelCause(t.Context())
	end(errCredentialEnded) // so that nothing waits
	now := time.Now()
	m.turns.Charge("quiet", 1, now)
	m.turns.Charge("loud", 10_000, now)
	if err := m.begin(ended, "loud", 1); !errors.Is(err, errCredentialEnded) {
		t.Errorf("whose credential ends while it waits: %v", err)
	}
	due := m.turns.Behind("loud", now)
	var refusal *busyError
	if err := m.begin(t.Context(), "loud", 1); !errors.As(err, &refusal) || refusal.after < paceMost {
		t.Errorf("%v", err)
	}
	if m.turns.Behind("loud", now) != due {
		t.Error("who is refused has taken a turn")
	}
	if _, err := m.weigh(ended, "quiet", 1<<20); !errors.Is(err, errCredentialEnded) {
		t.Errorf("a body of 1 MB does not wait: %v", err)
	}
	if err := m.weighSent(ended, "loud", 16<<10); err != nil {
		t.Errorf("a stream waits for requests: %v", err)
	}
	if unlimited := newMeters(Limits{}, Limits{Rate: -1}, 10, nil); unlimited.turns.Charge("a", 1, now) > 0 || unlimited.turns.Charge("b", 1e6, now) > 0 {
		t.Error("a tenant without a limit of requests waits")
	}
}

// However many credentials come, what one has spent is remembered until it has earned it again, and
// those that use nothing are forgotten then.
func TestMeters_SpentIsRemembered(t *testing.T) {
	m, now := newMeters(Limits{Rate: 1}, Limits{Rate: -1}, -1, nil), time.Unix(1000, 0)
	admit := func(subject string) error {
		a, err := m.admit(Principal{Tenant: "acme", Subject: subject}, false, false, now)
		if err == nil {
			a.release()
		}
		return err
	}
	if err := errors.Join(admit("spent"), admit("spent")); err != nil {
		t.Fatal(err)
	}
	const many = 10_000 // more than are remembered
	for n := range 2 * many {
		if err := admit(strconv.Itoa(n)); err != nil {
			t.Fatal(err)
		}
	}
	if err := admit("spent"); errorCode(err) != events.QueueFull {
		t.Errorf("a credential that has spent its rate is admitted again: %v", err)
	}
	now = now.Add(time.Minute)
	for n := range many {
		if err := admit("new " + strconv.Itoa(n)); err != nil {
			t.Fatal(err)
		}
		now = now.Add(time.Minute)
	}
	if err := admit("spent"); err != nil {
		t.Errorf("a credential that has earned its rate: %v", err)
	}
}

// A body is paced while it is read, not when it is whole; in small pieces it counts as requests,
// however few bytes it has.
func TestPacedBody_WaitsWhileItIsRead(t *testing.T) {
	m := newMeters(Limits{}, Limits{}, 1000, nil)
	ended, end := context.WithCancelCause(t.Context())
	end(errCredentialEnded) // so that nothing waits
	read := func(from io.Reader) (int64, error) {
		m.turns.Charge("quiet", 1, time.Now())
		body := &pacedBody{Reader: from, ctx: ended, meters: m, tenant: "loud"}
		return io.Copy(io.Discard, struct{ io.Reader }{body})
	}
	m.turns.Charge("loud", 1, time.Now())
	if n, err := read(strings.NewReader(strings.Repeat("x", 1<<20))); err != nil {
		t.Errorf("a body within the burst, after %d bytes: %v", n, err)
	}
	if n, err := read(strings.NewReader(strings.Repeat("x", 32<<20))); !errors.Is(err, errCredentialEnded) || n > 3<<20 {
		t.Errorf("a body beyond the burst was read for %d bytes: %v", n, err)
	}
	m = newMeters(Limits{}, Limits{}, 10, nil)
	m.turns.Charge("loud", 1, time.Now())
	if _, err := read(iotest.OneByteReader(strings.NewReader(strings.Repeat("x", 200)))); !errors.Is(err, errCredentialEnded) {
		t.Errorf("a body in small pieces did not wait: %v", err)
	}
}

// Bodies of a tenant count while they are read and used, beyond the first 64 KiB of each.
func TestAdmission_BodiesInFlight(t *testing.T) {
	m := newMeters(Limits{}, Limits{}, -1, nil)
	admit := func(tenant string) *admission {
		a, err := m.admit(Principal{Tenant: tenant, Subject: "key:1"}, false, false, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	var held []*admission
	for range mostBodies / MaxBody {
		a := admit("acme")
		if held = append(held, a); a.hold(MaxBody) != nil {
			t.Fatal("within the limit")
		}
	}
	large, small, other := admit("acme"), admit("acme"), admit("globex")
	for range 2 {
		if err := large.hold(MaxBody); errorCode(err) != events.QueueFull {
			t.Errorf("one too many: %v", err)
		}
		if err := errors.Join(small.hold(smallBody), other.hold(MaxBody)); err != nil {
			t.Errorf("a small one, and one of another tenant: %v", err)
		}
	}
	if _, err := small.readAll(strings.NewReader(strings.Repeat("x", 2*MaxBody)), -1, MaxBody); errorCode(err) != events.QueueFull {
		t.Errorf("one whose length was not announced: %v", err)
	}
	held[0].drop()
	held[0].release()
	if err := large.hold(MaxBody); err != nil {
		t.Errorf("in the place of one that was used: %v", err)
	}
	for _, a := range append(held[1:], large, small, other) {
		a.release()
	}
	for _, tenant := range []string{"acme", "globex"} {
		if err := admit(tenant).hold(mostBodies + smallBody); err != nil {
			t.Errorf("bytes of %s are left: %v", tenant, err)
		}
	}
}

func errorCode(err error) events.Code {
	var e *events.Error
	if !errors.As(err, &e) {
		return ""
	}
	return e.Code
}

// What is deeper than a body may be is found without a decoder; quotes and escapes are not.
func TestBody_TooDeep(t *testing.T) {
	for what, c := range map[string]struct {
		text string
		want bool
	}{
		"at the limit": {strings.Repeat("[", maxDepth) + strings.Repeat("]", maxDepth), false}, "beyond it": {strings.Repeat(`{"a":[`, maxDepth/2) + `{`, true},
		"one after another": {strings.Repeat("[]{}", 1000), false}, "in a text": {`["` + strings.Repeat("[", 1000) + `"]`, false},
		"after a quote in a text": {`["\"` + strings.Repeat("[", 1000) + `"]`, false}, "after a text": {`["\\",` + strings.Repeat("[", 1000), true},
	} {
		if got := tooDeep([]byte(c.text)); got != c.want {
			t.Errorf("%s: %v", what, got)
		}
	}
}
