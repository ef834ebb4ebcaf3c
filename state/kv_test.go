package state_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/state"
)

// Pairs belong to the tenant, have their own time, and outlive the state of threads.
func TestKV(t *testing.T) { // AG-41 AG-42 AG-43 AG-45
	t.Parallel()
	s := open(t)
	sent := must(s.nc.SubscribeSync("skein.cmd.acme.kv.set"))(t)
	a := s.visit(func(_ http.ResponseWriter, r *http.Request) error {
		ctx, kv := r.Context(), state.KV(r.Context())
		key := "chat_" + state.Thread(ctx).ID
		none, err := state.GetKV[[]string](ctx, kv, "conversations", key)
		if none.Exists || none.Data != nil || err != nil {
			t.Errorf("before the first set: %+v, %v", none, err)
		}
		for _, seconds := range []int64{0, -1} {
			if err := kv.Set(ctx, "conversations", key, 1, state.TTLSeconds(seconds)); !refused(err, events.InvalidRequest) {
				t.Errorf("a time of %d seconds: %v", seconds, err)
			}
		}
		if err := kv.Set(ctx, "conversations", key, func() {}); !refused(err, events.InvalidRequest) {
			t.Errorf("a function: %v", err)
		}
		return errors.Join(kv.Set(ctx, "conversations", key, []string{"Hello"}, state.TTLSeconds(86400)), kv.Set(ctx, "archives", key, 1), state.Thread(ctx).Set(ctx, "a", 1), state.Thread(ctx).Destroy(ctx))
	})
	s.visit(func(_ http.ResponseWriter, r *http.Request) error {
		ctx, kv := r.Context(), state.KV(r.Context())
		key := "chat_" + a.id()
		got, err := state.GetKV[[]string](ctx, kv, "conversations", key)
		if !got.Exists || fmt.Sprint(got.Data) != "[Hello]" {
			t.Errorf("another visitor reads %+v", got)
		}
		if got, err := state.GetKV[int](ctx, kv, "conversations", key); !refused(err, events.InvalidRequest) || !got.Exists {
			t.Errorf("a list as a number: %+v, %v", got, err)
		}
		err = errors.Join(err, kv.Delete(ctx, "archives", key))
		gone, err2 := state.GetKV[int](ctx, kv, "archives", key)
		if gone.Exists {
			t.Errorf("what was deleted is %+v", gone)
		}
		return errors.Join(err, err2)
	})
	for _, want := range []string{`"ttlSeconds":86400`, ""} {
		m := must(sent.NextMsgWithContext(t.Context()))(t)
		if has := strings.Contains(string(m.Data), "ttlSeconds"); has != (want != "") || !strings.Contains(string(m.Data), want) {
			t.Errorf("the command is %s", m.Data)
		}
	}
}
