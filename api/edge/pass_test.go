package edge

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/natstest"
)

// credentials is an Authenticator some of whose credentials have ended.
type credentials struct {
	mu    sync.Mutex
	ended map[string]bool // by subject
}

func (c *credentials) Authenticate(*http.Request) (Principal, error) {
	return Principal{}, errors.New("no request is made")
}

func (c *credentials) Resume(_ context.Context, p Principal) (Principal, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended[p.Subject] {
		return Principal{}, events.Errorf(events.Unauthorized, "the credential has ended")
	}
	return p, nil
}

func (c *credentials) end(subject string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended[subject] = true
}

// vault is the bucket of tickets and sessions on a real server, and edges that use it.
type vault struct {
	*testing.T
	conn        *nats.Conn
	stream      jetstream.Stream
	credentials *credentials
}

func newVault(t *testing.T) *vault {
	t.Helper()
	v := &vault{T: t, conn: natstest.Connect(t, natstest.Start(t)), credentials: &credentials{ended: map[string]bool{}}}
	js, err := jetstream.New(v.conn)
	v.must(err)
	v.stream, err = js.CreateStream(t.Context(), jetstream.StreamConfig{ // as package assets has it
		Name: "KV_sessions", Subjects: []string{"$KV.sessions.>"}, MaxMsgsPerSubject: 1, Discard: jetstream.DiscardNew,
		AllowDirect: true, AllowRollup: true, DenyDelete: true, AllowMsgTTL: true,
	})
	v.must(err)
	return v
}

func (v *vault) must(err error) {
	v.Helper()
	if err != nil {
		v.Fatal(err)
	}
}

// edge returns an edge whose credentials have ten passes, and tenants a hundred.
func (v *vault) edge(o Options) *Edge {
	v.Helper()
	o.Conn, o.Auth = v.conn, v.credentials
	e, err := New(o)
	v.must(err)
	for _, p := range []*passes{&e.tickets, &e.sessions} {
		p.ofCredential, p.ofTenant = 10, 100
	}
	return e
}

func (v *vault) add(p *passes, tenant, subject string) string {
	v.Helper()
	token, _, err := p.add(v.Context(), Principal{Tenant: tenant, Subject: subject, Roles: []string{"publisher"}})
	v.must(err)
	return token
}

// stands reports whether a token stands for its credential.
func (v *vault) stands(p *passes, token string) bool {
	v.Helper()
	who, err := p.find(v.Context(), token)
	if err != nil && !errors.Is(err, errNoPass) {
		v.Fatal(err)
	}
	return err == nil && who.Tenant != ""
}

// keys returns how many passes of a tenant are stored.
func (v *vault) keys(tenant string) int {
	v.Helper()
	info, err := v.stream.Info(v.Context(), jetstream.WithSubjectFilter("$KV.sessions.*.*."+tenant+".*"))
	v.must(err)
	return len(info.State.Subjects)
}

// A session counts at every edge, also when the one that made it has gone, until it is signed out
// anywhere, its credential ends, or its time is over. Its secret is stored nowhere.
func TestPasses_OutliveTheirEdge(t *testing.T) {
	v := newVault(t)
	first, second := v.edge(Options{}), v.edge(Options{})
	one, two, three := v.add(&first.sessions, "acme", "key:1"), v.add(&first.sessions, "acme", "key:1"), v.add(&first.sessions, "acme", "key:2")
	first.Close()
	for _, token := range []string{one, two, three} {
		if !v.stands(&second.sessions, token) {
			t.Errorf("the session %.20q does not count at another edge", token)
		}
		if token = token[:len(token)-1] + "x"; v.stands(&second.sessions, token) {
			t.Errorf("another secret counts")
		}
	}
	for what, p := range map[string]*passes{
		"a session as a ticket": &second.tickets, "at a gateway": &v.edge(Options{Realm: GatewayRealm}).sessions, "where the tenant is not served": &v.edge(Options{Serves: []string{"globex"}}).sessions,
	} {
		if v.stands(p, one) {
			t.Errorf("it counts %s", what)
		}
	}
	v.must(second.sessions.remove(t.Context(), one))
	v.credentials.end("key:2")
	if v.stands(&second.sessions, one) || v.stands(&second.sessions, three) || !v.stands(&second.sessions, two) {
		t.Error("a session that was signed out, or whose credential has ended, counts; or another does not")
	}
	_, _, secret := cut(two)
	for seq := uint64(1); seq <= 3; seq++ {
		if m, err := v.stream.GetMsg(t.Context(), seq); err == nil && bytes.Contains(fmt.Append(m.Data, m.Subject, m.Header), []byte(secret)) {
			t.Errorf("message %d has the secret of a session", seq)
		}
	}
	short := passes{edge: second, kind: "session", lasts: time.Second, ofCredential: 10, ofTenant: 100}
	last := v.add(&short, "globex", "key:3")
	for v.keys("globex") > 0 { // the server removes it
	}
	if v.stands(&second.sessions, last) {
		t.Error("a session counts after its time")
	}
}

// cut returns the parts of a token.
func cut(token string) (tenant, number, secret string) {
	parts := strings.Split(token, ".")
	return parts[0], parts[1], parts[2]
}

// A ticket is taken once, however many edges are shown it at the same time.
func TestPasses_TicketsAreForOneUse(t *testing.T) {
	v := newVault(t)
	edges := []*Edge{v.edge(Options{}), v.edge(Options{}), v.edge(Options{})}
	for range 10 {
		ticket := v.add(&edges[0].tickets, "acme", "key:1")
		taken := make(chan bool, 6)
		for i := range cap(taken) {
			go func() {
				_, err := edges[i%len(edges)].tickets.find(t.Context(), ticket)
				taken <- err == nil
			}()
		}
		n := 0
		for range cap(taken) {
			if <-taken {
				n++
			}
		}
		if n != 1 {
			t.Fatalf("a ticket was taken %d times", n)
		}
	}
}

// A key that signs in again and again ends its own sessions, a tenant with many credentials reaches a
// limit of its own, and others sign in as before. What has ended makes room.
func TestPasses_Floods(t *testing.T) {
	v := newVault(t)
	p := &v.edge(Options{}).sessions
	mine, colleague := v.add(p, "acme", "key:1"), v.add(p, "evil", "key:0")
	last := ""
	for range 50 {
		last = v.add(p, "evil", "key:1")
	}
	if !v.stands(p, last) || !v.stands(p, colleague) || !v.stands(p, mine) {
		t.Error("a flood ends the newest session of its key, or another credential's")
	}
	if n := v.keys("evil"); n > p.ofCredential+1 {
		t.Errorf("a credential and a colleague have %d sessions", n)
	}
	refused := false
	for i := 2; !refused && i < 1000; i++ {
		_, _, err := p.add(t.Context(), Principal{Tenant: "evil", Subject: fmt.Sprint("key:", i)})
		if refused = events.HasCode(err, events.QueueFull); err != nil && !refused {
			t.Fatal(err)
		}
	}
	if n := v.keys("evil"); n > p.ofTenant || !refused {
		t.Errorf("a tenant has %d sessions; one more was refused: %t", n, refused)
	}
	if !v.stands(p, colleague) || !v.stands(p, mine) || !v.stands(p, v.add(p, "acme", "key:2")) {
		t.Error("a tenant at its limit ends the sessions of others")
	}
	for i := range 1000 { // all but the colleague's
		if i > 0 {
			v.credentials.end(fmt.Sprint("key:", i))
		}
	}
	for i := range 50 {
		subject := fmt.Sprint("new:", i)
		v.add(p, "evil", subject) // or the sessions of credentials that have ended take room
		v.credentials.end(subject)
	}
	if !v.stands(p, colleague) {
		t.Error("what makes room is another credential's session, which has not ended")
	}
}

// While the bucket cannot be read, a session is unavailable, and not signed out.
func TestPasses_Unavailable(t *testing.T) {
	v := newVault(t)
	e := v.edge(Options{})
	token := v.add(&e.sessions, "acme", "key:1")
	v.conn.Close()
	if _, err := e.sessions.find(t.Context(), token); !events.HasCode(err, events.Unavailable) {
		t.Errorf("reading: %v", err)
	}
	if _, _, err := e.sessions.add(t.Context(), Principal{Tenant: "acme"}); !events.HasCode(err, events.Unavailable) {
		t.Errorf("writing: %v", err)
	}
	if err := e.sessions.remove(t.Context(), token); !events.HasCode(err, events.Unavailable) {
		t.Errorf("removing: %v", err)
	}
}
