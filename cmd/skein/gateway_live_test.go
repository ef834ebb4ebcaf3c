package main_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/coder/websocket"
)

// watching is a socket that watches the events and the live events of a thread.
type watching struct {
	t    *testing.T
	conn *websocket.Conn
	live map[string]int // how often each came
	log  []string       // the ids of the events that came
}

func (p *gate) watch(thread string) *watching {
	t := p.g.t
	t.Helper()
	conn, _, err := websocket.Dial(t.Context(), strings.Replace(p.url, "http", "ws", 1)+"/api/threads/"+thread+"/socket", &websocket.DialOptions{HTTPHeader: http.Header{"Authorization": {"Bearer " + p.g.key}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.CloseNow() })
	w := &watching{t: t, conn: conn, live: map[string]int{}}
	w.send(`{"type":"watch","what":["events","live"],"from":0}`)
	return w
}

func (w *watching) send(frame string) {
	w.t.Helper()
	if err := w.conn.Write(w.t.Context(), websocket.MessageText, []byte(frame)); err != nil {
		w.t.Fatal(err)
	}
}

// until reads frames until one is of a type and has a name.
func (w *watching) until(kind, name string) {
	w.t.Helper()
	for {
		_, raw, err := w.conn.Read(w.t.Context())
		if err != nil {
			w.t.Fatalf("before %s %s: %v", kind, name, err)
		}
		var f struct {
			Type, Name, ID string
			Data           struct{ N int }
			Event          struct{ ID, Type string }
		}
		if err := json.Unmarshal(raw, &f); err != nil {
			w.t.Fatal(err)
		}
		switch f.Type {
		case "live":
			w.live[fmt.Sprint(f.Name, " ", f.Data.N)]++
		case "event":
			w.log = append(w.log, f.Event.ID)
			f.Name = f.Event.Type
		case "reply":
			f.Name = f.ID
		}
		if f.Type == kind && f.Name == name {
			return
		}
	}
}

// What is emitted at a gateway comes to everyone who watches, at that gateway, at another and at the
// server, once, as what is emitted at the server does; and the events of the log are the same
// everywhere.
func TestGateway_LiveEventsAreTheSameEverywhere(t *testing.T) {
	t.Parallel()
	g := newGates(t)
	sites := map[string]*gate{"one": g.gateway(), "two": g.gateway(), "server": {g, nil, g.Addresses().HTTP}}
	names := slices.Sorted(maps.Keys(sites))
	var made struct{ ThreadID string }
	decode(t, sites["one"].want(http.StatusCreated, "POST", "/api/threads", `{}`).text, &made)
	sockets, want := map[string]*watching{}, map[string]int{}
	for _, at := range names {
		sockets[at] = sites[at].watch(made.ThreadID)
	}
	for _, at := range names { // when a command is answered, what was asked before it is watched
		sockets[at].send(`{"type":"command","id":"ready","command":"item.create","data":{"item":{"type":"message","role":"user","content":[]}}}`)
		sockets[at].until("reply", "ready")
	}
	for _, last := range []string{"first", "second"} { // what came twice of the first ones came before the second ones
		for _, at := range names {
			for n := range 20 {
				sockets[at].send(fmt.Sprintf(`{"type":"emit","name":"%s_%s","data":{"n":%d}}`, last, at, n))
				want[fmt.Sprintf("%s_%s %d", last, at, n)] = 1
			}
			sockets[at].send(fmt.Sprintf(`{"type":"emit","name":"%s_%s_end","data":{"n":0}}`, last, at))
			want[fmt.Sprintf("%s_%s_end 0", last, at)] = 1
		}
		for _, at := range names {
			for _, from := range names {
				for sockets[at].live[fmt.Sprintf("%s_%s_end 0", last, from)] == 0 {
					sockets[at].until("live", fmt.Sprintf("%s_%s_end", last, from))
				}
			}
		}
	}
	sockets["one"].send(`{"type":"command","id":"over","command":"thread.delete","data":{}}`)
	for _, at := range names {
		sockets[at].until("event", "lifecycle.deleted")
		if !maps.Equal(sockets[at].live, want) {
			t.Errorf("at %s came %v, and not %v", at, sockets[at].live, want)
		}
	}
	for _, at := range names {
		if !slices.Equal(sockets[at].log, sockets["server"].log) {
			t.Errorf("at %s the events are %v, and at the server %v", at, sockets[at].log, sockets["server"].log)
		}
	}
}
