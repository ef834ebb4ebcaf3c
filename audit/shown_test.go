package audit

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/projections/documents"
)

// What is done to the timeline, wherever in a thread, is found at that thread.
func TestTampering_Timeline(t *testing.T) {
	t.Parallel()
	p := newPlot(t)
	copyOf := func(m *nats.Msg) *nats.Msg {
		c := &nats.Msg{Subject: m.Subject, Data: slices.Clone(m.Data), Header: nats.Header{}}
		for k, v := range m.Header {
			c.Header[k] = slices.Clone(v)
		}
		return c
	}
	ways := map[string]func(l []*nats.Msg, i int) []*nats.Msg{
		"altered":                     func(l []*nats.Msg, i int) []*nats.Msg { l[i].Data[len(l[i].Data)/2] ^= 1; return l },
		"left out":                    func(l []*nats.Msg, i int) []*nats.Msg { return slices.Delete(l, i, i+1) },
		"twice":                       func(l []*nats.Msg, i int) []*nats.Msg { return slices.Insert(l, i, copyOf(l[i])) },
		"after the next":              func(l []*nats.Msg, i int) []*nats.Msg { l[i], l[i+1] = l[i+1], l[i]; return l },
		"empty":                       func(l []*nats.Msg, i int) []*nats.Msg { l[i].Data = nil; return l },
		"without headers":             func(l []*nats.Msg, i int) []*nats.Msg { l[i].Header = nil; return l },
		"under another event's name":  func(l []*nats.Msg, i int) []*nats.Msg { l[i].Subject += ".not"; return l },
		"as of another version":       func(l []*nats.Msg, i int) []*nats.Msg { l[i].Header.Set(events.HeaderVersion, "77"); return l },
		"as of a commit that is none": func(l []*nats.Msg, i int) []*nats.Msg { l[i].Header.Set(events.HeaderSeq, "99999999"); return l },
	}
	type spot struct {
		way   func(l []*nats.Msg, i int) []*nats.Msg
		place int
	}
	spots := map[string]spot{}
	seq := uint64(0)
	for name, way := range ways {
		for _, place := range []int{0, 1, 2, 7, 12, 17} {
			id := p.next()
			list := whole(t, id).messages()
			seq = p.write(list, len(list)-1)
			spots[id] = spot{way, place}
			p.list = append(p.list, planted{name: fmt.Sprintf("event %d %s", place, name), thread: id, kinds: []Kind{KindTimeline}})
		}
	}
	alone := p.next()
	seq = max(seq, p.write(whole(t, alone).messages(), 17))
	p.settle(int64(seq))
	p.stopRelay()
	p.rewrite("SKEIN_TIMELINE", func(list []*nats.Msg) (out []*nats.Msg) {
		for len(list) > 0 {
			id := strings.Split(list[0].Subject, ".")[3]
			n := 0
			for n < len(list) && strings.Split(list[n].Subject, ".")[3] == id {
				n++
			}
			of := slices.Clone(list[:n])
			list = list[n:]
			if s, ok := spots[id]; ok {
				of = s.way(of, s.place)
			}
			out = append(out, of...)
		}
		return out
	})
	p.look(Options{LogOnly: false, Checks: []Check{}})
}

// What is done to a document of any read model is found at its bucket and key.
func TestTampering_Documents(t *testing.T) {
	t.Parallel()
	p := newPlot(t)
	ways := map[string]func(value string) (string, bool){ // false: it is deleted
		"a field more":    func(v string) (string, bool) { return strings.Replace(v, "{", `{"zz":1,`, 1), true },
		"a letter":        func(v string) (string, bool) { return flipped(v), true },
		"no JSON":         func(string) (string, bool) { return "what is this?", true },
		"empty":           func(string) (string, bool) { return "", true },
		"an empty object": func(string) (string, bool) { return "{}", true },
		"deleted":         func(string) (string, bool) { return "", false },
		"of another":      func(string) (string, bool) { return "", false },
	}
	p.settle(p.do("definition.apply", `{"data":{"definitions":[{"kind":"prompt","name":"p","definition":{"text":"x"}}]}}`).Seq)
	last := uint64(0)
	var ids []string
	for range 40 {
		id := p.next()
		ids = append(ids, id)
		last = p.write(whole(t, id).messages(), 17)
	}
	for i, id := range ids {
		p.do("thread.mention", `{"threadId":"`+id+`","data":{"mentionedId":"`+ids[(i+1)%len(ids)]+`"}}`)
		p.do("thread.share", `{"threadId":"`+id+`","data":{}}`)
		last = uint64(p.do("state.merge", `{"threadId":"`+id+`","data":{"operations":[{"op":"set","key":"a","value":1}]}}`).Seq)
	}
	p.settle(int64(last))
	p.stopRunner()
	want := map[string]bool{}
	for _, model := range documents.NewModels().List() {
		if model.Kind == documents.Definitions {
			continue
		}
		kv, err := p.log.JetStream().KeyValue(p.ctx, model.Bucket)
		if err != nil {
			t.Fatal(err)
		}
		keys, err := kv.Keys(p.ctx)
		if err != nil {
			t.Logf("%s is empty: %v", model.Bucket, err)
			continue
		}
		slices.Sort(keys)
		n := 0
		for name, way := range ways {
			var key string
			for key == "" || want[model.Bucket+" "+key] { // of a thread of its own, where there is one
				at := slices.IndexFunc(keys, func(k string) bool { return strings.Contains(k, ids[n%len(ids)]) })
				if at < 0 {
					t.Fatalf("%s has no document of %s: %v", model.Bucket, ids[n%len(ids)], keys)
				}
				key = keys[at]
				n++
			}
			entry, err := kv.Get(p.ctx, key)
			if err != nil {
				t.Fatal(err)
			}
			value, stays := way(string(entry.Value()))
			switch {
			case stays:
				_, err = kv.Put(p.ctx, key, []byte(value))
			case name == "of another":
				key = strings.Replace(key, ids[(n-1)%len(ids)], "T-0190a000-0000-7000-8000-0000000fffff", 1)
				_, err = kv.Put(p.ctx, key, entry.Value())
			default:
				err = kv.Delete(p.ctx, key)
			}
			if err != nil {
				t.Fatal(err)
			}
			want[model.Bucket+" "+key] = true
		}
	}
	planted := len(want)
	found, _ := p.verify(Options{Checks: []Check{}})
	for _, f := range found {
		if !want[f.Bucket+" "+f.Key] || f.Kind != KindDocument {
			t.Errorf("%v", f)
		}
		delete(want, f.Bucket+" "+f.Key)
	}
	for key := range want {
		t.Errorf("%s was let pass", key)
	}
	t.Logf("%d tamperings planted, %d found", planted, planted-len(want))
}

// flipped changes one digit of a document's last member.
func flipped(v string) string {
	at := strings.LastIndexAny(v, "0123456789")
	if at < 0 {
		return v + " "
	}
	d, _ := strconv.Atoi(v[at : at+1])
	return v[:at] + strconv.Itoa((d+1)%10) + v[at+1:]
}

// What many threads show is read in the order in which it is stored, and not thread by thread:
// only a thread that differs is read by itself.
func TestVerify_ReadsDerivedStreamsOnce(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	const threads = 40
	id := func(n int) string { return fmt.Sprintf("T-0190a000-0000-7000-8000-%012d", n) }
	var last int64
	for n := range threads {
		last = h.do("thread.create", fmt.Sprintf(`{"threadId":%q,"data":{"title":"one"}}`, id(n))).Seq
	}
	h.settle(last)
	asked := map[string]int{}
	var mu sync.Mutex
	requests, err := h.log.Conn().Subscribe("$JS.API.DIRECT.GET.>", func(m *nats.Msg) {
		mu.Lock()
		defer mu.Unlock()
		if stream := strings.Split(m.Subject, ".")[4]; stream != "SKEIN_LOG" {
			asked[stream]++
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = requests.Unsubscribe() }()
	most := func() (n int) {
		mu.Lock()
		defer mu.Unlock()
		for _, of := range asked {
			n = max(n, of)
		}
		clear(asked)
		return n
	}
	h.stopRelay() // they read streams too
	h.stopRunner()
	most()
	found, summary := h.verify(Options{})
	if len(found) > 0 || summary.Threads != threads || summary.Timeline < 2*threads || summary.Documents < 2*threads {
		t.Fatalf("%v, %+v", found, summary)
	}
	if n := most(); n > 4 { // checkpoints, and both ends of the timeline
		t.Errorf("%d reads of one stream, of %d threads", n, threads)
	}
	bucket, key := documents.NewModels().Of(documents.Threads).Bucket, documents.ThreadName("acme", id(7))
	if _, err := h.log.JetStream().Publish(h.ctx, "$KV."+bucket+"."+key, []byte(`{"id":"else"}`)); err != nil {
		t.Fatal(err)
	}
	found, again := h.verify(Options{})
	wantKinds(t, found, KindDocument)
	if len(found) != 1 || found[0].Thread != id(7) || again.Documents != summary.Documents || again.Timeline != summary.Timeline {
		t.Errorf("%v, %+v; before %+v", found, again, summary)
	}
	if n := most(); n > 6 {
		t.Errorf("%d reads of one stream for one thread that differs", n)
	}
}
