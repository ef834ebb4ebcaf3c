package server_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/operator/access"
)

// forbiddenPublishes are subjects on which no user, worker or auditor of a tenant may
// publish. The wildcards' places are filled with existing names.
func forbiddenPublishes() []string {
	return []string{
		// What only Skein writes.
		"skein.log.acme.T-1", "skein.timeline.acme.T-1.item.created", "skein.chunk.acme.T-1.exe_1", "skein.run.acme.exe_1",
		"skein.timer.acme.T-1.x", "skein.due.acme.T-1.x", "skein.cancel.x", "skein.peers", "skein.peer.x.cmd.acme.thread.create",
		"$KV.thread_threads.acme.T-1", "$KV.thread_leases.relay", "$KV.thread_effects.acme.T-1.x", "$KV.operations.audit", "$KV.sessions.serve.session.acme.1",
		"$O.thread_files.C.x", "$O.thread_files.M.x", "$O.thread_snapshots.C.x", "$O.thread_archive.C.x", "$O.thread_archive.M.x",
		// Of another tenant.
		"skein.cmd.globex.thread.create", "skein.query.globex.thread.list", "skein.submit.globex.thread.create",
		"skein.log.globex.T-1", "$KV.thread_threads.globex.T-1", "skein.live.globex.T-1",
		"skein.file.globex.content.get", "skein.file.globex.content.put", "skein.upload.globex.x",
		// Streams and consumers.
		"$JS.API.INFO", "$JS.API.STREAM.NAMES", "$JS.API.STREAM.LIST", "$JS.API.STREAM.CREATE.MINE", "$JS.API.STREAM.UPDATE.SKEIN_LOG",
		"$JS.API.STREAM.DELETE.SKEIN_LOG", "$JS.API.STREAM.PURGE.SKEIN_LOG", "$JS.API.STREAM.INFO.SKEIN_LOG",
		"$JS.API.STREAM.MSG.GET.SKEIN_LOG", "$JS.API.STREAM.MSG.DELETE.SKEIN_LOG", "$JS.API.STREAM.SNAPSHOT.SKEIN_LOG",
		"$JS.API.STREAM.RESTORE.SKEIN_LOG", "$JS.API.STREAM.LEADER.STEPDOWN.SKEIN_LOG",
		"$JS.API.DIRECT.GET.SKEIN_LOG", "$JS.API.DIRECT.GET.SKEIN_TIMELINE.skein.timeline.acme.T-1.item.created",
		"$JS.API.DIRECT.GET.SKEIN_CHUNKS", "$JS.API.DIRECT.GET.KV_thread_threads.$KV.thread_threads.globex.T-1",
		"$JS.API.CONSUMER.CREATE.SKEIN_TIMELINE", "$JS.API.CONSUMER.CREATE.SKEIN_TIMELINE.x",
		"$JS.API.CONSUMER.CREATE.SKEIN_TIMELINE.x.skein.timeline.acme.>", "$JS.API.CONSUMER.DURABLE.CREATE.SKEIN_TIMELINE.x",
		"$JS.API.CONSUMER.MSG.NEXT.SKEIN_TIMELINE.acme=x", "$JS.API.CONSUMER.INFO.SKEIN_TIMELINE.globex=x",
		"$JS.API.CONSUMER.DELETE.SKEIN_TIMELINE.globex=x", "$JS.API.CONSUMER.LIST.SKEIN_TIMELINE",
		"$JS.ACK.SKEIN_TIMELINE.globex=x.1.1.1.1.0", "$JS.FC.SKEIN_TIMELINE.x",
		// The server, and others' replies.
		"$SYS.REQ.SERVER.PING", "$SYS.REQ.ACCOUNT.PING.CONNZ", "$SYS.REQ.USER.INFO", "$SRV.PING", "$SRV.STOP.skein-commands",
		"_INBOX.other.1", "_INBOX.root.1", "_R_.x", "skein.reactor.shout", "skein.tool.add", "skein.effect.mail",
	}
}

// forbiddenSubscriptions are subjects to which none of them may subscribe.
func forbiddenSubscriptions() []string {
	return []string{
		">", "*", "*.>", "skein.>", "skein.*.>", "skein.log.>", "skein.log.acme.>", "skein.chunk.acme.>", "skein.run.>",
		"skein.timeline.>", "skein.timeline.*.>", "skein.timeline.globex.>", "skein.timeline.globex.T-1.item.created",
		"skein.cmd.>", "skein.cmd.acme.>", "skein.query.acme.>", "skein.submit.acme.>", "skein.cmd.globex.>",
		"skein.live.>", "skein.live.*.>", "skein.live.globex.>", "skein.live.globex.T-1", "skein.file.>", "skein.file.acme.>", "skein.file.globex.>",
		"skein.upload.>", "skein.upload.acme.>", "skein.upload.globex.>", "skein.effect.>", "skein.effect.other",
		"skein.due.>", "skein.timer.>", "$KV.>", "$O.>", "$JS.>", "$JS.API.>", "$JS.ACK.>", "$JS.EVENT.>", "$SYS.>", "$SRV.>",
		"_INBOX.>", "_INBOX.*", "_INBOX.other.>", "_INBOX.*.>", "_R_.>", "_GR_.>",
		"skein.reactor.>", "skein.reactor.shout", "skein.tool.add", "skein.reactor.other", "skein.operation.>", "skein.operation.report", "$KV.operations.>",
		"skein.peers", "skein.peer.>",
	}
}

// wantRefused waits for the server's message that a subject is not permitted.
func wantRefused(t *testing.T, refused <-chan error, subject string) {
	t.Helper()
	select {
	case err := <-refused:
		if !errors.Is(err, nats.ErrPermissionViolation) || !strings.Contains(err.Error(), `"`+subject+`"`) {
			t.Errorf("%s: %v", subject, err)
		}
	case <-time.After(5 * time.Minute):
		t.Fatalf("%s was not refused", subject)
	}
}

// Only administrators have access to the subjects of Skein, another tenant, the server
// or another user; and no attempt stored anything.
func TestAccess_ForbiddenSubjects(t *testing.T) {
	t.Parallel()
	g := startGuarded(t, access.InitOptions{}, everybody()...)
	g.client("globex", "app")
	before := g.begun()
	for _, u := range g.folder.Users() {
		if u.Roles[0] == access.Administrator {
			continue
		}
		t.Run(fmt.Sprint(u.Name, " ", u.Roles), func(t *testing.T) {
			nc, refused := g.plain(u.Tenant, u.Name)
			subjects := forbiddenPublishes()
			if u.Roles[0] != access.Auditor {
				subjects = append(subjects, "skein.operation.report", "skein.operation.list")
			}
			for _, subject := range subjects {
				if u.Tenant != "" {
					subject = swap(subject, u.Tenant)
				}
				if err := nc.PublishRequest(subject, access.InboxOf(u.Name)+".x", []byte(`{}`)); err != nil {
					t.Fatal(err)
				}
				wantRefused(t, refused, subject)
			}
			for _, subject := range forbiddenSubscriptions() {
				if u.Tenant != "" {
					subject = swap(subject, u.Tenant)
				}
				if _, err := nc.SubscribeSync(subject); err != nil {
					t.Fatal(err)
				}
				wantRefused(t, refused, subject)
			}
		})
	}
	if after := g.stored(); !maps.Equal(before, after) {
		t.Errorf("something was stored: %v, before %v", after, before)
	}
}

// swap exchanges acme and globex for users of globex.
func swap(subject, tenant string) string {
	if tenant != "globex" {
		return subject
	}
	return strings.NewReplacer("acme", "globex", "globex", "acme").Replace(subject)
}

// What separates the roles of one tenant, and those without a tenant.
func TestAccess_LimitsOfRoles(t *testing.T) {
	t.Parallel()
	g := startGuarded(t, access.InitOptions{}, everybody()...)
	for _, c := range []struct {
		tenant, name         string
		publishes, subscribe []string
	}{
		{"acme", "pub", nil, []string{"skein.timeline.acme.>"}},
		{"acme", "sub", []string{"skein.cmd.acme.thread.create", "skein.submit.acme.thread.create"}, nil},
		{"", "shouter", []string{"skein.cmd.acme.thread.create", "skein.query.acme.thread.list"}, []string{"skein.timeline.acme.>", "skein.reactor.shout others"}},
		{"", "eye", []string{"skein.cmd.acme.thread.create", "$JS.skein.API.STREAM.DELETE.SKEIN_LOG", "$JS.skein.API.CONSUMER.CREATE.SKEIN_LOG"}, []string{"skein.timeline.acme.>"}},
	} {
		nc, refused := g.plain(c.tenant, c.name)
		for _, subject := range c.publishes {
			if err := nc.Publish(subject, nil); err != nil {
				t.Fatal(err)
			}
			wantRefused(t, refused, subject)
		}
		for _, subject := range c.subscribe {
			subject, queue, _ := strings.Cut(subject, " ")
			if _, err := nc.QueueSubscribeSync(subject, queue); err != nil {
				t.Fatal(err)
			}
			wantRefused(t, refused, subject)
		}
	}
	if _, err := nats.Connect(g.url()); !errors.Is(err, nats.ErrAuthorization) {
		t.Errorf("without credentials: %v", err)
	}
}

// The server replies on whatever subject a request names. In one account with Skein
// such a reply would be stored in another tenant's log; here it never leaves the
// tenant's own.
func TestAccess_RepliesStayInTenant(t *testing.T) {
	t.Parallel()
	g := startGuarded(t, access.InitOptions{}, everybody()...)
	app := g.client("acme", "app")
	made, err := app.Send(t.Context(), "", events.CreateThread{Title: "x"})
	if err != nil {
		t.Fatal(err)
	}
	g.settle(app, made.Seq)
	before := g.stored()
	thread := made.ThreadID
	tenant, _ := g.plain("acme", "app")
	eye, _ := g.plain("", "eye")
	for _, target := range []string{
		"skein.log.globex." + thread, "skein.log.acme." + thread, "skein.timeline.acme." + thread + ".item.created",
		"skein.chunk.acme." + thread + ".exe_1", "skein.cmd.globex.thread.create", "$KV.thread_threads.globex." + thread, "$KV.thread_leases.relay",
		"skein.submit.globex.thread.create", "skein.submit.acme.thread.create", "skein.cmd.acme.thread.create",
	} {
		for _, subject := range []string{"skein.query.acme.thread.list", "skein.query.acme.event.list", "skein.query.acme.nonsense.x"} {
			if err := tenant.PublishRequest(subject, target, []byte(`{"threadId":"`+thread+`"}`)); err != nil {
				t.Fatal(err)
			}
		}
		for _, subject := range []string{"STREAM.INFO.SKEIN_LOG", "DIRECT.GET.SKEIN_LOG.skein.log.acme." + thread, "STREAM.MSG.GET.SKEIN_LOG"} {
			if err := eye.PublishRequest(access.AuditAPI+"."+subject, target, []byte(`{"seq":1}`)); err != nil {
				t.Fatal(err)
			}
		}
	}
	// Their own requests come after those, and are answered after them.
	if _, err := tenant.Request("skein.query.acme.thread.list", nil, time.Minute); err != nil {
		t.Fatal(err)
	}
	if _, err := eye.Request(access.AuditAPI+".STREAM.INFO.SKEIN_LOG", nil, time.Minute); err != nil {
		t.Fatal(err)
	}
	again, err := app.Send(t.Context(), "", events.CreateThread{Title: "y"})
	if err != nil {
		t.Fatal(err)
	}
	if again.Seq != made.Seq+1 {
		t.Errorf("something was stored in the log: the next commit has %d, after %d", again.Seq, made.Seq)
	}
	g.settle(app, again.Seq)
	after := g.stored()
	for _, stream := range []string{"SKEIN_COMMANDS", "SKEIN_CHUNKS", "SKEIN_RUNS", "SKEIN_TIMERS"} {
		if after[stream] != before[stream] {
			t.Errorf("something was stored in %s", stream)
		}
	}
}

// What examples have of threads and of the log.
var (
	anyThread = regexp.MustCompile(`T-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)
	fresh     = regexp.MustCompile(`"minSeq":[0-9]+`)
)

// Every command of the catalog is refused to a subscriber, and changes no thread of another
// tenant; no query shows one.
func TestAccess_EveryCommandAndQuery(t *testing.T) {
	t.Parallel()
	g := startGuarded(t, access.InitOptions{}, everybody()...)
	ctx := t.Context()
	acme, globex := g.client("acme", "app"), g.client("globex", "app")
	nc, refused := g.plain("acme", "sub")
	foreign := func() string {
		t.Helper()
		made, err := globex.Send(ctx, "", events.CreateThread{Title: "of globex", AgentID: "shout"})
		if err != nil {
			t.Fatal(err)
		}
		return made.ThreadID
	}
	example := func(of any, thread string) events.JSON {
		t.Helper()
		raw, err := json.Marshal(of)
		if err != nil {
			t.Fatal(err)
		}
		return fresh.ReplaceAll(anyThread.ReplaceAll(raw, []byte(thread)), []byte(`"minSeq":1`))
	}
	for _, c := range events.Commands() {
		subject := "skein.cmd.acme." + c.Name
		if err := nc.Publish(subject, []byte(`{}`)); err != nil {
			t.Fatal(err)
		}
		wantRefused(t, refused, subject)
		thread := foreign()
		request := client.Request{Data: example(c.Example, thread)}
		if !c.Creates && !c.Tenant {
			request.ThreadID = thread
		}
		_, err := acme.Do(ctx, c.Name, request)
		if !c.Creates && !c.Tenant && err == nil {
			if _, err := client.Read(ctx, acme, events.GetThread{ThreadID: thread}); err != nil { // one of its own, with the same id
				t.Errorf("%s was done on a thread of another tenant", c.Name)
			}
		}
		now, err := globex.UpToDate(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := client.Read(ctx, now, events.GetThread{ThreadID: thread}); err != nil || got.Version != 2 || got.Title != "of globex" {
			t.Errorf("after %s of another tenant the thread is %+v, %v", c.Name, got, err)
		}
	}
	thread := foreign()
	for _, q := range events.Queries() {
		if strings.HasPrefix(q.Name, "consumer.") { // they wait; see TestTenantSubjectAndBodyAgree
			continue
		}
		raw, err := acme.Query(ctx, q.Name, example(q.Example, thread))
		if errors.Is(err, &events.Error{Code: events.Forbidden}) || strings.Contains(string(raw), "of globex") {
			t.Errorf("%s returns %s, %v", q.Name, raw, err)
		}
	}
}
