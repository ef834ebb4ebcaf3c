package query

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/skein-threads/skein/commands"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/projections"
	"github.com/skein-threads/skein/service"
)

// A token opens the messages of its thread and nothing else, until its share is revoked or has
// ended.
func TestShare_TokenOpensMessagesOnly(t *testing.T) { // AM-109
	h := newHouse(t)
	r, _ := h.Run(projections.Config{})
	var ahead time.Duration
	a := h.asker(Config{Now: func() time.Time { return time.Now().Add(ahead) }, Progress: r.Progress(), States: h.Dispatcher})
	other := a.Do("thread.create", "", `{}`).ThreadID
	id := a.Do("thread.create", "", `{"title":"Order 42","env":{"initial":{"tags":["secret-env"]}},"metadata":{"a":"secret-metadata"},"mainThreadId":"`+other+`","userId":"secret-user"}`).ThreadID
	a.Do("message.add", id, `{"role":"user","content":"Where is it?"}`)
	a.Do("thread.update", id, `{"draft":"secret-draft"}`)
	a.Do("message.add", other, `{"role":"user","content":"secret-other"}`)
	made := a.Do("thread.share", id, `{}`)
	token := made.Result.Token
	if len(token) < 80 || made.Result.ShareID == "" || !strings.HasPrefix(token, made.Result.ShareID+".") {
		t.Fatalf("the reply is %+v", made.Result)
	}
	read := func(token string) (*events.SharedThread, error) {
		body, err := json.Marshal(map[string]string{"token": token})
		if err != nil {
			t.Fatal(err)
		}
		out, err := a.q.Handle(t.Context(), acme, "thread.shared", body, service.Meta{})
		if err != nil {
			return nil, err
		}
		return out.(*events.SharedThread), nil
	}
	shared, err := read(token)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(shared)
	if err != nil {
		t.Fatal(err)
	}
	if textsOf(shared.Messages) != "user0:Where is it?" || shared.Title != "Order 42" {
		t.Errorf("the token shows %s", raw)
	}
	for _, hidden := range []string{"secret", other, id, "env", "metadata"} {
		if bytes.Contains(raw, []byte(hidden)) {
			t.Errorf("the token shows %q: %s", hidden, raw)
		}
	}
	second := a.Do("thread.share", id, fmt.Sprintf(`{"expiresAt":%q}`, time.Now().Add(time.Hour).UTC().Format("2006-01-02T15:04:05Z")))
	refused := func(why, token string) {
		t.Helper()
		_, err := read(token)
		e := events.AsError(err)
		if err == nil || e.Code != events.NotFound || token != "" && strings.Contains(e.Error(), token) {
			t.Errorf("%s: %v", why, err)
		}
	}
	for why, wrong := range map[string]string{
		"a token with another end": token[:len(token)-2] + "xx", "no secret": made.Result.ShareID + ".", "only the id": made.Result.ShareID, "a pattern": "*.x", "two tokens mixed": made.Result.ShareID + token[strings.Index(token, "."):][:10],
		"the secret of another share": made.Result.ShareID + second.Result.Token[strings.Index(second.Result.Token, "."):], "the digest": made.Result.ShareID + "." + events.ShareDigest(token),
	} {
		refused(why, wrong)
	}
	if out, err := a.q.Handle(t.Context(), "beta", "thread.shared", []byte(`{"token":"`+token+`"}`), service.Meta{}); err == nil {
		t.Errorf("another tenant reads %+v", out)
	}
	if _, err := read(second.Result.Token); err != nil {
		t.Errorf("a share that has not ended: %v", err)
	}
	list := ask[events.ShareList](a, "share.list", fmt.Sprintf(`{"threadId":%q,%s}`, id, seqOf(second)))
	if len(list.Shares) != 2 || list.Shares[0].ID != made.Result.ShareID || list.Shares[0].Digest != "" || list.Shares[1].ExpiresAt == "" {
		t.Errorf("the shares are %+v", list.Shares)
	}
	ahead = 2 * time.Hour
	refused("a share that has ended", second.Result.Token)
	a.Do("thread.unshare", id, fmt.Sprintf(`{"shareId":%q}`, made.Result.ShareID))
	refused("a share that was revoked", token)
	if _, err := a.Try("thread.unshare", id, fmt.Sprintf(`{"shareId":%q}`, made.Result.ShareID)); events.AsError(err).Code != events.NotFound {
		t.Errorf("a share is revoked twice: %v", err)
	}
	third := a.Do("thread.share", id, `{}`)
	a.Do("thread.delete", id, `{}`)
	refused("a share of a deleted thread", third.Result.Token)
}

// The token is in the reply and in no event. The process that took the command answers a repeat
// with it; another process cannot.
func TestShare_TokenIsNotStored(t *testing.T) { // AM-109
	a := documentAsker(t)
	id := a.Do("thread.create", "", `{}`).ThreadID
	share := func(d *commands.Dispatcher) *events.Reply {
		t.Helper()
		r, err := d.Do(t.Context(), acme, "thread.share", []byte(`{"commandId":"c-1","threadId":"`+id+`","data":{}}`), commands.Meta{})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	first := share(a.Dispatcher)
	again := share(a.Dispatcher)
	if first.Result.Token == "" || again.Result.Token != first.Result.Token || again.Seq != first.Seq {
		t.Errorf("the repeat is %+v, after %+v", again.Result, first.Result)
	}
	elsewhere := share(commands.NewDispatcher(a.NewLog(), a.Validator, commands.Config{}, zerolog.Nop(), nil))
	if elsewhere.Result.Token != "" || elsewhere.Result.ShareID != first.Result.ShareID {
		t.Errorf("another process answers %+v", elsewhere.Result)
	}
	_, secret, _ := strings.Cut(first.Result.Token, ".")
	found := 0
	for c, err := range a.EventLog.Thread(t.Context(), acme, id, 1) {
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(c.Body, []byte(secret)) {
			t.Errorf("the log holds the token: %s", c.Body)
		}
		found += bytes.Count(c.Body, []byte(events.ShareDigest(first.Result.Token)))
	}
	if found != 1 {
		t.Errorf("the log has the digest of the token %d times", found)
	}
}

// A thread has a limited number of shares in force, and none that begins when it has ended.
func TestShare_Refused(t *testing.T) {
	t.Parallel()
	a := documentAsker(t)
	id := a.Do("thread.create", "", `{}`).ThreadID
	for _, data := range []string{`{"expiresAt":"2020-01-01T00:00:00Z"}`, `{"expiresAt":"soon"}`, `{"token":"mine"}`} {
		if r, err := a.Try("thread.share", id, data); events.AsError(err).Code != events.InvalidRequest {
			t.Errorf("%s: %+v, %v", data, r, err)
		}
	}
	var last *events.Reply
	for range events.MaxShares {
		last = a.Do("thread.share", id, `{}`)
	}
	if _, err := a.Try("thread.share", id, `{}`); events.AsError(err).Code != events.QueueFull {
		t.Errorf("one share more: %v", err)
	}
	a.Do("thread.unshare", id, fmt.Sprintf(`{"shareId":%q}`, last.Result.ShareID))
	a.Do("thread.share", id, `{}`)
	if _, err := a.Dispatcher.Inside(t.Context(), acme, id, "c-9", "thread.share", events.ShareThread{}); events.AsError(err).Code != events.InvalidRequest {
		t.Errorf("a share without a reply: %v", err)
	}
}
