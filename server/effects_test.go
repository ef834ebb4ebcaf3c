package server_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/natstest"
	"github.com/skein-threads/skein/runtime"
	"github.com/skein-threads/skein/runtime/remote"
	"github.com/skein-threads/skein/server"
)

// SA-22, SA-70, SA-71, SA-72, SA-73, SA-74, SA-75, SA-76, SA-77, SA-78, C-38: a tool
// schedules an effect and continues; the effect runs outside the conversation, by its
// name, with its arguments, and with a state and an execution of its own.
func TestEffectOfATool(t *testing.T) {
	t.Parallel()
	ran := make(chan *runtime.EffectInput, 4)
	seen, over := &got[facts]{}, make(chan struct{})
	s := newStage(t, func(c *server.Config) {
		c.Env = map[string]any{"MAIL": "smtp"}
		addEffect(c, "remind", runtime.EffectFunc(func(ctx context.Context, in *runtime.EffectInput) error {
			defer close(over)
			ran <- in
			st := in.State
			x := st.Execution()
			seen.add(factsOf(x))
			if err := x.ForceTurn(events.SideB); err == nil || len(x.MessageHistory()) != 0 || isClosed(x.AbortSignal()) {
				t.Errorf("the execution of an effect: %v, %v", err, x.MessageHistory())
			}
			x.Stop()
			seen.add(factsOf(x))
			st.Scratch().Store("n", 1)
			if st.ThreadID() != in.ThreadID || st.AgentID() != "script" || *st.UserID() != "ada" || st.CreatedAt() == 0 {
				t.Errorf("the thread is %s of %s", st.ThreadID(), st.AgentID())
			}
			if open, ok := st.(client.NotPortable); !ok || open.RuntimeContext()["env"].(map[string]any)["MAIL"] != "smtp" {
				t.Error("SA-155: an effect does not see env")
			}
			text := "reminded"
			_, err := st.InjectMessage(ctx, events.AddMessage{Role: events.FromSystem, Content: &text})
			result, bad := st.InvokeTool(ctx, "probe", map[string]string{"act": "inner"}) // in a run of its own
			if string(result.Result) != `"inner"` {
				t.Errorf("a tool gave %+v", result)
			}
			return errors.Join(err, bad)
		}))
	})
	st := s.thread("script")
	id := make(chan string, 1)
	s.on("schedule", func(ctx context.Context, in *runtime.ToolInput) (any, error) {
		effect, err := in.State.ScheduleEffect(ctx, "remind", map[string]string{"to": "ada"}, 300*time.Millisecond)
		if len(ran) != 0 {
			t.Error("SA-71: it ran at once")
		}
		id <- effect
		return nil, err
	})
	s.on("inner", func(_ context.Context, in *runtime.ToolInput) (any, error) {
		if _, ok := in.State.Scratch().Load("n"); ok {
			t.Error("the tool has the store of the effect")
		}
		return "inner", nil
	})
	x := s.play(st, []one{probe("schedule")}) // does not wait for it (SA-73)
	effect := <-id
	if u, err := uuid.Parse(effect); err != nil || u.String() != effect {
		t.Errorf("SA-78: the id is %q", effect)
	}
	in := <-ran
	<-over
	if in.EffectID != effect || in.Name != "remind" || string(in.Args) != `{"to":"ada"}` {
		t.Errorf("it received %+v", in)
	}
	want := []facts{{effect, "a", 0, 0, 0, false, ""}, {effect, "a", 0, 0, 0, true, ""}}
	if got := seen.all(); len(got) != 2 || got[0] != want[0] || got[1] != want[1] || got[0].flow == x.ID {
		t.Errorf("its execution was %+v, not %+v", got, want)
	}
	if list := must(s.fresh(st).GetMessages(t.Context(), asc()))(t); !strings.Contains(written(t, list), "reminded") {
		t.Error("the effect's message is not there")
	}
}

// SA-74, SA-77, SA-79, SA-80, SA-81, SA-82, SA-83, SA-84, SA-85, SA-86: what is
// pending, for a tool and for a caller alike, until it is removed.
func TestPendingEffectsInATool(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	st := s.thread("script")
	check := func(ctx context.Context, st runtime.ThreadState) {
		delay := 30 * time.Minute
		id := must(st.ScheduleEffect(ctx, "send_reminder_email", map[string]string{"to": "ada"}, delay))(t)
		other := must(st.ScheduleEffect(ctx, "tidy", nil, time.Hour))(t)
		all := must(st.GetScheduledEffects(ctx, ""))(t)
		some := must(st.GetScheduledEffects(ctx, "send_reminder_email"))(t)
		if len(all) != 2 || len(some) != 1 || all[1].ID != other || some[0].ID != id {
			t.Fatalf("SA-84: pending are %s, and by name %s", written(t, all), written(t, some))
		}
		if e := some[0]; e.Name != "send_reminder_email" || string(e.Args) != `{"to":"ada"}` || e.ScheduledAt != e.CreatedAt+delay.Microseconds() {
			t.Errorf("SA-83: it is %s", written(t, e))
		}
		if string(all[1].Args) != "{}" {
			t.Errorf("SA-81: without arguments it is %s", written(t, all[1]))
		}
		for name, want := range map[string]bool{id: true, other: true, uuid.NewString(): false, "no-uuid": false} {
			if cancelled := must(st.RemoveScheduledEffect(ctx, name))(t); cancelled != want {
				t.Errorf("SA-85: removing %s: %v", name, cancelled)
			}
		}
		if cancelled := must(st.RemoveScheduledEffect(ctx, id))(t); cancelled {
			t.Error("SA-85: it was removed twice")
		}
		if left := must(st.GetScheduledEffects(ctx, ""))(t); left == nil || len(left) != 0 {
			t.Errorf("SA-86: pending are %s", written(t, left))
		}
		if _, err := st.ScheduleEffect(ctx, "tidy", nil, -time.Second); events.AsError(err).Code != events.InvalidRequest {
			t.Errorf("SA-77: a delay below 0: %v", err)
		}
		if _, err := st.ScheduleEffect(ctx, "tidy", "text", 0); events.AsError(err).Code != events.InvalidRequest {
			t.Errorf("SA-76: arguments that are no object: %v", err)
		}
	}
	check(t.Context(), st)
	done := make(chan struct{})
	s.on("effects", func(ctx context.Context, in *runtime.ToolInput) (any, error) {
		defer close(done)
		check(ctx, in.State)
		return nil, nil
	})
	s.play(st, []one{probe("effects")})
	<-done
}

// SA-75: an effect in another process. While no process serves it, the effect waits,
// and uses up no attempt; then it runs.
func TestEffectOfAnotherProcess(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	st := s.thread("script")
	none := int64(0)
	reply := must(s.Send(t.Context(), st.ThreadID(), events.ScheduleEffect{Name: "remote", Retries: &none}))(t)
	s.until(st, string(events.EffectFailedType), 1)
	list := must(client.Read(t.Context(), s.latest(), events.ListEvents{ThreadID: st.ThreadID(), Types: []string{string(events.EffectFailedType)}}))(t)
	if d := must(events.DecodeEvent(list.Events[0]))(t).Data.(events.EffectFailed); !d.NotMade || d.Final || !strings.Contains(d.ErrorText, "skein.effect.remote: no process answers there") {
		t.Errorf("no process was there: %+v", d)
	}
	nc := natstest.Dial(t, s.server.Addresses().NATS)
	defer nc.Close()
	ran := make(chan *runtime.EffectInput, 1)
	service := must(remote.ServeEffect(nc, events.DefaultNames(), "remote", runtime.EffectFunc(func(_ context.Context, in *runtime.EffectInput) error {
		ran <- in
		return nil
	})))(t)
	defer func() { _ = service.Close(context.Background()) }()
	if in := <-ran; in.EffectID != reply.Result.EffectID || in.Attempt != 1 || in.ThreadID != st.ThreadID() || in.Tenant != "acme" {
		t.Errorf("it received %+v", in)
	}
	s.until(st, string(events.EffectCompletedType), 1)
}
