package sim

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go"
)

// request makes up a read.
func (p *pair) request(stream string) getRequest {
	seq := uint64(1 + p.rng.IntN(int(p.fake.streams[stream].last()+3)))
	switch p.rng.IntN(5) {
	case 0:
		return getRequest{Seq: seq}
	case 1:
		return getRequest{Last: p.subject(stream)}
	case 2:
		return getRequest{Seq: seq, Next: p.pattern(stream)}
	case 3:
		return getRequest{Seq: seq, Next: p.pattern(stream), Batch: 1 + p.rng.IntN(5), MaxBytes: []int{0, 60}[p.rng.IntN(2)]}
	}
	q := getRequest{Seq: []uint64{0, 1, seq}[p.rng.IntN(3)], MaxBytes: []int{0, 60}[p.rng.IntN(2)]}
	for range 1 + p.rng.IntN(3) {
		q.Multi = append(q.Multi, p.pattern(stream))
	}
	return q
}

// body is the request as Skein writes it: what is not set is left out.
func (q getRequest) body() []byte {
	all := map[string]any{}
	for name, v := range map[string]any{"seq": q.Seq, "last_by_subj": q.Last, "next_by_subj": q.Next, "batch": q.Batch, "max_bytes": q.MaxBytes} {
		if v != uint64(0) && v != "" && v != 0 {
			all[name] = v
		}
	}
	if len(q.Multi) > 0 {
		all["multi_last"] = q.Multi
	}
	b, _ := json.Marshal(all)
	return b
}

func (p *pair) leader(stream string) {
	q := p.request(stream)
	for q.Batch > 0 || len(q.Multi) > 0 {
		q = p.request(stream)
	}
	said := func(data []byte) string {
		var a struct {
			Error struct {
				ErrCode int `json:"err_code"`
			} `json:"error"`
			Message struct {
				Subject string `json:"subject"`
				Seq     uint64 `json:"seq"`
				Headers []byte `json:"hdrs"`
				Data    []byte `json:"data"`
			} `json:"message"`
		}
		if err := json.Unmarshal(data, &a); err != nil {
			p.Fatalf("%s: %v", data, err)
		}
		h, _ := nats.DecodeHeadersMsg(a.Message.Headers)
		return fmt.Sprint(a.Error.ErrCode, a.Message.Subject, a.Message.Seq, h, string(a.Message.Data))
	}
	subject := "$JS.API.STREAM.MSG.GET." + stream
	fake, _ := p.fake.Ask(subject, q.body())
	reply, err := p.nc.Request(subject, q.body(), time.Minute)
	if err != nil {
		p.Fatal(err)
	}
	p.same(fmt.Sprintf("leader %s %s", stream, q.body()), said(fake[0].Data), said(reply.Data))
}

func (p *pair) direct(stream string) {
	q := p.request(stream)
	said := func(list []*nats.Msg) string {
		var out []string
		for _, m := range list {
			keep := nats.Header{}
			for name, v := range m.Header {
				// The time of storage is the server's own; Skein does not look at the others.
				if !slices.Contains([]string{"Nats-Time-Stamp", "Nats-UpTo-Sequence", "Description"}, name) || len(q.Multi) > 0 && name == "Nats-UpTo-Sequence" {
					keep[name] = v
				}
			}
			out = append(out, fmt.Sprintf("%v %s", keep, m.Data))
		}
		return strings.Join(out, "\n          ")
	}
	subject := "$JS.API.DIRECT.GET." + stream
	fake, _ := p.fake.Ask(subject, q.body())
	inbox, err := p.nc.SubscribeSync(p.nc.NewInbox())
	if err != nil {
		p.Fatal(err)
	}
	defer func() { _ = inbox.Unsubscribe() }()
	if err := p.nc.PublishRequest(subject, inbox.Subject, q.body()); err != nil {
		p.Fatal(err)
	}
	var real []*nats.Msg
	for {
		m, err := inbox.NextMsg(time.Minute)
		if err != nil {
			p.Fatalf("%s %s: %v", subject, q.body(), err)
		}
		real = append(real, m)
		if m.Header.Get("Status") != "" || q.Batch == 0 && len(q.Multi) == 0 {
			break
		}
	}
	p.same(fmt.Sprintf("direct %s %s", stream, q.body()), said(fake), said(real))
}
