package edge

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/skein-threads/skein/events"
)

// The client of a link sends one query, and nothing else.
func TestLinkGuard_PermitsOneQuery(t *testing.T) {
	n := events.DefaultNames()
	g := linkGuard{n}
	sent := ""
	try := func(subject string) error {
		_, err := g.Command(t.Context(), subject, &events.Request{}, func() (*events.Reply, error) {
			sent = subject
			return nil, nil
		})
		if err == nil {
			t.Errorf("%s: a link sends a command", subject)
		}
		_, err = g.Request(t.Context(), subject, nil, func([]byte) ([]byte, error) {
			sent = subject
			return nil, nil
		})
		return err
	}
	var subjects []string
	for _, q := range events.Queries() {
		subjects = append(subjects, n.Query("acme", q.Name))
	}
	for _, c := range events.Commands() {
		subjects = append(subjects, n.Command("acme", c.Name), n.Submit("acme", c.Name))
	}
	subjects = append(subjects, n.File("acme", "content.get"), n.File("acme", "thread.shared"), n.Command("acme", "thread.shared"), "acme.query.thread.shared")
	open := n.Query("acme", "thread.shared")
	for _, subject := range subjects {
		sent = ""
		if err := try(subject); (err == nil) != (subject == open) || (sent != "") != (subject == open) {
			t.Errorf("%s: sent %q, %v", subject, sent, err)
		}
	}
	shown, err := g.Receive(t.Context(), "skein.timeline.acme.T.thread.created")
	if shown || err == nil || g.Publish(t.Context(), "skein.live.acme.T.x") == nil || g.Subscribe(t.Context(), "skein.timeline.acme.>") == nil {
		t.Error("a link publishes or follows")
	}
}

// Requests with links have a limit for each tenant and one together, and take nothing of those
// that have a credential.
func TestLink_IsLimited(t *testing.T) {
	e := &Edge{meters: newMeters(Limits{}, Limits{}, 0, nil), links: linkMeters(0)}
	now := time.Now().Add(time.Hour) // no time passes meanwhile
	drain := func(tenant string) int {
		for n := 0; ; n++ {
			place, err := e.links.admit(Principal{Subject: tenant}, false, false, now)
			if busy := (*busyError)(nil); errors.As(err, &busy) {
				return n
			} else if err != nil {
				t.Fatal(err)
			}
			place.release()
		}
	}
	if n := drain("acme"); n != 100 {
		t.Errorf("%d requests of a tenant at once, want 100", n)
	}
	var refused error
	l := linkRoute{e, func(http.ResponseWriter, *http.Request, *Caller) error { t.Error("it was answered"); return nil }, func(_ http.ResponseWriter, _ *http.Request, err error) { refused = err }}
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.SetPathValue("tenant", "acme")
	l.ServeHTTP(httptest.NewRecorder(), r)
	if events.AsError(refused).Code != events.QueueFull {
		t.Errorf("a request over the limit: %v", refused)
	}
	total := 100
	for i := range 20 {
		total += drain("t" + string(rune('a'+i)))
	}
	if total != 1000 {
		t.Errorf("%d requests of all tenants at once, want 1000", total)
	}
	if _, err := e.meters.admit(Principal{Tenant: "acme", Subject: "key:1"}, false, false, now); err != nil {
		t.Errorf("a key of the tenant: %v", err)
	}
}

// A link of a tenant that this edge does not serve is told nothing, and asks nothing.
func TestLink_OtherTenants(t *testing.T) {
	e := &Edge{opts: Options{Serves: []string{"acme"}}, links: linkMeters(0)}
	for _, tenant := range []string{"globex", "", "*", "a.b", ">"} {
		var refused error
		now, free := time.Now(), 0
		l := linkRoute{e, func(http.ResponseWriter, *http.Request, *Caller) error { t.Error("it was answered"); return nil }, func(_ http.ResponseWriter, _ *http.Request, err error) { refused = err }}
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.SetPathValue("tenant", tenant)
		l.ServeHTTP(httptest.NewRecorder(), r)
		for {
			place, err := e.links.admit(Principal{Subject: tenant}, false, false, now)
			if err != nil {
				break
			}
			place.release()
			free++
		}
		if events.AsError(refused).Code != events.NotFound || free != 100 {
			t.Errorf("tenant %q: %v", tenant, refused)
		}
	}
}
