package sim

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"

	"github.com/skein-threads/skein/eventlog"
	"github.com/skein-threads/skein/eventlog/assets"
	"github.com/skein-threads/skein/internal/natstest"
)

// The simulated server is worth what it has in common with the real one: the
// same random operations on both must give the same answers.
func TestTheServerIsLikeTheRealOne(t *testing.T) {
	nc := natstest.Connect(t, natstest.Start(t))
	log, err := eventlog.Open(nc, eventlog.Config{}, zerolog.Nop(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	if err := log.Ensure(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := assets.EnsureBucket(t.Context(), log.Streams(), "thread_items"); err != nil {
		t.Fatal(err)
	}
	rounds := 40
	if testing.Short() {
		rounds = 8
	}
	for seed := range uint64(rounds) {
		p := &pair{T: t, nc: nc, js: log.JetStream(), rng: rand.New(rand.NewPCG(seed, 9)), fake: NewServer(time.Now)}
		for _, name := range []string{"SKEIN_LOG", "SKEIN_TIMELINE", "OBJ_thread_snapshots", "KV_thread_items"} {
			p.fake.Add(name, strings.HasPrefix(name, "KV_"), false, time.Hour)
			p.emptied(name)
		}
		for range 150 {
			p.operate()
			if t.Failed() {
				t.Fatalf("seed %d", seed)
			}
		}
	}
}

// pair is both servers.
type pair struct {
	*testing.T
	nc   *nats.Conn
	js   jetstream.JetStream
	rng  *rand.Rand
	fake *Server
	ids  int
}

// emptied empties a stream of the real server and makes it remember ids for long: a test on a
// slow machine must not depend on when it forgets them.
func (p *pair) emptied(name string) {
	s, err := p.js.Stream(p.Context(), name)
	if err != nil {
		p.Fatal(err)
	}
	cfg := s.CachedInfo().Config
	cfg.Duplicates = time.Hour
	if cfg.MaxAge > 0 && cfg.MaxAge < cfg.Duplicates {
		p.Fatalf("%s keeps messages for %v", name, cfg.MaxAge)
	}
	if err := p.js.DeleteStream(p.Context(), name); err != nil {
		p.Fatal(err)
	}
	if _, err := p.js.CreateStream(p.Context(), cfg); err != nil {
		p.Fatal(err)
	}
}

func (p *pair) subject(stream string) string {
	n := strconv.Itoa(p.rng.IntN(4))
	switch stream {
	case "SKEIN_LOG":
		return "skein.log.acme.T-" + n
	case "SKEIN_TIMELINE":
		return "skein.timeline.acme.T-" + n + ".item.created"
	case "OBJ_thread_snapshots":
		if p.rng.IntN(2) == 0 {
			return "$O.thread_snapshots.M.acme" + n
		}
		return "$O.thread_snapshots.C.acme.T-" + n + "." + strconv.Itoa(p.rng.IntN(3))
	}
	return "$KV.thread_items.acme.T-" + n + ".i" + strconv.Itoa(p.rng.IntN(3))
}

func (p *pair) stream() string { return pick(p.rng, p.fake.names()) }

// message makes up a message, with some of the conditions that Skein uses: most
// of them hold.
func (p *pair) message(stream string, batch bool) *nats.Msg {
	st := p.fake.streams[stream]
	m := &nats.Msg{Subject: p.subject(stream), Header: nats.Header{}, Data: []byte(strconv.Itoa(p.rng.IntN(1000)))}
	if strings.Contains(m.Subject, ".M.") {
		m.Header.Set(headerRollup, "sub")
	}
	off := uint64(0)
	if p.rng.IntN(5) == 0 {
		off = p.rng.Uint64N(3)
	}
	kind := p.rng.IntN(4)
	if kind == 0 || stream == "SKEIN_LOG" {
		last := uint64(0)
		if at := st.lastOf(m.Subject, st.last()); at != nil {
			last = at.seq
		}
		m.Header.Set(headerExpected, strconv.FormatUint(last+off, 10))
	} else if kind == 1 && !batch {
		m.Header.Set(headerExpectedSeq, strconv.FormatUint(st.last()+off, 10))
	} else if kind == 2 && !batch && st.lastID != "" {
		m.Header.Set(headerExpectedID, st.lastID+strings.Repeat("x", int(off)))
	}
	if stream != "SKEIN_LOG" || p.rng.IntN(8) == 0 {
		if p.ids++; p.rng.IntN(6) == 0 {
			p.ids -= 1 + p.rng.IntN(min(p.ids, 4))
		}
		m.Header.Set(headerID, fmt.Sprintf("id-%d", p.ids))
	}
	return m
}

func (p *pair) operate() {
	stream := p.stream()
	switch p.rng.IntN(12) {
	case 0, 1, 2, 3:
		p.publish(p.message(stream, false))
	case 4, 5:
		p.publishBatch()
	case 6:
		p.purge(stream)
	case 7:
		p.info(stream)
	case 8:
		p.leader(stream)
	default:
		p.direct(stream)
	}
}

// same compares two answers.
func (p *pair) same(what string, fake, server any) {
	if f, s := fmt.Sprint(fake), fmt.Sprint(server); f != s {
		p.Errorf("%s:\nsimulated %s\nserver    %s", what, f, s)
	}
}

// publish sends a message to both, and compares what they say.
func (p *pair) publish(m *nats.Msg) {
	said := func(data []byte) string {
		var a struct {
			Seq       uint64 `json:"seq"`
			Duplicate bool   `json:"duplicate"`
			Count     int    `json:"count"`
			Error     struct {
				Code        int    `json:"code"`
				ErrCode     int    `json:"err_code"`
				Description string `json:"description"`
			} `json:"error"`
		}
		if len(data) == 0 {
			return "taken"
		}
		if err := json.Unmarshal(data, &a); err != nil {
			p.Fatalf("%s: %v", data, err)
		}
		return fmt.Sprintf("%+v", a)
	}
	answer, ok := p.fake.Publish(m)
	fake := "nobody"
	if ok && answer == nil {
		fake = "taken"
	} else if ok {
		fake = said(answer.Data)
	}
	reply, err := p.nc.RequestMsg(m, time.Minute)
	if err != nil {
		p.Fatal(err)
	}
	p.same(fmt.Sprintf("publish %s %v", m.Subject, m.Header), fake, said(reply.Data))
}

// publishBatch sends a batch, now and then with a gap, a subject twice, or never
// ended.
func (p *pair) publishBatch() {
	p.ids++
	id, n := fmt.Sprintf("batch-%d-%d", p.rng.Uint32(), p.ids), 1+p.rng.IntN(5)
	for i := 1; i <= n; i++ {
		if p.rng.IntN(20) == 0 {
			continue
		}
		m := p.message("SKEIN_LOG", true)
		m.Header.Set(headerBatchID, id)
		m.Header.Set(headerBatchSequence, strconv.Itoa(i))
		if i == n && p.rng.IntN(12) > 0 {
			m.Header.Set(headerBatchCommit, "1")
		}
		p.publish(m)
	}
}

func (p *pair) purge(stream string) {
	if p.rng.IntN(3) > 0 || stream == "SKEIN_LOG" && p.rng.IntN(3) > 0 {
		return
	}
	subject, before := p.pattern(stream), uint64(p.rng.IntN(8))
	s, err := p.js.Stream(p.Context(), stream)
	if err != nil {
		p.Fatal(err)
	}
	opts := []jetstream.StreamPurgeOpt{jetstream.WithPurgeSubject(subject)}
	if before > 0 {
		opts = append(opts, jetstream.WithPurgeSequence(before))
	}
	if err := s.Purge(p.Context(), opts...); err != nil {
		p.Fatal(err)
	}
	p.fake.streams[stream].purge(subject, before)
}

// pattern returns a subject, or a pattern that matches some.
func (p *pair) pattern(stream string) string {
	s := p.subject(stream)
	switch cut := strings.LastIndex(s, "."); p.rng.IntN(4) {
	case 0:
		return s[:cut] + ".*"
	case 1:
		return s[:strings.Index(s, "acme")] + ">"
	}
	return s
}

func (p *pair) info(stream string) {
	s, err := p.js.Stream(p.Context(), stream)
	if err != nil {
		p.Fatal(err)
	}
	have, want := p.fake.info(stream).(*jetstream.StreamInfo).State, s.CachedInfo().State
	p.same("info "+stream, []uint64{have.Msgs, have.LastSeq}, []uint64{want.Msgs, want.LastSeq})
	if want.Msgs > 0 {
		p.same("first of "+stream, have.FirstSeq, want.FirstSeq)
	}
}
