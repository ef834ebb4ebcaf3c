package access

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/skein-threads/skein/events"
)

// The users of the project's nats.conf may do exactly what those of the same
// roles may that are made here.
func TestConfSaysTheSame(t *testing.T) {
	users := map[string]User{
		"publisher":  {Tenant: "acme", Roles: []Role{Publisher}},
		"subscriber": {Tenant: "acme", Roles: []Role{Subscriber}},
		"worker":     {Roles: []Role{Worker}, Reactors: []string{"shout"}, Tools: []string{"add"}, Effects: []string{"remind"}},
		"gateway":    {Roles: []Role{Gateway}},
		"auditor":    {Roles: []Role{Auditor}},
	}
	for name := range users {
		t.Setenv("SKEIN_"+strings.ToUpper(name)+"_PASSWORD", "secret")
	}
	t.Setenv("SKEIN_NATS_PASSWORD", "secret")
	o, err := server.ProcessConfigFile(filepath.Join("..", "..", "nats.conf"))
	if err != nil {
		t.Fatal(err)
	}
	accounts := map[string]string{"publisher": "ACME", "subscriber": "ACME", "worker": "WORKERS", "gateway": "GATEWAYS", "auditor": "AUDIT", "skein": "SKEIN"}
	for _, got := range o.Users {
		if got.Account.Name != accounts[got.Username] {
			t.Errorf("%s is in %s", got.Username, got.Account.Name)
		}
		u, ok := users[got.Username]
		if !ok {
			if got.Username != "skein" || got.Permissions != nil {
				t.Errorf("%s is not of a role", got.Username)
			}
			continue
		}
		delete(users, got.Username)
		u.Name = got.Username
		want, err := permissions(events.DefaultNames(), u)
		if err != nil {
			t.Fatal(err)
		}
		p := got.Permissions
		if pub := slices.Sorted(slices.Values(p.Publish.Allow)); !slices.Equal(pub, want.Pub.Allow) || !slices.Equal(p.Publish.Deny, want.Pub.Deny) {
			t.Errorf("%s may publish %v but not %v, want %v, %v", u.Name, pub, p.Publish.Deny, want.Pub.Allow, want.Pub.Deny)
		}
		if sub := slices.Sorted(slices.Values(p.Subscribe.Allow)); !slices.Equal(sub, want.Sub.Allow) || len(p.Subscribe.Deny) != 0 {
			t.Errorf("%s may subscribe to %v, want %v", u.Name, sub, want.Sub.Allow)
		}
		if (p.Response == nil) != (want.Resp == nil) || p.Response != nil && (p.Response.MaxMsgs != want.Resp.MaxMsgs || p.Response.Expires != want.Resp.Expires) {
			t.Errorf("%s may answer %+v, want %+v", u.Name, p.Response, want.Resp)
		}
	}
	if len(users) > 0 {
		t.Errorf("nats.conf has no %v", users)
	}
}
