package main_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/skein-threads/skein/internal/natstest"
)

// killLoad writes threads from several connections until the server is killed: turns,
// files, keys, and threads that are deleted and purged. It returns the number of
// acknowledged commands.
func (s *server) killLoad(t *testing.T, round int, enough int64, kill func()) int64 {
	t.Helper()
	var acknowledged atomic.Int64
	var once sync.Once
	var working sync.WaitGroup
	var conns [4]*nats.Conn
	for i := range conns {
		conns[i] = natstest.Dial(t, s.NATS, nats.NoReconnect())
	}
	for worker, nc := range conns { // the first may kill the server at once
		working.Go(func() {
			defer nc.Close()
			do := func(name, thread, data string) (id string, ok bool) {
				m, err := nc.Request("skein.cmd.acme."+name, fmt.Appendf(nil, `{"threadId":%q,"data":%s}`, thread, data), 30*time.Second)
				var r answered
				if err != nil || json.Unmarshal(m.Data, &r) != nil || r.Error != nil {
					return "", false
				}
				if acknowledged.Add(1) >= enough {
					once.Do(kill)
				}
				return r.ThreadID, true
			}
			for n := 0; ; n++ {
				id, ok := do("thread.create", "", fmt.Sprintf(`{"key":"order:%d:%d:%d"}`, round, worker, n))
				for i := 0; ok && i < 6; i++ {
					_, ok = do("thread.commit", id, fmt.Sprintf(`{"commands":[`+
						`{"command":"item.create","data":{"item":{"id":"itm_u%[1]d","type":"message","role":"user","content":[{"type":"input_text","text":"hello"}]}}},`+
						`{"command":"execution.create","data":{"id":"exe_%[1]d","triggerItemId":"itm_u%[1]d","reactionItemId":"itm_a%[1]d"}},`+
						`{"command":"step.create","data":{"id":"stp_%[1]d","executionId":"exe_%[1]d"}},`+
						`{"command":"part.put","data":{"stepId":"stp_%[1]d","idx":0,"type":"output_text","part":{"type":"output_text","text":"hello too"}}},`+
						`{"command":"step.status","data":{"stepId":"stp_%[1]d","to":"completed","continueLoop":false}},`+
						`{"command":"execution.status","data":{"executionId":"exe_%[1]d","to":"completed"}}]}`, i))
				}
				if ok {
					_, ok = do("file.write", id, `{"path":"/a/b.txt","content":"aGVsbG8="}`)
				}
				if ok && n%3 == 2 {
					_, ok = do("thread.delete", id, fmt.Sprintf(`{"purge":%t}`, n%2 == 0))
				}
				if !ok {
					return // the server was killed
				}
			}
		})
	}
	working.Wait()
	return acknowledged.Load()
}

// A server that is killed repeatedly under load leaves a store in which the audit finds
// nothing: in the log, the timeline, the read models, the snapshots and the contents of
// files, even if the store was created just before. It is killed 5 times, by make
// test-audit 20 times (AUDIT_KILLS).
func TestAudit_NoFalseAlarmAfterKills(t *testing.T) {
	t.Parallel()
	rounds, err := strconv.Atoi(cmp.Or(os.Getenv("AUDIT_KILLS"), "5"))
	if err != nil || rounds < 1 {
		t.Fatalf("AUDIT_KILLS is %q", os.Getenv("AUDIT_KILLS"))
	}
	store, total := t.TempDir(), int64(0)
	s := start(t, store)
	for round := range rounds {
		// The first kill comes before the first checkpoint, the others in the middle.
		enough := int64(1 + 150*round%1200)
		total += s.killLoad(t, round, enough, func() { _ = s.cmd.Process.Kill() })
		_ = s.cmd.Wait()
		s = start(t, store)
		s.env = []string{"SKEIN_SERVER=" + s.NATS}
		if o := run(t, s.env, "", "audit", "verify", "--all-tenants"); o.code != 0 {
			t.Fatalf("after %d kills and %d commands: exit %d: %s%s", round+1, total, o.code, o.out, o.err)
		} else {
			t.Logf("after %d kills and %d commands: %s", round+1, total, o.out)
		}
	}
	s.stop()
}
