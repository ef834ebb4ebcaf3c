package commands

import (
	"bytes"
	"reflect"
	"strconv"
	"testing"
	"time"

	"github.com/skein-threads/skein/events"
)

// by returns a request of the writer with a token.
func by(token, threadID, data string) string {
	return `{"writerToken":` + strconv.Quote(token) + `,"threadId":` + strconv.Quote(threadID) + `,"data":` + data + `}`
}

// AM-72: of two processes that claim a thread one has it, on every path by which a command
// comes: on its id, on its key, as a part of a commit, published, and as an upload.
func TestWriter_EveryPath(t *testing.T) {
	w := newWorld(t, Config{})
	other := w.another(Config{})
	id := must(t, w.d, "thread.create", `{"data":{"key":"k"}}`).ThreadID
	claimed := must(t, w.d, "writer.claim", on("key:k", `{"holder":"editor","ttlMs":300000}`))
	token := claimed.Result.Token
	if token == "" || claimed.Result.Until == "" {
		t.Fatalf("the claim is answered with %+v", claimed.Result)
	}
	commit := `{"commands":[{"command":"item.create","data":` + hello + `}]}`
	for _, d := range []*Dispatcher{w.d, other} {
		for _, c := range [][3]string{
			{"item.create", id, hello}, {"item.create", "key:k", hello}, {"thread.commit", id, commit}, {"thread.commit", "key:k", commit},
			{"writer.claim", id, `{"holder":"other"}`}, {"writer.renew", id, `{"token":"wtk_guessed"}`}, {"writer.release", "key:k", `{"token":"wtk_guessed"}`},
		} {
			e := refused(t, d, events.Held, c[0], on(c[1], c[2]))
			if e.Details == nil || e.Details.Holder != "editor" || e.Details.Until != claimed.Result.Until {
				t.Errorf("%s on %s names %+v", c[0], c[1], e.Details)
			}
			if c[0] == "item.create" || c[0] == "thread.commit" {
				refused(t, d, events.Held, c[0], by("wtk_guessed", c[1], c[2]))
				must(t, d, c[0], by(token, c[1], c[2]))
			}
		}
	}
	upload, err := other.BeginWrite(t.Context(), tenant, []byte(on(id, `{"path":"/a","mimeType":"text/plain"}`)), Meta{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := upload.Finish(t.Context(), events.FileContent{}); events.AsError(err).Code != events.Held {
		t.Errorf("an upload: %v", err)
	}
	must(t, other, "writer.release", on(id, `{"token":"`+token+`"}`))
	must(t, w.d, "item.create", on(id, hello))
}

// A repeated claim returns its token again, on every process, to those who know its command
// id. The log does not have it: a client that replays what the log shows learns nothing.
func TestWriter_RepeatedClaim(t *testing.T) {
	w := newWorld(t, Config{})
	id := create(t, w.d)
	const body = `{"holder":"editor"}`
	first := must(t, w.d, "writer.claim", with("secret-1", id, body))
	must(t, w.d, "item.create", by(first.Result.Token, id, hello))
	for name, d := range map[string]*Dispatcher{"same": w.d, "other": w.another(Config{})} {
		if again := must(t, d, "writer.claim", with("secret-1", id, body)); !reflect.DeepEqual(again, first) {
			t.Errorf("on the %s dispatcher: first %+v, then %+v", name, first, again)
		}
	}
	commit, err := w.log.Commit(t.Context(), tenant, id, uint64(first.Seq))
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(commit.Body, []byte(first.Result.Token)) || bytes.Contains(commit.Body, []byte("secret-1")) {
		t.Errorf("the log tells the token, or what it is derived from: %s", commit.Body)
	}
	refused(t, w.d, events.Held, "writer.claim", with(commit.Events[0].CommandID, id, body))
	refused(t, w.d, events.Held, "writer.claim", with("secret-2", id, body))
}

// A renewal that changes nothing is answered as one that does.
func TestWriter_RenewalIsAnswered(t *testing.T) {
	now := time.Date(2026, 2, 20, 12, 0, 0, 0, time.UTC)
	w := newWorld(t, Config{Now: func() time.Time { return now }})
	id := create(t, w.d)
	claimed := must(t, w.d, "writer.claim", on(id, `{"holder":"editor","ttlMs":30000}`))
	renew := on(id, `{"token":"`+claimed.Result.Token+`"}`)
	if r := must(t, w.d, "writer.renew", renew); len(r.Events) > 0 || !reflect.DeepEqual(r.Result, claimed.Result) {
		t.Errorf("an early renewal: %+v, %+v", r, r.Result)
	}
	now = now.Add(20 * time.Second)
	r := must(t, w.d, "writer.renew", renew)
	if len(r.Events) != 1 || r.Result.Token != claimed.Result.Token || r.Result.Until <= claimed.Result.Until {
		t.Errorf("a renewal: %+v, %+v", r, r.Result)
	}
	now = now.Add(time.Minute) // a holder that dies frees the thread without any event
	must(t, w.d, "item.create", on(id, hello))
	refused(t, w.d, events.Held, "writer.renew", renew)
	refused(t, w.d, events.Held, "item.create", by(claimed.Result.Token, id, hello))
}

// Who knows a claim's command id, its thread and its tenant cannot tell its token without the
// secret of the store: another store has another one.
func TestWriter_TokenIsKeyed(t *testing.T) {
	const id = "T-00000000-0000-7000-8000-000000000001"
	var tokens []string
	for range 2 {
		w := newWorld(t, Config{})
		must(t, w.d, "thread.create", on(id, `{}`))
		claimed := must(t, w.d, "writer.claim", with("guessable", id, `{"holder":"editor","ttlMs":300000}`))
		for _, token := range append(tokens, events.WriterToken(nil, tenant, "guessable")) {
			refused(t, w.d, events.Held, "item.create", by(token, id, hello))
		}
		must(t, w.another(Config{}), "item.create", by(claimed.Result.Token, id, hello))
		tokens = append(tokens, claimed.Result.Token)
	}
}
