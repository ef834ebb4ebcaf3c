package archive_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"github.com/skein-threads/skein/commands"
	"github.com/skein-threads/skein/commands/thread"
	"github.com/skein-threads/skein/eventlog"
	"github.com/skein-threads/skein/eventlog/backup"
	"github.com/skein-threads/skein/events"
)

// A purged thread stays deleted, however a process knows of it: no command creates it again, and
// each is refused as by the process that purged it.
func TestPurged_IsNotCreatedAgain(t *testing.T) {
	t.Parallel()
	w := start(t)
	live, second := w.dispatcher(), w.dispatcher()
	other := mustDo(t, live, "thread.create", `{"data":{"key":"other"}}`).ThreadID
	ways := map[string]struct {
		before func(id string) // the deletion
		after  func(id string) *commands.Dispatcher
	}{
		"by the process that purged it": {after: func(string) *commands.Dispatcher { return live }},
		"from the tombstone":            {after: func(string) *commands.Dispatcher { return w.dispatcher() }},
		"by a second process that had it in memory": {
			before: func(id string) { mustDo(t, second, "item.create", body("", id, said)) },
			after:  func(string) *commands.Dispatcher { return second },
		},
		"with a snapshot from before": {after: func(id string) *commands.Dispatcher {
			var raw bytes.Buffer
			state := &thread.State{}
			state.Version, state.Seq, state.Chain = 3, 1, strings.Repeat("0", 64)
			if err := errors.Join(state.EncodeTo(&raw), eventlog.SnapshotsOn(w.log.Streams()).Save(w.ctx, "acme", id, raw.Bytes())); err != nil {
				t.Fatal(err)
			}
			return commands.NewDispatcher(w.open(), w.validator(), commands.Config{SnapshotEvery: 1}, zerolog.Nop(), nil)
		}},
		"archived before": {
			before: func(id string) { w.archive(id) },
			after:  func(string) *commands.Dispatcher { return w.dispatcher() },
		},
		"cold before": {
			before: func(id string) { w.shown(); w.cold(id) },
			after:  func(string) *commands.Dispatcher { return w.dispatcher() },
		},
		"in a restored backup": {after: func(id string) *commands.Dispatcher {
			dir := filepath.Join(t.TempDir(), "backup")
			if _, err := backup.Write(w.ctx, w.log, dir, func(string, int64) {}); err != nil {
				t.Fatal(err)
			}
			_, log := restored(t, dir)
			return commands.NewDispatcher(log, w.validator(), commands.Config{}, zerolog.Nop(), nil)
		}},
	}
	n := 0
	for name, way := range ways {
		n++
		key, create, resolve := fmt.Sprintf("visitor-%d", n), fmt.Sprintf("create-%d", n), fmt.Sprintf("resolve-%d", n)
		first := `{"commandId":"` + create + `","data":{"userId":"u1"}}`
		byKey := `{"commandId":"` + resolve + `","data":{"key":"` + key + `"}}`
		var ids []string
		for _, id := range []string{mustDo(t, live, "thread.create", first).ThreadID, mustDo(t, live, "thread.resolve", byKey).ThreadID} {
			mustDo(t, live, "state.merge", body("merge", id, `{"create":true,"operations":[{"op":"set","key":"k","value":1}]}`))
			mustDo(t, live, "state.destroy", body("", id, `{}`)) // a thread in use is not archived
			if way.before != nil {
				way.before(id)
			}
			mustDo(t, live, "thread.delete", body("delete", id, `{"purge":true}`))
			w.erased(id)
			ids = append(ids, id)
		}
		d := way.after(ids[0])
		for _, id := range ids {
			for _, c := range []struct {
				name, body string
				code       events.Code
			}{
				{"thread.create", body("", id, `{}`), events.AlreadyExists},
				{"thread.create", body("", id, `{"key":"`+key+`"}`), events.AlreadyExists},
				{"thread.create", body("", id, `{"mainThreadId":"`+other+`"}`), events.AlreadyExists},
				{"thread.create", `{"expectedVersion":0,"threadId":"` + id + `"}`, events.AlreadyExists},
				{"thread.create", first, events.AlreadyExists},
				{"thread.resolve", body("", id, `{"key":"`+key+`"}`), events.AlreadyExists},
				{"thread.resolve", byKey, events.AlreadyExists},
				{"thread.commit", body("", id, `{"commands":[{"command":"thread.create"},{"command":"item.create","data":`+said+`}]}`), events.AlreadyExists},
				{"state.merge", body("", id, `{"create":true,"operations":[{"op":"set","key":"k","value":1}]}`), events.NotFound},
				{"state.merge", body("merge", id, `{"create":true,"operations":[{"op":"set","key":"k","value":1}]}`), events.NotFound},
				{"state.merge", `{"expectedVersion":0,"threadId":"` + id + `","data":{"create":true,"operations":[{"op":"set","key":"k","value":1}]}}`, events.NotFound},
				{"item.create", body("", id, said), events.NotFound},
				{"thread.react", body("", id, `{"text":"hello","agentId":"a"}`), events.NotFound},
				{"thread.fork", body("", id, `{"version":1}`), events.NotFound},
				{"thread.handoff", body("", id, `{"summary":"s"}`), events.NotFound},
				{"thread.mention", body("", id, `{"mentionedId":"`+other+`"}`), events.NotFound},
				{"thread.mention", body("", other, `{"mentionedId":"`+id+`"}`), events.NotFound},
				{"thread.create", `{"data":{"mainThreadId":"` + id + `"}}`, events.NotFound},
				{"thread.delete", body("", id, `{"purge":true}`), events.NotFound},
			} {
				reply, err := d.Do(w.ctx, "acme", c.name, []byte(c.body), commands.Meta{})
				if e := events.AsError(err); err == nil || e.Code != c.code {
					t.Errorf("%s: %s %s: %+v, %v; want %s", name, c.name, c.body, reply, err, c.code)
				}
			}
			if again := mustDo(t, d, "thread.delete", body("delete", id, `{"purge":true}`)); again.ThreadID != id {
				t.Errorf("%s: the deletion again: %+v", name, again)
			}
			_ = d.Look(w.ctx, "acme", id, func(s *thread.State) {
				if !s.Existed() || s.Exists() {
					t.Errorf("%s: existed %v, exists %v", name, s.Existed(), s.Exists())
				}
			})
			if stored := w.stored(id); len(stored) != 1 {
				t.Errorf("%s: the log has %d commits of it", name, len(stored))
			}
		}
		if next := mustDo(t, d, "thread.resolve", `{"data":{"key":"`+key+`"}}`); next.ThreadID == ids[0] || next.ThreadID == ids[1] {
			t.Errorf("%s: the key of the purged thread names it again: %+v", name, next)
		}
	}
	w.clean()
}

const said = `{"item":{"type":"message","role":"user","content":[{"type":"input_text","text":"hello"}]}}`

// body returns a request for a thread; the id may be empty.
func body(commandID, thread, data string) string {
	return fmt.Sprintf(`{"commandId":%q,"threadId":%q,"data":%s}`, commandID, thread, data)
}

// mustDo does a command that is not refused.
func mustDo(t *testing.T, d *commands.Dispatcher, name, body string) *events.Reply {
	t.Helper()
	reply, err := d.Do(context.WithoutCancel(t.Context()), "acme", name, []byte(body), commands.Meta{})
	if err != nil {
		t.Fatalf("%s %s: %v", name, body, err)
	}
	return reply
}
