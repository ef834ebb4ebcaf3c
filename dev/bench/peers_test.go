package bench

import (
	"bytes"
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/skein-threads/skein/dev/bench/peer"
	"github.com/skein-threads/skein/dev/bench/peer/peertest"
)

// What peers store of a commit is what Skein stores: twelve events, and the documents that they
// change, whose keys are of the thread and, but for six, of the turn.
func TestStoredTurn(t *testing.T) {
	turn, err := storedTurn()
	if err != nil {
		t.Fatal(err)
	}
	own, size := 0, 0
	for _, d := range turn.Documents {
		if !strings.HasPrefix(d.Key, turn.Thread) || d.Body == "" {
			t.Errorf("%+v", d)
		}
		if strings.Contains(d.Key, turn.Nonce) {
			own++
		}
	}
	for _, e := range turn.Events {
		size += len(e.Body)
	}
	ready, err := readyMade()
	if err != nil {
		t.Fatal(err)
	}
	want := 0
	for i := range ready.Events {
		want += len(ready.Events[i].Raw())
	}
	if len(turn.Events) != eventsPerCommit || size < want-50 || size > want+50 || len(turn.Documents) < 12 || own < len(turn.Documents)-6 {
		t.Errorf("%d events of %d bytes, want %d; %d documents, %d of the turn", len(turn.Events), size, want, len(turn.Documents), own)
	}
}

// Each peer that is installed is measured in the same run, and leaves nothing behind; one that is
// not is named.
func TestAppend_Peers(t *testing.T) {
	dir := peertest.Dir(t)
	got, err := Append(t.Context(), Options{Seconds: 0.1, Threads: 20, Clients: []int{1, 4}, Skein: true, Peers: Peers(), Dir: dir, LoadArgs: []string{"load"}})
	if err != nil {
		t.Fatal(err)
	}
	var table bytes.Buffer
	if err := got.Write(&table); err != nil {
		t.Fatal(err)
	}
	t.Log("\n" + table.String())
	have := map[string]int{}
	for _, c := range got.Cases {
		if c.Commits == 0 || c.P50Ms <= 0 || c.P99Ms < c.P50Ms {
			t.Errorf("%+v", c)
		}
		have[c.Name]++
	}
	want := map[string]int{"postgres: rows": 2, "postgres: rows and documents": 2, "postgres: rows, documents and NOTIFY": 2, "sqlite: rows and documents": 1}
	skipped := strings.Join(got.Skipped, "\n")
	for name, times := range want {
		installed := !strings.Contains(skipped, strings.SplitN(name, ":", 2)[0]+":")
		if installed && (have[name] != times || !strings.Contains(table.String(), "to "+name)) || !installed && have[name] != 0 {
			t.Errorf("%s was measured %d times, want %d; skipped: %q", name, have[name], times, skipped)
		}
	}
	for _, why := range got.Skipped {
		if !strings.Contains(table.String(), "skipped: "+why) {
			t.Errorf("the table does not say %q", why)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v %v", left, err)
	}
	if len(got.Skipped) > 0 {
		t.Skipf("a part is not shown here: %s", strings.Join(got.Skipped, "; "))
	}
}

// A paced client makes no more commits than its pace allows, whatever it writes to.
func TestAppend_Every(t *testing.T) {
	const seconds, clients, every = 0.5, 2, 100 * time.Millisecond
	got, err := Append(t.Context(), Options{
		Seconds: seconds, Every: every, Threads: 20, Clients: []int{clients, 1}, Skein: true, Peers: Peers(), Dir: peertest.Dir(t), LoadArgs: []string{"load"},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range got.Cases {
		if most := c.Clients * 5; c.Commits == 0 || c.Commits > most {
			t.Errorf("%s, %d clients: %d commits, at most %d are due", c.Name, c.Clients, c.Commits, most)
		}
	}
}

// A run that is interrupted while a peer is measured ends it and removes its folder.
func TestAppend_PeerIsStoppedWhenInterrupted(t *testing.T) {
	dir := peertest.Dir(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	o := Options{Seconds: 600, Threads: 5, Clients: []int{1}, Skein: true, Peers: []string{"postgres"}, Dir: dir, LoadArgs: []string{"load"}, Commits: 1}
	missing := false
	o.Log = func(line string) {
		missing = missing || strings.Contains(line, "skipped: postgres")
		if strings.HasPrefix(line, "postgres: ") {
			cancel()
		}
	}
	_, err := Append(ctx, o)
	if left, dirErr := os.ReadDir(dir); dirErr != nil || len(left) > 0 {
		t.Errorf("left behind: %v %v", left, dirErr)
	}
	if missing {
		t.Skip("there is no Postgres on PATH or in /usr/lib/postgresql")
	}
	if err == nil {
		t.Error("the interrupted run reports no error")
	}
}

// A peer that is not installed is named, and the rest is measured.
func TestAppend_PeerIsMissing(t *testing.T) {
	b := &bench{o: Options{Peers: []string{"postgres"}}.withDefaults()}
	b.skip(errors.Join(errors.New("postgres: no initdb on PATH"), peer.ErrMissing))
	var table bytes.Buffer
	if err := b.result.Write(&table); err != nil || !strings.Contains(table.String(), "skipped: postgres: no initdb on PATH") {
		t.Errorf("%v: %s", err, table.String())
	}
}
