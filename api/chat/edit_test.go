package chat_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/natstest"
)

// hide hides a message and what follows it, and asks nothing.
func (w *world) hide(chat string, index int64, id string) {
	w.Helper()
	stays := max(index-1, 0)
	_, err := w.client.Send(w.Context(), "key:"+chat, events.TruncateThread{MessageIndex: &stays, Interrupt: true})
	w.server.Must(err)
	if index == 0 {
		_, err = w.client.Send(w.Context(), "key:"+chat, events.DeleteMessage{ItemID: id})
		w.server.Must(err)
	}
}

// A message that somebody hid is asked about when a client that still shows it edits it, or asks
// for its answer again.
func TestChat_EditOfHiddenMessage(t *testing.T) {
	w := newWorld(t, echo)
	w.post(submit("c1", text("u1", "one"))).rest()
	second := w.post(submit("c1", text("u2", "two"))).rest()
	w.hide("c1", 2, "u2")
	if got := said(w.messages("c1")); got != "user: one | assistant: you said one" {
		t.Fatalf("%s", got)
	}
	w.post(`{"id":"c1","trigger":"regenerate-message","messageId":` + quote(second.id) + `,"messages":[` + text("u1", "one") + `,` + text("u2", "two") + `]}`).rest()
	list := w.messages("c1")
	if got := said(list); got != "user: one | assistant: you said one | user: two | assistant: you said two" || list[2].ID != "u2" {
		t.Errorf("regenerated: %s, %+v", got, list)
	}
	w.hide("c1", 0, "u1")
	edit := `{"id":"c1","trigger":"submit-message","messageId":"u1","messages":[` + text("u1", "uno") + `]}`
	w.post(edit).rest()
	if list = w.messages("c1"); said(list) != "user: uno | assistant: you said uno" || list[0].ID != "u1" {
		t.Errorf("edited: %s, %+v", said(list), list)
	}
	status, body := w.do(http.MethodPost, "/chat", `{"id":"c1","trigger":"regenerate-message","messageId":"nobody","messages":[`+text("u1", "uno")+`]}`)
	if status != http.StatusNotFound {
		t.Errorf("an answer that never was: %d %s", status, body)
	}
}

// An edit and a regeneration are one commit each: nobody sees a message hidden and not asked
// about, whatever dies, and a relationship that was made at a hidden message goes with it on both
// threads.
func TestChat_EditIsOneCommit(t *testing.T) {
	w := newWorld(t, echo)
	w.post(submit("c1", text("u1", "one"))).rest()
	answer := w.post(submit("c1", text("u2", "two"))).rest()
	other, err := w.client.Send(t.Context(), "", events.CreateThread{})
	w.server.Must(err)
	_, err = w.client.Send(t.Context(), "key:c1", events.MentionThread{MentionedID: other.ThreadID})
	w.server.Must(err)
	for _, one := range []struct {
		body, says string
		types      []events.Type
	}{
		{`{"id":"c1","trigger":"regenerate-message","messageId":` + quote(answer.id) + `,"messages":[` + text("u1", "one") + `,` + text("u2", "two") + `]}`,
			"user: one | assistant: you said one | user: two | assistant: you said two",
			[]events.Type{events.HistoryTruncatedType, events.RelationshipRemovedType, events.ItemCreatedType, events.ExecutionCreatedType}},
		{`{"id":"c1","trigger":"submit-message","messageId":"u1","messages":[` + text("u1", "uno") + `]}`,
			"user: uno | assistant: you said uno",
			[]events.Type{events.HistoryTruncatedType, events.MessageDeletedType, events.ItemCreatedType, events.ExecutionCreatedType}},
	} {
		before, err := client.Read(t.Context(), w.upToDate().client, events.GetThread{ThreadID: "key:c1"})
		w.server.Must(err)
		timeline, err := w.client.Timeline(t.Context(), client.SubscribeOptions{Thread: before.ID, From: client.Now()})
		w.server.Must(err)
		w.post(one.body).rest()
		seqs := map[int64]bool{}
		for _, kind := range one.types {
			for {
				e, err := timeline.Next(t.Context())
				w.server.Must(err)
				if e.Type == kind {
					seqs[e.Seq] = true
					break
				}
			}
		}
		timeline.Close()
		if len(seqs) != 1 {
			t.Errorf("%v are of the commits %v", one.types, seqs)
		}
		if list := w.messages("c1"); said(list) != one.says {
			t.Errorf("%s", said(list))
		}
	}
	left, err := w.upToDate().client.Query(t.Context(), "relationship.list", events.ListRelationships{ThreadID: other.ThreadID})
	w.server.Must(err)
	if string(left) != `{"relationships":[]}` {
		t.Errorf("the other thread has %s", left)
	}
}

// count returns a function that returns how often the edge has sent a query of acme since.
func (w *world) count(query string) func() int32 {
	w.Helper()
	nc := natstest.Dial(w, w.server.Addresses().NATS)
	n := &atomic.Int32{}
	_, err := nc.Subscribe("skein.query.acme."+query, func(*nats.Msg) { n.Add(1) })
	w.server.Must(err)
	w.server.Must(nc.Flush())
	return func() int32 {
		w.server.Must(nc.Flush()) // what was answered before has been counted
		return n.Load()
	}
}

// A chat of more runs than one answer of Skein holds is listed, and its first message edited.
func TestChat_OfManyRuns(t *testing.T) {
	w := newWorld(t, echo)
	w.post(submit("c1", text("u1", "one"))).rest()
	why := strings.Repeat("too late ", 7_000)
	const runs = 80 // 5 MB
	for n := range runs {
		item, x := fmt.Sprintf("m%d", n), fmt.Sprintf("exe_%d", n)
		var list []events.SubCommand
		add := func(name string, data any) {
			one, err := client.Sub(name, data)
			w.server.Must(err)
			list = append(list, one)
		}
		add("item.create", events.CreateItem{Item: events.NewItem{ID: item, Type: events.Message, Role: events.User, Content: events.JSON("[]")}})
		add("execution.create", events.CreateExecution{ID: x, TriggerItemID: item})
		add("execution.status", events.SetExecutionStatus{ExecutionID: x, To: events.ExecutionFailed, ErrorText: why})
		_, err := w.client.Commit(t.Context(), "key:c1", list)
		w.server.Must(err)
	}
	asked := w.count("execution.list")
	if list := w.messages("c1"); len(list) != 2+2*runs && len(list) != 2+runs {
		t.Errorf("%d messages", len(list))
	}
	if n := asked(); n == 0 || n > runs/2 {
		t.Errorf("the executions were asked for %d times: each page is read once", n)
	}
	w.post(`{"id":"c1","trigger":"submit-message","messageId":"u1","messages":[` + text("u1", "uno") + `]}`).rest()
	if list := w.messages("c1"); said(list) != "user: uno | assistant: you said uno" {
		t.Errorf("%s", said(list))
	}
}

// A long chat is listed whole and in order, whatever was hidden in it.
func TestChat_LongList(t *testing.T) {
	w := newWorld(t, echo)
	w.post(submit("c1", text("u0", "begin"))).rest()
	roles := []events.Role{events.User, events.Assistant}
	const turns = 450 // more than two pages
	for from := 0; from < turns; from += 75 {
		var list []events.SubCommand
		for n := from; n < from+75; n++ {
			one, err := client.Sub("item.create", events.CreateItem{Item: events.NewItem{
				ID: fmt.Sprintf("m%d", n), Type: events.Message, Role: roles[n%2], Content: events.JSON(fmt.Sprintf(`[{"type":"input_text","text":"message %d"}]`, n)),
			}})
			w.server.Must(err)
			list = append(list, one)
		}
		_, err := w.client.Commit(t.Context(), "key:c1", list)
		w.server.Must(err)
	}
	_, err := w.client.Send(t.Context(), "key:c1", events.DeleteMessage{ItemID: "m200"})
	w.server.Must(err)
	asked := w.count("execution.list")
	list := w.messages("c1")
	if len(list) != turns-1+2 {
		t.Fatalf("%d messages", len(list))
	}
	if n := asked(); n == 0 || n > 20 {
		t.Errorf("the executions were asked for %d times: they are one page, which no message reads again", n)
	}
	at := 2
	for n := range turns {
		if n == 200 {
			continue
		}
		if list[at].ID != fmt.Sprintf("m%d", n) || said(list[at:at+1]) != fmt.Sprintf("%s: message %d", roles[n%2], n) {
			t.Fatalf("message %d is %s: %s", at, list[at].ID, said(list[at:at+1]))
		}
		at++
	}
}

// A message that is sent while another is being written waits in the queue; its sender follows
// it from there to its end, and others resume the one that is written first.
func TestChat_QueuedIsFollowedToItsEnd(t *testing.T) {
	p := newPaced()
	w := newWorld(t, p.react)
	one := w.post(submit("c1", text("u1", "hi")))
	p.pieces <- "first"
	first := one.message()
	one.until("text-delta")
	two := w.post(submit("c1", text("u2", "ho")))
	second := two.message()
	if other := w.stream(http.MethodGet, "/chat/c1/stream", "").message(); other != first || second == first {
		t.Errorf("resumed %s, while %s is written and %s waits", other, first, second)
	}
	p.pieces <- ""
	p.pieces <- "second"
	p.pieces <- " answer"
	p.pieces <- ""
	if m := one.rest(); m.String() != "step | text=first" || m.end != "stop" {
		t.Errorf("%s, %s", m, m.end)
	}
	if m := two.rest(); m.id != second || m.String() != "step | text=second answer" || m.end != "stop" {
		t.Errorf("%s: %s, %s", m.id, m, m.end)
	}
	if got := said(w.messages("c1")); got != "user: hi | assistant: first | user: ho | assistant: second answer" {
		t.Errorf("%s", got)
	}
}

// An approval that two tabs answer differently at once has one answer, in the log and in the
// message. The other tab is told so, or goes on with that message.
func TestTools_ApprovalFromTwoTabs(t *testing.T) {
	w := newWorld(t, caller)
	message := w.post(careful("c1", text("u1", "hi"))).rest().id
	statuses := make(chan int, 2)
	for _, approved := range []string{"true", "false"} {
		go func() {
			r := w.request(t.Context(), http.MethodPost, "/chat", "acme",
				answers("c1", message, `{"type":"tool-refund","toolCallId":"c1","state":"approval-responded","input":{"eur":5},"approval":{"id":"c1","approved":`+approved+`}}`))
			defer func() { _ = r.Body.Close() }()
			if raw, err := io.ReadAll(r.Body); err != nil || r.StatusCode == http.StatusOK && !strings.Contains(string(raw), "[DONE]") {
				t.Errorf("%s, %v", raw, err)
			}
			statuses <- r.StatusCode
		}()
	}
	for range 2 {
		if got := <-statuses; got != http.StatusOK && got != http.StatusConflict {
			t.Errorf("an answer has the status %d", got)
		}
	}
	w.server.WaitIdle()
	now := w.upToDate().client
	page, err := client.Read(t.Context(), now, events.ListEvents{ThreadID: "key:c1", Types: []string{string(events.ApprovalGrantedType), string(events.ApprovalDeniedType), string(events.ApprovalResolvedType)}})
	w.server.Must(err)
	if len(page.Events) != 1 {
		t.Fatalf("the answers are %s", page.Events)
	}
	want := "output-denied"
	if strings.Contains(string(page.Events[0]), string(events.ApprovalGrantedType)) {
		want = "output-available"
	}
	list := w.messages("c1")
	if last := list[len(list)-1]; len(list) != 2 || last.ID != message || partState(last, "c1") != want {
		t.Errorf("%s, and the list is %+v", want, list)
	}
}
