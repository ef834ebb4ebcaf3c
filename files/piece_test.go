package files_test

import (
	"encoding/base64"
	"errors"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/files"
	"github.com/skein-threads/skein/internal/natstest"
)

// Content whose entry leads to pieces of another content, of the same size and of
// another tenant, is damaged, and nothing of the other one is given.
func TestPieceOfAnotherContent(t *testing.T) {
	w := newWorld(t, files.ServiceConfig{})
	js, err := jetstream.New(natstest.Connect(t, w.server))
	if err != nil {
		t.Fatal(err)
	}
	mine, theirs := noise(events.FilePieceBytes, 1), noise(events.FilePieceBytes, 2)
	for tenant, data := range map[string][]byte{"acme": mine, "globex": theirs} {
		if _, err := w.store.Keep(t.Context(), tenant, data); err != nil {
			t.Fatal(err)
		}
	}
	stream, err := js.Stream(t.Context(), "OBJ_thread_files")
	if err != nil {
		t.Fatal(err)
	}
	entry := func(tenant string, data []byte) (subject string, fields map[string]any) {
		t.Helper()
		subject = "$O.thread_files.M." + base64.URLEncoding.EncodeToString([]byte(tenant+"/"+digest(data)))
		m, err := stream.GetLastMsgForSubject(t.Context(), subject)
		if err != nil || json.Unmarshal(m.Data, &fields) != nil {
			t.Fatalf("%s: %v", subject, err)
		}
		return subject, fields
	}
	subject, forged := entry("acme", mine)
	_, other := entry("globex", theirs)
	forged["metadata"].(map[string]any)["pieces"] = other["metadata"].(map[string]any)["pieces"]
	body, err := json.Marshal(forged)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := js.PublishMsg(t.Context(), &nats.Msg{Subject: subject, Header: nats.Header{"Nats-Rollup": {"sub"}}, Data: body}); err != nil {
		t.Fatal(err)
	}
	var damaged *files.DamagedError
	if got, err := w.store.Later(0).Piece(t.Context(), "acme", digest(mine), 0); !errors.As(err, &damaged) || got != nil {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}

// A piece is answered when it is stored, and not before: one that cannot be is
// refused.
func TestPieceIsAnsweredWhenItIsStored(t *testing.T) {
	w := newWorld(t, files.ServiceConfig{})
	nc := natstest.Connect(t, w.server)
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	c := w.client("acme")
	subject := w.raw(nc, "acme", w.thread(c), "/f")
	if err := js.DeleteStream(t.Context(), "OBJ_thread_files"); err != nil {
		t.Fatal(err)
	}
	m := nats.NewMsg(subject)
	m.Header.Set(events.HeaderPiece, "0")
	m.Data = noise(9, 3)
	answer, err := nc.RequestMsg(m, time.Minute)
	if err != nil || answer.Header.Get(events.HeaderError) != string(events.Unavailable) {
		t.Errorf("%v: %+v", err, answer)
	}
	if _, err := c.Files(w.thread(c)).WriteFile(t.Context(), "/g", noise(1<<20, 4), "", client.WriteFileOptions{}); err == nil {
		t.Error("a file was written to a store that is not there")
	}
}
