package edge_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/skein-threads/skein"
	"github.com/skein-threads/skein/api/edge"
	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/natstest"
	"github.com/skein-threads/skein/skeintest"
)

// stage is an edge on a server of Skein's, for principals that tests make up.
type stage struct {
	t      *testing.T
	skein  *skeintest.Server
	conn   *nats.Conn
	edge   *edge.Edge
	url    string
	people map[string]edge.Principal // by the value of Authorization
	calls  chan *edge.Caller
}

func (s *stage) Authenticate(r *http.Request) (edge.Principal, error) {
	p, ok := s.people[r.Header.Get("Authorization")]
	if !ok {
		return p, events.Errorf(events.Unauthorized, "this credential is unknown")
	}
	return p, nil
}

// newStage starts a server and an edge with the route /caller and those that add adds.
func newStage(t *testing.T, add ...func(*edge.Edge)) *stage {
	t.Helper()
	s := &stage{t: t, people: map[string]edge.Principal{}, calls: make(chan *edge.Caller, 1)}
	s.skein = skeintest.Start(t, func(o *skein.Options) { o.NATSListen = "127.0.0.1:0" })
	var err error
	s.conn = natstest.Dial(t, s.skein.Addresses().NATS)
	s.edge, err = edge.New(edge.Options{Conn: s.conn, Auth: s})
	s.must(err)
	for _, path := range []string{"/api/caller", "/v1/caller"} {
		s.edge.Handle("GET "+path, func(_ http.ResponseWriter, _ *http.Request, c *edge.Caller) error {
			s.calls <- c
			return nil
		})
	}
	for _, one := range add {
		one(s.edge)
	}
	server := httptest.NewServer(s.edge)
	t.Cleanup(server.Close)
	s.url = server.URL
	return s
}

func (s *stage) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// as returns the client that a handler gets for a principal of the tenant acme.
func (s *stage) as(p edge.Principal) *client.Client { return s.on("/api/caller", p) }

func (s *stage) on(path string, p edge.Principal) *client.Client {
	s.t.Helper()
	if p.Tenant == "" {
		p.Tenant = "acme"
	}
	if p.Roles == nil {
		p.Roles = []string{"publisher", "subscriber"}
	}
	if p.Subject == "" {
		p.Subject = "key:test"
	}
	s.people["Bearer it"] = p
	r, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, s.url+path, nil)
	s.must(err)
	r.Header.Set("Authorization", "Bearer it")
	answer, err := http.DefaultClient.Do(r)
	s.must(err)
	s.must(answer.Body.Close())
	return (<-s.calls).Client
}

// thread makes a thread of a user, with an item, and returns both ids.
func (s *stage) thread(user, key string) (thread, item string) {
	s.t.Helper()
	c := s.skein.Client("acme")
	made, err := c.Send(s.t.Context(), "", events.CreateThread{UserID: user, Key: key})
	s.must(err)
	said, err := c.Send(s.t.Context(), made.ThreadID, saying("hello"))
	s.must(err)
	_, err = client.Read(s.t.Context(), c.WithMinSeq(said.Seq), events.GetThread{ThreadID: made.ThreadID})
	s.must(err)
	return made.ThreadID, said.Result.ItemID
}

func saying(text string) events.CreateItem {
	return events.CreateItem{Item: events.UserText(text)}
}

func wantCode(t *testing.T, what string, err error, code events.Code) {
	t.Helper()
	if !errors.Is(err, &events.Error{Code: code}) {
		t.Errorf("%s: %v, want %s", what, err, code)
	}
}

// To a principal that is limited to some threads, any other thread does not exist, whatever
// command or query names it and however.
func TestGuard_OtherThreadsDoNotExist(t *testing.T) {
	s := newStage(t)
	ctx := t.Context()
	mine, myItem := s.thread("ada", "mine")
	other, otherItem := s.thread("bob", "other")
	full := s.skein.Client("acme")
	run, err := full.Send(ctx, other, events.CreateExecution{TriggerItemID: otherItem})
	s.must(err)
	step, err := full.Send(ctx, other, events.CreateStep{ExecutionID: run.Result.ExecutionID})
	s.must(err)
	_, err = full.Send(ctx, other, events.PutPart{Idx: new(int64(0)), StepID: step.Result.StepID, ExecutionID: run.Result.ExecutionID, Type: "text", Part: events.JSON(`{"text":"x"}`)})
	s.must(err)
	for what, c := range map[string]*client.Client{
		"user": s.as(edge.Principal{User: "ada"}), "threads": s.as(edge.Principal{Threads: []string{mine}}), "both": s.as(edge.Principal{User: "ada", Threads: []string{mine}}),
	} {
		if _, err := client.Read(ctx, c, events.GetItem{ThreadID: "key:mine", ItemID: myItem}); err != nil {
			t.Errorf("%s: its own item: %v", what, err)
		}
		for _, ref := range []string{other, "key:other"} {
			for _, row := range events.Commands() {
				if row.Scope() == events.OneThread {
					_, err := c.Do(ctx, row.Name, client.Request{ThreadID: ref, Data: map[string]any{}})
					want := events.NotFound
					if row.Name == "thread.create" && what != "user" { // it makes none, whether or not there is one
						want = events.Forbidden
					}
					wantCode(t, what+" "+row.Name+" on "+ref, err, want)
				}
				for _, field := range row.Relates.Threads {
					_, err := c.Do(ctx, row.Name, client.Request{ThreadID: mine, Data: map[string]any{field: ref}})
					wantCode(t, what+" "+row.Name+" with "+field, err, events.NotFound)
				}
			}
			for _, row := range events.Queries() {
				if row.Scope == events.OneThread || row.Name == "history.list" {
					_, err := c.Query(ctx, row.Name, map[string]any{"threadId": ref})
					wantCode(t, what+" "+row.Name+" of "+ref, err, events.NotFound)
				}
			}
			if what == "user" {
				sub := events.SubCommand{Command: "thread.create", Data: events.JSON(`{"mainThreadId":"` + ref + `"}`)}
				_, err := c.Commit(ctx, "", []events.SubCommand{sub})
				wantCode(t, what+" a thread for "+ref+" within a commit", err, events.NotFound)
			}
			_, err := c.Submit(ctx, "item.create", client.Request{ThreadID: ref, Data: saying("x")})
			wantCode(t, what+" a submitted command on "+ref, err, events.NotFound)
		}
		minSeq := events.Fresh{MinSeq: &step.Seq}
		_, err := client.Read(ctx, c, events.GetItem{ItemID: otherItem})
		wantCode(t, what+" an item by its id alone", err, events.NotFound)
		_, err = client.Read(ctx, c, events.GetItem{ThreadID: mine, ItemID: otherItem})
		wantCode(t, what+" an item as if of its own thread", err, events.NotFound)
		_, err = client.Read(ctx, c, events.GetExecution{ExecutionID: run.Result.ExecutionID, Fresh: minSeq})
		wantCode(t, what+" an execution by its id alone", err, events.NotFound)
		_, err = client.Read(ctx, c, events.ListSteps{ExecutionID: run.Result.ExecutionID, Fresh: minSeq})
		wantCode(t, what+" steps by the execution alone", err, events.NotFound)
		_, err = client.Read(ctx, c, events.ListParts{StepID: step.Result.StepID, Fresh: minSeq})
		wantCode(t, what+" parts by the step alone", err, events.NotFound)
		_, err = c.Send(ctx, "", events.ResolveThread{Key: "other"})
		wantCode(t, what+" thread.resolve of another's key", err, events.NotFound)
		_, err = c.Timeline(ctx, client.SubscribeOptions{Thread: other})
		wantCode(t, what+" the timeline", err, events.NotFound)
		_, err = c.LiveEvents(ctx, other)
		wantCode(t, what+" live events", err, events.NotFound)
		for _, err := range c.Chunks(ctx, other, "") {
			wantCode(t, what+" chunks", err, events.NotFound)
			break
		}
		_, err = c.Files(other).WriteFile(ctx, "/a", make([]byte, events.InlineFileBytes+1), "text/plain", client.WriteFileOptions{})
		wantCode(t, what+" an upload", err, events.NotFound)
	}
}

// Lists and streams of the tenant show a limited principal its own threads only, completely.
func TestGuard_ListsAndStreamsShowOwnThreadsOnly(t *testing.T) {
	s := newStage(t)
	ctx := t.Context()
	mine, _ := s.thread("ada", "")
	var others []string
	for range 3 {
		other, _ := s.thread("bob", "")
		others = append(others, other)
	}
	var scheduled *events.Reply
	for _, id := range append(slices.Clone(others), mine) {
		var err error
		scheduled, err = s.skein.Client("acme").Send(ctx, id, events.ScheduleEffect{Name: "remind", DelayMs: new(int64(3600_000))})
		s.must(err)
	}
	for what, c := range map[string]*client.Client{"user": s.as(edge.Principal{User: "ada"}), "threads": s.as(edge.Principal{Threads: []string{mine}})} {
		list, err := client.Read(ctx, c, events.ListThreads{})
		if err != nil || len(list.Threads) != 1 || list.Threads[0].ID != mine {
			t.Errorf("%s: thread.list: %+v, %v", what, list, err)
		}
		summaries, err := client.Read(ctx, c, events.ListThreadHistory{})
		if err != nil || len(summaries.Threads) != 1 || summaries.Threads[0].ID != mine {
			t.Errorf("%s: thread.history: %+v, %v", what, summaries, err)
		}
		effects, err := client.Read(ctx, c.WithMinSeq(scheduled.Seq), events.ListEffects{})
		if err != nil || len(effects.Effects) != 1 || effects.Effects[0].ThreadID != mine {
			t.Errorf("%s: effect.list: %+v, %v", what, effects, err)
		}
		live, err := c.Timeline(ctx, client.SubscribeOptions{})
		s.must(err)
		emitted, err := c.LiveEvents(ctx, "")
		s.must(err)
		full := s.skein.Client("acme")
		for _, id := range append(slices.Clone(others), mine) {
			_, err := full.Send(ctx, id, saying("later"))
			s.must(err)
			state, err := full.Thread(ctx, id)
			s.must(err)
			s.must(state.Emit(ctx, "said", id))
		}
		if e, err := live.Next(ctx); err != nil || e.ThreadID != mine {
			t.Errorf("%s: the timeline: %+v, %v", what, e, err)
		}
		if e, err := emitted.Next(ctx); err != nil || e.ThreadID != mine {
			t.Errorf("%s: live events: %+v, %v", what, e, err)
		}
		live.Close()
		emitted.Close()
		var got, want []string
		whole, err := full.Timeline(ctx, client.SubscribeOptions{History: true})
		s.must(err)
		for e, err := range whole.All(ctx) {
			s.must(err)
			if e.ThreadID == mine {
				want = append(want, e.ID)
			}
		}
		history, err := c.Timeline(ctx, client.SubscribeOptions{History: true})
		s.must(err)
		for e, err := range history.All(ctx) {
			s.must(err)
			got = append(got, e.ID)
		}
		if !slices.Equal(got, want) || len(want) < 3 {
			t.Errorf("%s: the history has %v, want %v", what, got, want)
		}
	}
}

// A page of a history that has nothing of its reader's threads leads to the next one, also in
// the middle of a commit.
func TestGuard_HistoryContinuesPastOtherThreads(t *testing.T) {
	s := newStage(t)
	ctx := t.Context()
	full := s.skein.Client("acme")
	other, _ := s.thread("bob", "")
	var many []events.SubCommand
	for range 7 {
		sub, err := client.Sub("item.create", saying("x"))
		s.must(err)
		many = append(many, sub)
	}
	_, err := full.Commit(ctx, other, many)
	s.must(err)
	mine, _ := s.thread("ada", "")
	c := s.as(edge.Principal{User: "ada"})
	q := events.ListHistory{FromSeq: new(int64(1)), Limit: new(int64(3))}
	found, pages := 0, 0
	for {
		page, err := client.Read(ctx, c, q)
		s.must(err)
		for _, entry := range page.Entries {
			e, err := events.DecodeEvent(entry.Event)
			s.must(err)
			if e.ThreadID != mine {
				t.Errorf("an event of %s", e.ThreadID)
			}
			found++
		}
		if len(page.Entries) == 0 && page.NextVersion != 0 {
			t.Errorf("a page that ends in the commit of another thread tells its version %d", page.NextVersion)
		}
		if pages++; page.NextSeq == 0 || pages > 100 {
			break
		}
		q.FromSeq, q.AfterVersion = &page.NextSeq, nil
		if page.NextVersion > 0 {
			q.AfterVersion = &page.NextVersion
		}
	}
	if found != 3 || pages > 20 {
		t.Errorf("%d events in %d pages; want thread.created, context.created, item.created", found, pages)
	}
}

// A thread that a principal of a user makes is the user's, and stays it.
func TestGuard_MadeThreadsAreTheUsers(t *testing.T) {
	s := newStage(t)
	ctx := t.Context()
	c := s.as(edge.Principal{User: "ada"})
	create, err := client.Sub("thread.create", events.CreateThread{})
	s.must(err)
	var ids []string
	made, err := c.Send(ctx, "", events.CreateThread{})
	s.must(err)
	ids = append(ids, made.ThreadID)
	resolved, err := c.Send(ctx, "", events.ResolveThread{Key: "new"})
	s.must(err)
	ids = append(ids, resolved.ThreadID)
	again, err := c.Send(ctx, "", events.ResolveThread{Key: "new"})
	s.must(err)
	if again.ThreadID != resolved.ThreadID {
		t.Errorf("resolved to %s, then to %s", resolved.ThreadID, again.ThreadID)
	}
	committed, err := c.Commit(ctx, "", []events.SubCommand{create})
	s.must(err)
	ids = append(ids, committed.ThreadID)
	said, err := c.Send(ctx, made.ThreadID, saying("x"))
	s.must(err)
	fork := events.ForkThread{ItemID: said.Result.ItemID}
	forked, err := c.Send(ctx, made.ThreadID, fork)
	s.must(err)
	ids = append(ids, forked.Result.ChildID)
	for _, id := range ids {
		if doc, err := client.Read(ctx, s.skein.Client("acme"), events.GetThread{ThreadID: id}); err != nil || doc.UserID != "ada" {
			t.Errorf("%s is of %+v, %v", id, doc, err)
		}
	}
	_, err = c.Send(ctx, "", events.CreateThread{UserID: "bob"})
	wantCode(t, "a thread for another", err, events.Forbidden)
	_, err = c.Send(ctx, made.ThreadID, events.UpdateThread{UserID: new("bob")})
	wantCode(t, "giving a thread away", err, events.Forbidden)
	sub, err := client.Sub("thread.update", events.UpdateThread{UserID: new("bob")})
	s.must(err)
	_, err = c.Commit(ctx, made.ThreadID, []events.SubCommand{sub})
	wantCode(t, "giving a thread away within a commit", err, events.Forbidden)
	_, err = client.Read(ctx, c, events.ListThreads{UserID: "bob"})
	wantCode(t, "listing another's", err, events.Forbidden)

	named := s.as(edge.Principal{Threads: []string{made.ThreadID}})
	_, err = named.Send(ctx, "", events.CreateThread{}, client.CommandID("c1"))
	wantCode(t, "a key of threads makes another", err, events.Forbidden)
	_, err = named.Send(ctx, "", events.ResolveThread{Key: "newer"})
	wantCode(t, "a key of threads resolves a new key", err, events.Forbidden)
	_, err = named.Send(ctx, made.ThreadID, fork)
	wantCode(t, "a key of threads forks", err, events.Forbidden)
}

// Each role and capability permits what it is for, and nothing else.
func TestGuard_RolesAndCapabilities(t *testing.T) {
	s := newStage(t)
	ctx := t.Context()
	thread, _ := s.thread("ada", "")
	definition := func(c *client.Client) error {
		_, err := c.Do(ctx, "definition.apply", client.Request{Data: events.ApplyDefinitions{Definitions: []events.NewDefinition{
			{Kind: events.PromptKind, Name: "hello", Definition: events.JSON(`{"name":"hello","text":"Hello."}`)},
		}}})
		return err
	}
	ways := map[string]func(*client.Client) error{
		"write": func(c *client.Client) error { _, err := c.Send(ctx, thread, saying("x")); return err },
		"batch of approvals": func(c *client.Client) error {
			_, err := c.Commit(ctx, thread, []events.SubCommand{{Command: "approval.grant", Data: events.JSON(`{"callId":"x"}`)}})
			return err
		},
		"submit": func(c *client.Client) error {
			_, err := c.Submit(ctx, "item.create", client.Request{ThreadID: thread, Data: saying("x")})
			return err
		},
		"upload": func(c *client.Client) error {
			_, err := c.Files(thread).WriteFile(ctx, "/a", make([]byte, events.InlineFileBytes+1), "text/plain", client.WriteFileOptions{})
			return err
		},
		"emit": func(c *client.Client) error {
			own, err := c.Thread(ctx, thread)
			if err != nil {
				return err
			}
			return own.Emit(ctx, "said", "x")
		},
		"query": func(c *client.Client) error {
			_, err := client.Read(ctx, c, events.GetThread{ThreadID: thread})
			return err
		},
		"follow": func(c *client.Client) error {
			line, err := c.Timeline(ctx, client.SubscribeOptions{Thread: thread})
			if err == nil {
				line.Close()
			}
			return err
		},
		"define": definition,
		"approve": func(c *client.Client) error {
			_, err := c.Do(ctx, "approval.grant", client.Request{ThreadID: thread, Data: map[string]any{"callId": "x"}})
			return err
		},
		"keys and values": func(c *client.Client) error {
			_, err := c.Do(ctx, "kv.set", client.Request{Data: events.SetKV{Bucket: "b", Key: "k", Value: events.JSON(`1`)}})
			return err
		},
		"consumers": func(c *client.Client) error {
			_, err := c.Query(ctx, "consumer.create", events.CreateConsumer{Name: "x"})
			return err
		},
	}
	all := "write, batch of approvals, submit, upload, emit, query, follow, define, approve, keys and values, consumers"
	for _, c := range []struct {
		who edge.Principal
		may string
	}{
		{edge.Principal{}, all},
		{edge.Principal{Roles: []string{"publisher"}}, strings.Replace(all, "follow, ", "", 1)},
		{edge.Principal{Roles: []string{"subscriber"}}, "query, follow, consumers"},
		{edge.Principal{Roles: []string{"worker"}}, ""},
		{edge.Principal{Can: []edge.Capability{edge.Read}}, "query, follow, consumers"},
		{edge.Principal{Can: []edge.Capability{edge.Write}}, "write, submit, upload, keys and values"},
		{edge.Principal{Can: []edge.Capability{edge.Read, edge.Write}}, "write, submit, upload, emit, query, follow, keys and values, consumers"},
		{edge.Principal{Can: []edge.Capability{edge.Approve}}, "approve"},
		{edge.Principal{Can: []edge.Capability{edge.Define}}, "define"},
		{edge.Principal{User: "ada"}, "write, batch of approvals, submit, upload, emit, query, follow, approve"},
		{edge.Principal{User: "ada", Can: []edge.Capability{edge.Define}}, "define"},
		{edge.Principal{Threads: []string{thread}, Can: []edge.Capability{edge.Read}}, "query, follow"},
	} {
		as := s.as(c.who)
		may := strings.Split(c.may, ", ")
		for name, do := range ways {
			err := do(as)
			if forbidden := errors.Is(err, &events.Error{Code: events.Forbidden}); forbidden == slices.Contains(may, name) {
				t.Errorf("%+v %s: %v", c.who, name, err)
			}
		}
	}
}

// The log records the credential as the actor, and nothing that a request says of itself.
func TestGuard_ActorIsTheCredential(t *testing.T) {
	s := newStage(t)
	ctx := t.Context()
	c := s.as(edge.Principal{Subject: "key:3f6c"})
	made, err := c.Send(ctx, "", events.CreateThread{})
	s.must(err)
	list, err := client.Read(ctx, c.WithMinSeq(made.Seq), events.ListEvents{ThreadID: made.ThreadID})
	s.must(err)
	for _, raw := range list.Events {
		if e, err := events.DecodeEvent(raw); err != nil || e.Actor != "key:3f6c" {
			t.Errorf("%s by %q, %v", e.Type, e.Actor, err)
		}
	}
	_, err = c.Send(ctx, "", events.CreateThread{}, client.As("ada"))
	wantCode(t, "another actor", err, events.InvalidRequest)
	if refusal := events.AsError(err); refusal.Details == nil || refusal.Details.Path != "/actor" {
		t.Errorf("the refusal names %+v", refusal.Details)
	}
}

// Clients that cannot say what they have seen are shown all that the edge acknowledged.
func TestGuard_ReadsShowWhatWasAcknowledged(t *testing.T) {
	s := newStage(t)
	ctx := t.Context()
	writer, reader := s.as(edge.Principal{}), s.on("/v1/caller", edge.Principal{})
	made, err := writer.Send(ctx, "", events.CreateThread{})
	s.must(err)
	for range 50 {
		changed, err := writer.Send(ctx, made.ThreadID, saying("x"))
		s.must(err)
		if doc, err := client.Read(ctx, reader, events.GetThread{ThreadID: made.ThreadID}); err != nil || doc.Seq < changed.Seq {
			t.Fatalf("the read shows commit %d of %d, %v", doc.Seq, changed.Seq, err)
		}
	}
}

// Nothing of the platform that could do more is handed to the user of a guarded client.
func TestGuard_HandsOutNoConnection(t *testing.T) {
	s := newStage(t)
	thread, _ := s.thread("ada", "")
	state, err := s.as(edge.Principal{User: "ada"}).Thread(context.WithoutCancel(t.Context()), thread)
	s.must(err)
	for name, value := range state.RuntimeContext() {
		if _, ok := value.(*client.Client); !ok {
			t.Errorf("%s is a %T", name, value)
		}
	}
}
