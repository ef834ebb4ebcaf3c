package server_test

import (
	"testing"
	"time"

	"github.com/skein-threads/skein/eventlog"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/operator/access"
)

func anAudit(commits int64) events.Operation {
	return events.Operation{Kind: events.AuditOperation, StartedAt: events.TimeOf(time.Now()).ISO(), Commits: commits}
}

// Auditors and administrators report operations and read them, across accounts. Users of tenants,
// workers and gateways can do neither: not by the subjects, and not by the reply subject of a
// request that they may send.
func TestAccess_Operations(t *testing.T) {
	t.Parallel()
	g := startGuarded(t, access.InitOptions{}, append(everybody(), access.User{Name: "edge", Roles: []access.Role{access.Gateway}})...)
	for i, name := range []string{"eye", "root"} {
		nc, _ := g.plain("", name)
		if err := eventlog.ReportOperation(t.Context(), nc, events.DefaultNames(), anAudit(int64(i+1))); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		list, err := eventlog.ListOperations(t.Context(), nc, events.DefaultNames())
		if err != nil || len(list.Operations) != i+1 || list.Operations[0].Commits != int64(i+1) {
			t.Errorf("%s: %+v, %v", name, list, err)
		}
	}
	report := `{"kind":"audit","startedAt":"` + events.TimeOf(time.Now()).ISO() + `","tookMs":1}`
	for _, u := range []struct{ tenant, name string }{{"acme", "app"}, {"acme", "pub"}, {"globex", "app"}, {"", "shouter"}, {"", "edge"}} {
		nc, refused := g.plain(u.tenant, u.name)
		for _, subject := range []string{"skein.operation.report", "skein.operation.list"} {
			if err := nc.PublishRequest(subject, access.InboxOf(u.name)+".x", []byte(report)); err != nil {
				t.Fatal(err)
			}
			wantRefused(t, refused, subject)
		}
	}
	app, _ := g.plain("acme", "app")
	if err := app.PublishRequest("skein.query.acme.thread.list", "skein.operation.report", []byte(`{}`)); err != nil {
		t.Fatal(err)
	}
	if err := app.Flush(); err != nil {
		t.Fatal(err)
	}
	root, _ := g.plain("", "root")
	if list, err := eventlog.ListOperations(t.Context(), root, events.DefaultNames()); err != nil || len(list.Operations) != 2 {
		t.Errorf("%+v, %v", list, err)
	}
}
