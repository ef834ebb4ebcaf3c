package commands

import (
	"context"
	"reflect"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"
	"github.com/rs/zerolog"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/natstest"
	"github.com/skein-threads/skein/quota"
	"github.com/skein-threads/skein/service"
)

// Every command of the contract over NATS, on one thread, with the reply that
// DESIGN 4 promises: thread, version, sequence, events and what was made.
func TestCommandsOverNATS(t *testing.T) {
	w := newWorld(t, Config{})
	w.serve(w.d, 100)
	made := overNATS(t, w.nc, "thread.create", `{"commandId":"c-1","actor":"user:ada","data":{"key":"k","title":"Order","context":{"a":1}}}`)
	id, version, seen := made.ThreadID, made.Version, map[string]bool{"thread.create": true}
	do := func(name, body string, result *events.Result, types ...events.Type) {
		t.Helper()
		seen[name] = true
		r := overNATS(t, w.nc, name, body)
		last := w.lastSeq()
		if slices.Contains(types, events.KeyReleasedType) {
			last-- // the key's own commit follows
		}
		if r.ThreadID != id || r.Version != version+int64(len(types)) || r.Seq != int64(last) || len(r.Events) != len(types) {
			t.Fatalf("%s answered %+v, at version %d", name, r, version)
		}
		for i, e := range r.Events {
			version++
			if e.Type != types[i] || e.Version != version || e.ID == "" {
				t.Errorf("%s: event %d is %+v, want %s at %d", name, i, e, types[i], version)
			}
		}
		if result == nil { // one whose ids are derived
			return
		}
		if !reflect.DeepEqual(r.Result, result) {
			t.Errorf("%s: the result is %+v, want %+v", name, r.Result, result)
		}
	}
	if r := made; !slices.Equal(typesOf(r), []events.Type{events.ThreadCreatedType, events.ContextCreatedType, events.KeyClaimedType}) ||
		r.Version != 3 || r.Result == nil || r.Result.ContextID == "" || !events.ValidThreadID(r.ThreadID) {
		t.Fatalf("thread.create answered %+v", r)
	}
	ctx := made.Result.ContextID
	is := func(r events.Result) *events.Result { return &r }
	do("thread.resolve", `{"data":{"key":"k"}}`, nil, events.ThreadResolvedType)
	do("thread.update", on("key:k", `{"title":"Orders","archived":true}`), nil, events.ProfileChangedType)
	do("thread.status", on(id, `{"to":"streaming","reason":"react"}`), nil, events.ThreadStatusChangedType)
	do("context.create", on(id, `{"id":"ctx_a","key":"a","content":[1]}`), is(events.Result{ContextID: "ctx_a"}), events.ContextCreatedType)
	do("context.resolve", on(id, `{}`), is(events.Result{ContextID: ctx}), events.ContextResolvedType)
	do("context.status", on(id, `{"contextId":"ctx_a","to":"closed"}`), nil, events.ContextStatusChangedType)
	do("context.set", on(id, `{"patch":{"a":null}}`), nil, events.StateChangedType)
	do("item.create", on(id, `{"item":{"id":"itm_a","type":"message","role":"user","content":[]}}`), is(events.Result{ItemID: "itm_a"}), events.ItemCreatedType)
	do("item.append", on(id, `{"items":[{"type":"message","role":"user","content":[]},{"type":"message","role":"user","content":[]}]}`), nil, events.ItemCreatedType, events.ItemCreatedType)
	do("item.status", on(id, `{"itemId":"itm_a","to":"pending"}`), nil, events.ItemStatusChangedType)
	do("message.edit", on(id, `{"itemId":"itm_a","silent":true}`), nil, events.MessageEditedType)
	do("execution.create", on(id, `{"id":"exe_a","triggerItemId":"itm_a","reactionItemId":"itm_r"}`),
		is(events.Result{ExecutionID: "exe_a", ReactionItemID: "itm_r"}), events.ExecutionCreatedType)
	do("step.create", on(id, `{"id":"stp_a","executionId":"exe_a"}`), is(events.Result{StepID: "stp_a"}), events.StepCreatedType)
	do("part.put", on(id, `{"stepId":"stp_a","idx":0,"part":{"type":"x"}}`), is(events.Result{Key: "stp_a:0"}), events.PartCreatedType)
	do("part.put", on(id, `{"stepId":"stp_a","idx":0,"part":{"type":"y"}}`), is(events.Result{Key: "stp_a:0"}), events.PartUpdatedType)
	do("step.status", on(id, `{"stepId":"stp_a","to":"completed","continueLoop":false}`), nil, events.StepStatusChangedType)
	do("execution.status", on(id, `{"executionId":"exe_a","to":"completed"}`), nil, events.ExecutionStatusChangedType)
	do("thread.finish", on(id, `{"executionId":"exe_a"}`), nil, events.ThreadFinishedType)
	do("message.add", on(id, `{"id":"itm_m","role":"assistant","toolCalls":"[{\"id\":\"c\",\"function\":{\"name\":\"n\",\"arguments\":\"\"}}]"}`),
		is(events.Result{ItemID: "itm_m"}), events.ItemCreatedType, events.ItemCreatedType)
	do("message.update", on(id, `{"messageId":"itm_m","content":"x","status":"completed"}`), nil, events.MessageEditedType, events.ItemStatusChangedType)
	do("message.delete", on(id, `{"itemId":"itm_m"}`), nil, events.MessageDeletedType, events.MessageDeletedType)
	do("trace.record", on(id, `{"kind":"log","text":"x"}`), nil, events.TraceRecordedType)
	do("message.delete", on(id, `{"itemId":"itm_a"}`), nil, events.MessageDeletedType)
	do("thread.commit", on(id, `{"commands":[{"command":"thread.status","data":{"to":"open"}},{"command":"context.create","data":{"id":"ctx_b"}}]}`),
		is(events.Result{Results: []events.Result{{}, {ContextID: "ctx_b"}}}), events.ThreadStatusChangedType, events.ContextCreatedType)
	do("agent.assign", on(id, `{"agentId":"triage"}`), nil, events.AgentAssignedType)
	do("thread.react", on(id, `{"text":"hello","executionId":"exe_b"}`), nil, events.ContextResolvedType, events.ItemCreatedType,
		events.ThreadStatusChangedType, events.ContextStatusChangedType, events.ExecutionCreatedType, events.RunRequestedType)
	do("tool.queue", on(id, `{"name":"find","callId":"call_1"}`), is(events.Result{Queued: "call_1", QueuedID: "call_1"}), events.QueuePushedType)
	do("thread.react", on(id, `{"text":"and?","executionId":"exe_c","reactionItemId":"itm_c"}`), nil, events.QueuePushedType)
	queue, err := w.d.Queued(t.Context(), tenant, id)
	if err != nil || len(queue.Queued) != 2 {
		t.Fatalf("%+v, %v", queue, err)
	}
	waiting := queue.Queued[1]
	do("queue.edit", on(id, `{"queuedId":"`+waiting.ID+`","item":{"type":"message","role":"user","content":[]}}`), nil, events.QueueEditedType)
	do("queue.move", on(id, `{"queuedId":"`+waiting.ID+`","before":"call_1"}`), nil, events.QueueMovedType)
	do("queue.remove", on(id, `{"queuedId":"`+waiting.ID+`"}`), nil, events.QueueRemovedType)
	for _, name := range []string{"run.turn", "run.retry", "approval.resolve", "approval.grant", "approval.deny"} { // they need a worker's run
		seen[name] = true
	}
	do("run.stop", on(id, `{}`), nil, events.RunStoppedType, events.ItemCreatedType, events.ItemStatusChangedType,
		events.ExecutionStatusChangedType, events.ThreadFinishedType, events.ContextStatusChangedType, events.ThreadStatusChangedType,
		events.QueueDrainedType, events.ContextResolvedType, events.ItemCreatedType, events.ThreadStatusChangedType,
		events.ContextStatusChangedType, events.ExecutionCreatedType, events.RunRequestedType)
	do("run.cancel", on(id, `{}`), nil, events.RunStoppedType, events.ItemCreatedType, events.ItemStatusChangedType,
		events.ExecutionStatusChangedType, events.ThreadFinishedType, events.ContextStatusChangedType, events.ThreadStatusChangedType)
	do("effect.schedule", on(id, `{"id":"`+anEffect+`","name":"remind","delayMs":60000}`), is(events.Result{EffectID: anEffect}), events.EffectScheduledType)
	do("effect.cancel", on(id, `{"effectId":"`+anEffect+`"}`), is(events.Result{Cancelled: true}), events.EffectCancelledType)
	do("file.write", on(id, `{"path":"/d/x","external":"https://example.org/x"}`), nil, events.DirectoryCreatedType, events.FileWrittenType)
	do("file.delete", on(id, `{"path":"/d/x"}`), nil, events.FileDeletedType)
	do("file.delete", on(id, `{"path":"/d/x"}`), nil) // nothing to do is no refusal
	do("directory.remove", on(id, `{"path":"/d"}`), nil, events.DirectoryRemovedType)
	do("directory.create", on(id, `{"path":"/d"}`), nil, events.DirectoryCreatedType)
	do("directory.create", on(id, `{"path":"/d"}`), nil)
	shared := overNATS(t, w.nc, "thread.share", on(id, `{}`))
	seen["thread.share"] = true
	if shared.Result == nil || shared.Result.Token == "" || len(shared.Events) != 1 {
		t.Errorf("thread.share answered %+v", shared)
	}
	version++
	do("thread.unshare", on(id, `{"shareId":"`+shared.Result.ShareID+`"}`), nil, events.ShareRevokedType)
	token := events.WriterToken(w.d.cfg.Secret, tenant, "known")
	do("writer.claim", with("known", id, `{"holder":"a"}`), nil, events.WriterClaimedType)
	do("writer.renew", on(id, `{"token":"`+token+`"}`), nil) // it is early
	do("writer.release", on(id, `{"token":"`+token+`"}`), nil, events.WriterReleasedType)
	const other = "T-00000000-0000-7000-8000-000000000001" // its commit is the first of the two
	must(t, w.d, "thread.create", on(other, `{}`))
	do("thread.mention", on(id, `{"mentionedId":"`+other+`"}`), nil, events.RelationshipAddedType)
	do("state.merge", on(id, `{"operations":[{"op":"set","key":"a","value":1}],"listeners":["shop"]}`), nil,
		events.ContextCreatedType, events.StateRenewedType, events.StateChangedType)
	do("state.merge", on(id, `{"operations":[{"op":"push","key":"b","value":1}]}`), is(events.Result{Life: 1, Size: new(int64(2))}), events.StateChangedType)
	do("state.touch", on(id, `{}`), nil) // it was renewed a moment ago
	do("state.destroy", on(id, `{}`), is(events.Result{Life: 1}), events.LifecycleDestroyedType, events.ContextStatusChangedType)
	do("state.release", on(id, `{"life":1,"listener":"shop"}`), nil, events.StateReleasedType, events.StateClosedType)
	do("session.start", on(id, `{"sessionId":"sess_1"}`), is(events.Result{SessionID: "sess_1"}), events.SessionStartedType)
	do("session.start", on(id, `{"sessionId":"sess_1"}`), nil)
	do("session.complete", on(id, `{"sessionId":"sess_1"}`), is(events.Result{SessionID: "sess_1"}), events.SessionCompletedType)
	seen["thread.fork"], seen["thread.truncate"], seen["thread.handoff"] = true, true, true // see TestHandoff_WithASummary, TestFork_CopiesTheHistory and TestTruncate_HidesLaterMessages
	seen["skill.activate"] = true                                                           // it needs a definition: TestSkill_ActivatedByACaller
	do("thread.delete", on(id, `{}`), nil, events.KeyReleasedType, events.LifecycleDeletedType)
	seen["definition.apply"], seen["kv.set"], seen["kv.delete"] = true, true, true // pairs: TestPairs_CommandsOfTheTenant
	if r := overNATS(t, w.nc, "definition.apply", definitions(modelOf("m", "x"))); r.ThreadID != "" || r.Version != 1 || applied(r) != "model m 1 added" {
		t.Errorf("definition.apply answered %+v", r)
	}
	seen["push.set"], seen["push.delete"] = true, true // TestPush_ChangesAndEnds of package webhooks
	for _, c := range events.Commands() {
		if !seen[c.Name] {
			t.Errorf("%s was not tried", c.Name)
		}
	}
	if first := w.commits(id)[0].Events[0]; first.Actor != "user:ada" || first.CommandID != "c-1" || first.ID != made.Events[0].ID {
		t.Errorf("the first event is %+v", first)
	}
}

func typesOf(r *events.Reply) []events.Type {
	var list []events.Type
	for _, e := range r.Events {
		list = append(list, e.Type)
	}
	return list
}

// The trace context of a request stands on its events; what is none is dropped.
func TestTraceContext(t *testing.T) {
	const trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	w := newWorld(t, Config{})
	w.serve(w.d, 100)
	for header, want := range map[string]string{trace: trace, "00-nonsense": ""} {
		m := nats.NewMsg("skein.cmd.acme.thread.create")
		m.Header.Set("traceparent", header)
		m.Data = []byte(`{}`)
		answer, err := w.nc.RequestMsg(m, time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		var r events.Reply
		if err := json.Unmarshal(answer.Data, &r); err != nil {
			t.Fatal(err)
		}
		if got := w.commits(r.ThreadID)[0].Events[0].TraceParent; got != want {
			t.Errorf("%q is on the event as %q", header, got)
		}
	}
}

// The service can be found, described and counted as any NATS service.
func TestServiceIsDiscovered(t *testing.T) {
	w := newWorld(t, Config{})
	w.serve(w.d, 100)
	overNATS(t, w.nc, "thread.create", `{}`)
	request(t, w.nc, "skein.cmd.acme.thread.fly", []byte(`{}`))
	var ping micro.Ping
	var info micro.Info
	for verb, into := range map[string]any{"PING": &ping, "INFO": &info} {
		if err := json.Unmarshal(request(t, w.nc, "$SRV."+verb+".skein-commands", nil).Data, into); err != nil {
			t.Fatal(err)
		}
	}
	if ping.Name != "skein-commands" || ping.Version != "1.0.0" || ping.Metadata["request-1"] != "thread.create" {
		t.Errorf("PING says %+v", ping)
	}
	if len(info.Endpoints) != 1 || info.Endpoints[0].Subject != "skein.cmd.>" || info.Endpoints[0].QueueGroup != "skein" || info.Description != "Commands." {
		t.Errorf("INFO says %+v", info)
	}
	var stats struct {
		Endpoints []struct {
			Requests int `json:"num_requests"`
		} `json:"endpoints"`
	}
	for deadline := time.Now().Add(natstest.Patience); len(stats.Endpoints) != 1 || stats.Endpoints[0].Requests != 2; {
		if time.Now().After(deadline) {
			t.Fatalf("STATS says %+v", stats)
		}
		if err := json.Unmarshal(request(t, w.nc, "$SRV.STATS.skein-commands", nil).Data, &stats); err != nil {
			t.Fatal(err)
		} // a request counts once its handler has returned, which may be after its answer
	}
}

// Two processes share the requests: each is answered once.
func TestServicesShareTheWork(t *testing.T) {
	w := newWorld(t, Config{})
	w.serve(w.d, 100)
	other := *w
	other.nc = natstest.Connect(t, w.server)
	other.serve(w.another(Config{}), 100)
	id := overNATS(t, w.nc, "thread.create", `{}`).ThreadID
	inbox := w.nc.NewInbox()
	answers, err := w.nc.SubscribeSync(inbox)
	if err != nil {
		t.Fatal(err)
	}
	for range 50 {
		if err := w.nc.PublishRequest("skein.cmd.acme.item.create", inbox, []byte(on(id, hello))); err != nil {
			t.Fatal(err)
		}
	}
	for range 50 {
		m, err := answers.NextMsg(time.Minute)
		if err != nil || m.Header.Get("Nats-Service-Error-Code") != "" {
			t.Fatalf("%v %v", err, m)
		}
	}
	if version := must(t, w.d, "item.create", on(id, hello)).Version; version != 53 {
		t.Errorf("50 requests of one item each and one more led to version %d", version)
	}
}

// Requests in flight when the service stops are completed and answered; later ones are not
// accepted.
func TestStop(t *testing.T) {
	w := newWorld(t, Config{})
	s := w.serve(w.d, 1000)
	id := overNATS(t, w.nc, "thread.create", `{}`).ThreadID
	client := natstest.Connect(t, w.server)
	inbox := client.NewInbox()
	answers, err := client.SubscribeSync(inbox)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 300 {
		if err := client.PublishRequest("skein.cmd.acme.item.create", inbox, []byte(with("c-"+strconv.Itoa(i), id, hello))); err != nil {
			t.Fatal(err)
		}
	}
	if err := client.Flush(); err != nil {
		t.Fatal(err)
	}
	if _, err := answers.NextMsg(time.Minute); err != nil { // some are done, others wait
		t.Fatal(err)
	}
	var stopped sync.WaitGroup
	for range 2 { // twice does no harm
		stopped.Go(func() {
			if err := s.Stop(t.Context()); err != nil {
				t.Errorf("stopping: %v", err)
			}
		})
	}
	stopped.Wait()
	for i := range 299 {
		m, err := answers.NextMsg(time.Minute)
		if err != nil {
			t.Fatalf("after %d answers: %v", i+1, err)
		}
		if code := m.Header.Get("Nats-Service-Error-Code"); code != "" {
			t.Fatalf("a request that had come was refused: %s %s", code, m.Data)
		}
	}
	if n := len(w.byCommand(id)); n != 301 {
		t.Errorf("the log shows %d commands", n)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	if m, err := client.RequestWithContext(ctx, "skein.cmd.acme.thread.create", []byte(`{}`)); err == nil {
		t.Errorf("answered after the end: %s", m.Data)
	}
}

// Requests over the bound are refused at once, and the others are done.
func TestTooManyRequests(t *testing.T) {
	w := newWorld(t, Config{})
	w.serve(w.d, 2)
	id := overNATS(t, w.nc, "thread.create", `{}`).ThreadID
	inbox := w.nc.NewInbox()
	answers, err := w.nc.SubscribeSync(inbox)
	if err != nil {
		t.Fatal(err)
	}
	for range 200 {
		if err := w.nc.PublishRequest("skein.cmd.acme.item.create", inbox, []byte(on(id, hello))); err != nil {
			t.Fatal(err)
		}
	}
	done := int64(0)
	for range 200 {
		m, err := answers.NextMsg(time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		switch m.Header.Get("Nats-Service-Error-Code") {
		case "":
			done++
		case "503":
		default:
			t.Fatalf("%v %s", m.Header, m.Data)
		}
	}
	if list := w.commits(id); list[len(list)-1].Version != 2+done || done == 0 || done == 200 {
		t.Errorf("%d of 200 were done, and the log is at version %d", done, list[len(list)-1].Version)
	}
}

// rateRefusals counts what the rate of a tenant refused.
type rateRefusals struct{ count atomic.Int64 }

func (r *rateRefusals) Limited(_, limit string) {
	if limit == "rate" {
		r.count.Add(1)
	}
}

// What is over the rate is answered queue_full and not done; what was answered
// otherwise is in the log.
func TestService_RateLosesNothing(t *testing.T) {
	w := newWorld(t, Config{})
	var refused rateRefusals
	s, err := service.Serve(w.nc, events.DefaultNames(), service.Endpoint{
		Name: "skein-commands", Description: "Commands.", Kind: "cmd", Version: "1.0.0", InFlight: 1000,
		Tenants: quota.Limits{Rate: 50, Burst: 50}, Metrics: &refused,
	}, w.d.Handle, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Stop(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	}()
	id := overNATS(t, w.nc, "thread.create", `{}`).ThreadID
	inbox := w.nc.NewInbox()
	answers, err := w.nc.SubscribeSync(inbox)
	if err != nil {
		t.Fatal(err)
	}
	for range 500 {
		if err := w.nc.PublishRequest("skein.cmd.acme.item.create", inbox, []byte(on(id, hello))); err != nil {
			t.Fatal(err)
		}
	}
	done := int64(0)
	for range 500 {
		m, err := answers.NextMsg(time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		switch m.Header.Get(events.HeaderErrorCode) {
		case "":
			done++
		case "429":
			if e := events.DecodeError(m.Data); e == nil || e.Code != events.QueueFull {
				t.Fatalf("%s", m.Data)
			}
		default:
			t.Fatalf("%v %s", m.Header, m.Data)
		}
	}
	if done < 49 || done == 500 || refused.count.Load() != 500-done {
		t.Errorf("%d were done, %d refused", done, refused.count.Load())
	}
	if list := w.commits(id); list[len(list)-1].Version != 2+done {
		t.Errorf("%d were acknowledged, and the log is at version %d", done, list[len(list)-1].Version)
	}
	if m, err := w.nc.Request("skein.cmd.globex.thread.create", []byte(`{}`), time.Minute); err != nil || m.Header.Get(events.HeaderErrorCode) != "" {
		t.Errorf("another tenant: %v %v", err, m)
	}
}
