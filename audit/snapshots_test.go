package audit

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"testing"

	"github.com/skein-threads/skein/commands/thread"
	"github.com/skein-threads/skein/eventlog"
	"github.com/skein-threads/skein/eventlog/assets"
)

// stateOf folds a thread, as the snapshot of it would be.
func (h *house) stateOf(id string, upTo uint64) *thread.State {
	h.t.Helper()
	s := &thread.State{}
	for c, err := range h.log.Thread(h.ctx, "acme", id, 1) {
		if err != nil {
			h.t.Fatal(err)
		}
		if c.Seq <= upTo {
			thread.Apply(s, c)
		}
	}
	return s
}

// forgedSnapshot is a snapshot that a forger changed and gave a right digest.
func (h *house) forgedSnapshot(id string, old, with string) []byte {
	h.t.Helper()
	raw, err := h.stateOf(id, h.end()).Encode()
	if err != nil {
		h.t.Fatal(err)
	}
	form, rest, _ := strings.Cut(string(raw), `,"digest":`)
	_, state, _ := strings.Cut(rest, `"state":`)
	state = strings.TrimSuffix(state, "}")
	changed := strings.Replace(state, old, with, 1)
	if changed == state {
		h.t.Fatalf("%s is not in %s", old, state)
	}
	digest := sha256Hex([]byte(changed))
	out := []byte(form + `,"digest":"` + digest + `","state":` + changed + `}`)
	if _, err := thread.DecodeState(out); err != nil {
		h.t.Fatal(err)
	}
	return out
}

// A snapshot that differs from the fold of the log is found, even with a correct digest, and
// so is one that cannot be read or belongs to no thread. The right one is not.
func TestVerify_Snapshots(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	ids := map[string]string{}
	save := func(n, name string, make func(id string) []byte) {
		id := "T-0190a000-0000-7000-8000-0000000000" + n
		if name != "a thread that is not there" {
			h.fill(id)
		}
		ids[id] = name
		if err := eventlog.SnapshotsOn(h.log.Streams()).Save(h.ctx, "acme", id, make(id)); err != nil {
			t.Fatal(err)
		}
	}
	right := func(id string, back uint64) []byte {
		raw, err := h.stateOf(id, h.end()-back).Encode()
		if err != nil {
			t.Fatal(err)
		}
		return raw
	}
	save("10", "", func(id string) []byte { return right(id, 0) })
	save("11", "", func(id string) []byte { return right(id, 4) })
	save("12", "", func(string) []byte { return []byte(`{"form":3}`) })
	save("20", "an item left out", func(id string) []byte { return h.forgedSnapshot(id, `"items":{"itm_u1"`, `"items":{"itm_xx"`) })
	save("21", "another index", func(id string) []byte { return h.forgedSnapshot(id, `"nextItem":1`, `"nextItem":0`) })
	save("22", "a receipt left out", func(id string) []byte {
		return h.forgedSnapshot(id, `"receipts":{"list":[{"id":"`, `"receipts":{"list":[{"id":"x`)
	})
	save("23", "another commit", func(id string) []byte { return h.forgedSnapshot(id, `"seq":`, `"seq":1`) })
	save("24", "another thread's", func(string) []byte { return right("T-0190a000-0000-7000-8000-000000000010", 0) })
	save("25", "no JSON", func(string) []byte { return []byte("what is this?") })
	save("26", "half of it", func(id string) []byte { raw := right(id, 0); return raw[:len(raw)/2] })
	save("27", "changed since", func(id string) []byte { return []byte(strings.Replace(string(right(id, 0)), "itm_u1", "itm_u2", 1)) })
	save("28", "a thread that is not there", func(string) []byte { return right("T-0190a000-0000-7000-8000-000000000010", 0) })
	found, _ := h.verify(Options{})
	for _, f := range found {
		if f.Kind != KindSnapshot || f.Bucket != assets.SnapshotBucket || f.Key != "acme/"+f.Thread || ids[f.Thread] == "" {
			t.Errorf("%+v", f)
		}
		delete(ids, f.Thread)
	}
	for id, name := range ids {
		if name != "" {
			t.Errorf("%s: the snapshot of %s was let pass: %v", name, id, found)
		}
	}
}

func sha256Hex(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}
