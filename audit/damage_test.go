package audit

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"

	"github.com/skein-threads/skein/archive"
	"github.com/skein-threads/skein/eventlog"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/projections/documents"
)

// stream returns a stream by its name.
func (h *house) stream(name string) jetstream.Stream {
	h.t.Helper()
	stream, err := h.log.JetStream().Stream(h.ctx, name)
	if err != nil {
		h.t.Fatal(err)
	}
	return stream
}

// entry returns the entry of an object and its first piece, as messages.
func (h *house) entry(bucket, name string) (entry, piece *jetstream.RawStreamMsg) {
	h.t.Helper()
	stream := h.stream("OBJ_" + bucket)
	entry, err := stream.GetLastMsgForSubject(h.ctx, "$O."+bucket+".M."+base64.URLEncoding.EncodeToString([]byte(name)))
	if err != nil {
		h.t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(entry.Data), `"nuid":"`)
	nuid, _, _ := strings.Cut(rest, `"`)
	if piece, err = stream.GetLastMsgForSubject(h.ctx, "$O."+bucket+".C."+nuid); err != nil {
		h.t.Fatal(err)
	}
	return entry, piece
}

// put writes a message in place of the last one of its subject.
func (h *house) put(subject string, data []byte, header nats.Header) {
	h.t.Helper()
	if _, err := h.log.JetStream().PublishMsg(h.ctx, &nats.Msg{Subject: subject, Data: data, Header: header}); err != nil {
		h.t.Fatal(err)
	}
}

// objectDamages are ways to damage an object of a store.
func objectDamages() map[string]func(h *house, bucket, name string) {
	rollup := nats.Header{"Nats-Rollup": {"sub"}}
	return map[string]func(h *house, bucket, name string){
		"its entry is no JSON": func(h *house, bucket, name string) {
			entry, _ := h.entry(bucket, name)
			h.put(entry.Subject, []byte("what is this?"), rollup)
		},
		"its entry is empty": func(h *house, bucket, name string) {
			entry, _ := h.entry(bucket, name)
			h.put(entry.Subject, nil, rollup)
		},
		"its entry is cut short": func(h *house, bucket, name string) {
			entry, _ := h.entry(bucket, name)
			h.put(entry.Subject, entry.Data[:len(entry.Data)/2], rollup)
		},
		"its entry names other pieces": func(h *house, bucket, name string) {
			entry, _ := h.entry(bucket, name)
			h.put(entry.Subject, []byte(strings.Replace(string(entry.Data), `"nuid":"`, `"nuid":"x`, 1)), rollup)
		},
		"its entry is gone": func(h *house, bucket, name string) {
			entry, _ := h.entry(bucket, name)
			if err := h.stream("OBJ_"+bucket).DeleteMsg(h.ctx, entry.Sequence); err != nil {
				h.t.Fatal(err)
			}
		},
		"its pieces are gone": func(h *house, bucket, name string) {
			_, piece := h.entry(bucket, name)
			if err := h.stream("OBJ_"+bucket).Purge(h.ctx, jetstream.WithPurgeSubject(piece.Subject)); err != nil {
				h.t.Fatal(err)
			}
		},
		"its piece is another one": func(h *house, bucket, name string) {
			_, piece := h.entry(bucket, name)
			if err := h.stream("OBJ_"+bucket).DeleteMsg(h.ctx, piece.Sequence); err != nil {
				h.t.Fatal(err)
			}
			data := slices.Clone(piece.Data)
			data[len(data)/2] ^= 1
			h.put(piece.Subject, data, nil)
		},
		"it has a piece more": func(h *house, bucket, name string) {
			_, piece := h.entry(bucket, name)
			h.put(piece.Subject, []byte("more"), nil)
		},
	}
}

// A damaged object of any store is a finding at its thread, and the audit goes on:
// one damage hides no other.
func TestTampering_Objects(t *testing.T) {
	t.Parallel()
	p := newPlot(t)
	harmless := map[string]bool{ // nobody reads these, and they are no contradiction
		"contents: it has a piece more":  true,
		"snapshots: its pieces are gone": true, "snapshots: its entry names other pieces": true, "snapshots: its entry is gone": true,
	}
	type planting struct {
		bucket, name, id string
		kind             Kind
		damage           func(h *house, bucket, name string)
		title            string
	}
	var list []planting
	var last uint64
	for damage, do := range objectDamages() {
		for store, kind := range map[string]Kind{"contents": KindContent, "archive": KindArchive, "snapshots": KindSnapshot} {
			id := p.next()
			p.do("thread.create", fmt.Sprintf(`{"threadId":%q,"data":{}}`, id))
			one := planting{id: id, kind: kind, damage: do, title: store + ": " + damage}
			switch store {
			case "contents":
				text := "content " + damage
				last = uint64(p.do("file.write", fmt.Sprintf(`{"threadId":%q,"data":{"path":"/f","content":%q}}`, id, base64.StdEncoding.EncodeToString([]byte(text)))).Seq)
				one.bucket, one.name = "thread_files", "acme/"+sha256Hex([]byte(text))
			case "archive":
				p.settle(p.do("thread.update", fmt.Sprintf(`{"threadId":%q,"data":{"title":"x"}}`, id)).Seq)
				r, err := archive.New(p.log, archive.Config{}, zerolog.Nop()).Thread(p.ctx, "acme", id, archive.Options{})
				if err != nil || r.Outcome != archive.Archived {
					t.Fatalf("%+v, %v", r, err)
				}
				objects, err := p.log.JetStream().ObjectStore(p.ctx, "thread_archive")
				if err != nil {
					t.Fatal(err)
				}
				infos, err := objects.List(p.ctx)
				if err != nil {
					t.Fatal(err)
				}
				for _, info := range infos {
					if strings.HasPrefix(info.Name, "acme/"+id+"/") {
						one.bucket, one.name = "thread_archive", info.Name
					}
				}
			case "snapshots":
				last = uint64(p.do("thread.update", fmt.Sprintf(`{"threadId":%q,"data":{"title":"x"}}`, id)).Seq)
				raw, err := p.stateOf(id, last).Encode()
				if err != nil {
					t.Fatal(err)
				}
				if err := eventlog.SnapshotsOn(p.log.Streams()).Save(p.ctx, "acme", id, raw); err != nil {
					t.Fatal(err)
				}
				one.bucket, one.name = "thread_snapshots", "acme/"+id
			}
			list = append(list, one)
		}
	}
	p.settle(int64(last))
	if found, _ := p.verify(Options{}); len(found) != 0 {
		t.Fatalf("before: %v", found)
	}
	for _, one := range list {
		one.damage(p.house, one.bucket, one.name)
		if harmless[one.title] {
			p.list = append(p.list, planted{name: one.title, thread: one.id})
		} else {
			p.list = append(p.list, planted{name: one.title, thread: one.id, kinds: []Kind{one.kind}})
		}
	}
	p.look(Options{})
}

// A store or a bucket that is gone is a finding, and hides nothing else: what was
// forged on the last thread is found each time.
func TestTampering_BucketsGone(t *testing.T) {
	t.Parallel()
	p := newPlot(t)
	content, cold := p.next(), p.next()
	p.do("thread.create", fmt.Sprintf(`{"threadId":%q,"data":{}}`, content))
	p.do("file.write", fmt.Sprintf(`{"threadId":%q,"data":{"path":"/f","content":"eA=="}}`, content))
	p.settle(p.do("thread.create", fmt.Sprintf(`{"threadId":%q,"data":{}}`, cold)).Seq)
	if r, err := archive.New(p.log, archive.Config{}, zerolog.Nop()).Thread(p.ctx, "acme", cold, archive.Options{}); err != nil || r.Outcome != archive.Archived {
		t.Fatalf("%+v, %v", r, err)
	}
	p.settle(int64(p.end()))
	p.stopRelay()
	p.stopRunner()
	id := p.next()
	k := whole(t, id)
	list := forgedEvent{typ: events.ProfileChangedType, subject: "THREAD", data: events.ProfileChanged{}}.add(t, k)
	forged := p.write(list, len(list)-1)
	streams := []string{"OBJ_thread_files", "OBJ_thread_archive", "OBJ_thread_snapshots"}
	for _, model := range documents.NewModels().List() {
		if name := "KV_" + model.Bucket; !slices.Contains(streams, name) {
			streams = append(streams, name)
		}
	}
	for _, name := range streams {
		if err := p.log.JetStream().DeleteStream(p.ctx, name); err != nil {
			t.Fatal(err)
		}
		found, _ := p.verify(Options{})
		wantOne(t, found, KindCondition, id, forged)
		hit := name == "OBJ_thread_snapshots" // it is derived whole, and nothing is lost
		for _, f := range found {
			switch {
			case strings.HasPrefix(name, "KV_"):
				hit = hit || f.Kind == KindDocument && f.Bucket == name[len("KV_"):]
			case name == "OBJ_thread_files":
				hit = hit || f.Kind == KindContent && f.Thread == content
			case name == "OBJ_thread_archive":
				hit = hit || f.Kind == KindArchive && f.Thread == cold
			}
		}
		if !hit {
			t.Errorf("without %s: %v", name, found)
		}
	}
}
