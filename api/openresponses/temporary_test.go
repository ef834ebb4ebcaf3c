package openresponses_test

import (
	"fmt"
	"testing"

	"github.com/skein-threads/skein/api/openresponses"
	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
)

// A temporary response cannot be found when it has ended, nor continued, and its thread is
// deleted with its contents.
func TestTemporary_IsPurged(t *testing.T) {
	t.Parallel()
	w := start(t)
	got := w.must("POST", "/v1/responses", `{"model":"triage","input":"secret","store":false}`)
	if got["store"] != false || texts(got["output"]) != "Hello, you." {
		t.Errorf("%v", got)
	}
	id := got["id"].(string)
	if status, _ := w.do("GET", "/v1/responses/"+id, ""); status != 404 {
		t.Errorf("it is found: %d", status)
	}
	if status, e := w.do("POST", "/v1/responses", `{"model":"triage","input":"x","previous_response_id":"`+id+`"}`); status != 404 || e["error"].(object)["code"] != "previous_response_not_found" {
		t.Errorf("it is continued: %d %v", status, e)
	}
	if e := w.event(events.LifecycleDeletedType); !e.Data.(events.LifecycleDeleted).Purge {
		t.Errorf("its contents stay: %+v", e.Data)
	}
}

// The commit that begins a temporary response schedules its purge: if every process dies afterwards, the
// log knows that it is to go.
func TestTemporary_PurgeIsInTheLog(t *testing.T) {
	t.Parallel()
	w := start(t)
	release := make(chan struct{})
	w.model.answers(func(a *answer, _ map[string]any) {
		select {
		case <-release:
		case <-a.r.Context().Done():
		}
		a.says("Done.")
		a.ends("response.completed", "")
	})
	defer close(release)
	l := w.connect()
	l.write(`{"type":"response.create","model":"triage","input":"secret","store":false}`)
	scheduled := w.event(events.EffectScheduledType)
	if d := scheduled.Data.(events.EffectScheduled); d.Name != events.PurgeEffect || d.EveryMs != 60_000 {
		t.Errorf("%+v", d)
	}
	if began := w.event(events.ItemCreatedType); began.CommandID != scheduled.CommandID || began.Seq != scheduled.Seq {
		t.Errorf("the purge is not in the commit of the input: %+v, %+v", scheduled, began)
	}
}

// As long as somebody reads a temporary response, or may continue it, its purge is put off.
func TestTemporary_PurgeIsPutOff(t *testing.T) {
	t.Parallel()
	w := start(t)
	made, err := w.c.Send(t.Context(), "", events.CreateThread{})
	w.s.Must(err)
	first := "0190a000-0000-7000-8000-000000000001"
	_, err = w.c.Send(t.Context(), made.ThreadID, events.ScheduleEffect{ID: first, Name: events.PurgeEffect, EveryMs: new(int64(60_000))})
	w.s.Must(err)
	renew := openresponses.Renewing(w.c, made.ThreadID, first)
	last := first
	for range 3 {
		renew(t.Context())
		fresh, err := w.c.UpToDate(t.Context())
		w.s.Must(err)
		list, err := client.Read(t.Context(), fresh, events.ListEffects{ThreadID: made.ThreadID})
		w.s.Must(err)
		if len(list.Effects) != 1 || list.Effects[0].ID == last || list.Effects[0].Name != events.PurgeEffect {
			t.Fatalf("%+v", list.Effects)
		}
		last = list.Effects[0].ID
	}
}

// The thread that a socket keeps for a temporary response is purged when the socket is closed.
func TestTemporary_SocketCloses(t *testing.T) {
	t.Parallel()
	w := start(t)
	l := w.connect()
	first := last(l.ask(`{"type":"response.create","model":"triage","input":"one","store":false}`))
	second := last(l.ask(fmt.Sprintf(`{"type":"response.create","model":"triage","input":"two","store":false,"previous_response_id":%q}`, first["id"])))
	if second["status"] != "completed" {
		t.Fatalf("%v", second)
	}
	w.s.Must(l.conn.CloseNow())
	if e := w.event(events.LifecycleDeletedType); !e.Data.(events.LifecycleDeleted).Purge {
		t.Errorf("its contents stay: %+v", e.Data)
	}
}

// What was warmed up and never continued is purged when its socket is closed.
func TestTemporary_WarmedUp(t *testing.T) {
	t.Parallel()
	w := start(t)
	l := w.connect()
	l.ask(`{"type":"response.create","model":"triage","input":"one","store":false,"generate":false}`)
	w.s.Must(l.conn.CloseNow())
	if e := w.event(events.LifecycleDeletedType); !e.Data.(events.LifecycleDeleted).Purge {
		t.Errorf("its contents stay: %+v", e.Data)
	}
}

// event waits for the first event of a type.
func (w *world) event(kind events.Type) client.Event {
	w.t.Helper()
	timeline, err := w.c.Timeline(w.t.Context(), client.SubscribeOptions{From: client.Seq(1), Types: []string{string(kind)}})
	w.s.Must(err)
	defer timeline.Close()
	e, err := timeline.Next(w.t.Context())
	w.s.Must(err)
	return e
}
