package client_test

import (
	"reflect"
	"strings"
	"time"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/runtime"
)

func lifeRequirements() []requirement {
	return []requirement{
		{"SA-168", func(s *suite) {
			st := s.threadWith(events.CreateThread{Metadata: events.JSON(`{"plan":"gold"}`)})
			doc, err := client.Read(s.Context(), s.c, events.GetThread{ThreadID: st.ThreadID()})
			if err != nil || string(doc.Metadata) != `{"plan":"gold"}` || doc.MessageBlocks != nil {
				s.Errorf("%+v, %v", doc, err)
			}
		}},
		{"SA-169", func(s *suite) {
			st := s.thread()
			s.run(st, "one", events.ExecutionCompleted)
			s.same("the messages", texts(s.messages(st, events.GetMessagesOptions{Order: "asc"})), "ask one answer one")
		}},
		{"SA-170", func(s *suite) { // once idle, a later caller finds all of it, and nothing active
			st := s.thread()
			s.run(st, "one", events.ExecutionCompleted)
			now, err := connect(s, s.url).UpToDate(s.Context())
			if err != nil {
				s.Fatal(err)
			}
			late, err := now.Thread(s.Context(), st.ThreadID())
			if err != nil {
				s.Fatal(err)
			}
			list := s.messages(late, events.GetMessagesOptions{Limit: ptr(int64(1))})
			if late.Execution() != nil || len(list.Messages) != 1 || *list.Messages[0].Content != "answer one" || list.Total != 2 || !list.HasMore {
				s.Errorf("the execution is %v, the messages %+v", late.Execution(), list)
			}
			s.same("the agent", late.AgentID(), st.AgentID())
		}},
		{"SA-171", func(s *suite) {
			st := s.thread()
			first, second := s.run(st, "one", events.ExecutionCompleted), s.run(st, "two", events.ExecutionCompleted)
			if first == second {
				s.Error("the second message started no execution of its own")
			}
			s.same("the messages", texts(s.messages(st, events.GetMessagesOptions{Order: "asc"})), "ask one answer one ask two answer two")
		}},
		{"SA-172", func(s *suite) { // storage does not show: only plain values cross the interface
			s.plain("nats", "jetstream", "eventlog", "documents")
		}},
		{"SA-173", func(s *suite) { s.plain("nats", "zerolog", "server") }},
		{"SA-174", func(s *suite) {
			s.plain("projections", "commands", "eventlog")
			for i := range reflect.TypeFor[client.ThreadState]().NumField() {
				if f := reflect.TypeFor[client.ThreadState]().Field(i); f.IsExported() {
					s.Errorf("the field %s shows", f.Name)
				}
			}
		}},
		{"SA-175", func(s *suite) {
			st := s.thread()
			_, err := s.c.Thread(s.Context(), "T-01900000-0000-7000-8000-000000000000")
			s.refused(err, events.NotFound)
			_, err = st.GetMessages(s.Context(), events.GetMessagesOptions{Limit: ptr(int64(-1))})
			s.refused(err, events.InvalidRequest)
			_, err = st.GetMessages(s.Context(), events.GetMessagesOptions{Offset: ptr(int64(-1))})
			s.refused(err, events.InvalidRequest)
			_, err = st.GetMessages(s.Context(), events.GetMessagesOptions{Order: "sideways"})
			s.refused(err, events.InvalidRequest)
			_, err = st.GetMessage(s.Context(), "")
			s.refused(err, events.InvalidRequest)
			_, err = st.InjectMessage(s.Context(), events.AddMessage{})
			s.refused(err, events.InvalidRequest)
			_, err = st.GetLogs(s.Context(), events.GetLogsOptions{Level: "loud"})
			s.refused(err, events.InvalidRequest)
			lost, err := client.Connect(s.url, client.Options{Tenant: "acme", Timeout: time.Minute})
			if err != nil {
				s.Fatal(err)
			}
			gone, err := lost.Thread(s.Context(), st.ThreadID())
			if err != nil {
				s.Fatal(err)
			}
			lost.Close() // the storage becomes unreachable
			_, err = gone.GetMessages(s.Context(), events.GetMessagesOptions{})
			s.refused(err, events.Unavailable)
			s.refused(gone.Emit(s.Context(), "progress", 1), events.Unavailable)
		}},
		{"SA-176", func(s *suite) {
			st := s.thread()
			if list := s.messages(st, events.GetMessagesOptions{}); list.Messages == nil || len(list.Messages) != 0 || list.Total != 0 || list.HasMore {
				s.Errorf("%+v", list)
			}
			if m, err := st.GetMessage(s.Context(), "itm_nobody"); m != nil || err != nil {
				s.Errorf("%v, %v", m, err)
			}
			if lines, err := st.GetLogs(s.Context(), events.GetLogsOptions{}); lines == nil || len(lines) != 0 || err != nil {
				s.Errorf("%v, %v", lines, err)
			}
			s.same("a message that says nothing", s.inject(st, events.AddMessage{Role: events.FromAssistant}).Content, (*string)(nil))
		}},
	}
}

// plain checks that no type of the interface comes from a package of these names.
func (s *suite) plain(names ...string) {
	s.Helper()
	face := reflect.TypeFor[runtime.ThreadState]()
	for i := range face.NumMethod() {
		m := face.Method(i).Type
		for n := range m.NumIn() + m.NumOut() {
			var at reflect.Type
			if n < m.NumIn() {
				at = m.In(n)
			} else {
				at = m.Out(n - m.NumIn())
			}
			for at.Kind() == reflect.Pointer || at.Kind() == reflect.Slice {
				at = at.Elem()
			}
			for _, name := range names {
				if strings.Contains(at.PkgPath(), name) {
					s.Errorf("%s shows %s", face.Method(i).Name, at)
				}
			}
		}
	}
}

// run records one react on the thread, and returns its execution.
func (s *suite) run(st *client.ThreadState, name string, ends events.ExecutionStatus) string {
	s.Helper()
	ctx, id := s.Context(), st.ThreadID()
	ask := s.say(st, "ask "+name)
	s.do(s.c.Send(ctx, id, events.SetThreadStatus{To: events.ThreadStreaming}))
	x := s.do(s.c.Send(ctx, id, events.CreateExecution{TriggerItemID: ask.ID})).Result
	defer func() { // the handle reads its own writes, and this was written by another client
		if m, err := st.UpdateMessage(ctx, x.ReactionItemID, events.MessageUpdates{Metadata: events.JSON(`{"done":true}`)}); err != nil {
			s.Errorf("%+v, %v", m, err)
		}
	}()
	s.inject(st, events.AddMessage{ID: x.ReactionItemID, Role: events.FromAssistant, Content: ptr("answer " + name), Status: events.MessagePending})
	s.do(s.c.Send(ctx, id, events.SetItemStatus{ItemID: x.ReactionItemID, To: events.ItemCompleted}))
	s.do(s.c.Send(ctx, id, events.SetExecutionStatus{ExecutionID: x.ExecutionID, To: ends}))
	s.do(s.c.Send(ctx, id, events.FinishThread{ExecutionID: x.ExecutionID}))
	s.do(s.c.Send(ctx, id, events.SetThreadStatus{To: events.ThreadOpen}))
	return x.ExecutionID
}
