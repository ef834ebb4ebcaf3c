package audit

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/skein-threads/skein/events"
)

// Every commit of a thread, changed in every way by a forger who computes the
// chains again, is found at that commit.
func TestTampering_ForgedCommits(t *testing.T) {
	t.Parallel()
	p := newPlot(t)
	p.stopRelay()
	replace := func(pattern, with string) func(*nats.Msg) {
		re := regexp.MustCompile(pattern)
		return func(m *nats.Msg) {
			changeEvent(m, func(e string) string {
				at := re.FindStringIndex(e)
				if at == nil {
					return e
				}
				return e[:at[0]] + re.ReplaceAllString(e[at[0]:at[1]], with) + e[at[1]:]
			})
		}
	}
	ways := []struct {
		name   string
		change func(*nats.Msg)
		kinds  []Kind
	}{
		{"an extra attribute", replace(`"datacontenttype"`, `"extra":1,"datacontenttype"`), []Kind{KindLayout}},
		{"an extra field of the data", replace(`"data":\{`, `"data":{"extra":1,`), []Kind{KindLayout}},
		{"a space", replace(`"data":`, `"data": `), []Kind{KindLayout}},
		{"a space between events", func(m *nats.Msg) { m.Data = append([]byte(" "), m.Data...) }, []Kind{KindLayout}},
		{"fields in another order", replace(`("tenant":"[^"]*"),("threadid":"[^"]*")`, `$2,$1`), []Kind{KindLayout}},
		{"another event id", replace(`"id":"[0-9a-f]{8}`, `"id":"00000000`), []Kind{KindCondition}},
		{"another command id", replace(`"commandid":"cmd`, `"commandid":"cmx`), []Kind{KindCondition}},
		{"no command id", replace(`"commandid":"[^"]*",`, ``), []Kind{KindSchema, KindCondition}},
		{"another subject", replace(`"subject":"[^"]*"`, `"subject":"itm_other"`), []Kind{KindLink, KindCondition}},
		{"another correlation", replace(`("commandid":"[^"]*",)("correlationid":"[^"]*",)?`, `${1}"correlationid":"exe_other",`), []Kind{KindCondition}},
		{"a time years ahead", replace(`"time":"\d{4}`, `"time":"2099`), []Kind{KindTime}},
		{"another schema's version", replace(`(urn:skein:event:[a-z.]+):\d+`, `$1:77`), []Kind{KindUnknown}},
		{"another type", replace(`"type":"[a-z.]+"`, `"type":"thread.sung"`), []Kind{KindUnknown}},
		{"no data", replace(`,"data":.*`, `}`), []Kind{KindBroken, KindSchema}},
		{"a header with zeroes", func(m *nats.Msg) { m.Header.Set(events.HeaderVersion, "00"+m.Header.Get(events.HeaderVersion)) }, []Kind{KindHeader}},
		{"a header with a sign", func(m *nats.Msg) { m.Header.Set(events.HeaderVersion, "+"+m.Header.Get(events.HeaderVersion)) }, []Kind{KindHeader}},
		{"another content type", func(m *nats.Msg) { m.Header.Set(events.HeaderType, "application/json") }, []Kind{KindHeader}},
		{"no content type", func(m *nats.Msg) { m.Header.Del(events.HeaderType) }, []Kind{KindHeader}},
		{"an extra header", func(m *nats.Msg) { m.Header.Set("X-Extra", "1") }, []Kind{KindHeader}},
		{"a header twice", func(m *nats.Msg) { m.Header.Add(events.HeaderType, events.BatchContentType) }, []Kind{KindHeader}},
	}
	for n := range whole(t, threadOne).commits {
		for _, way := range ways {
			if n == 0 && way.name == "another command id" {
				continue // it is a right thread, of another command
			}
			id := p.next()
			list := whole(t, id).messages()
			before, headers := bytes.Clone(list[n].Data), fmt.Sprint(list[n].Header)
			way.change(list[n])
			if bytes.Equal(before, list[n].Data) && headers == fmt.Sprint(list[n].Header) {
				t.Fatalf("%s changes nothing in commit %d: %s", way.name, n, before)
			}
			rechain(list)
			p.plant(fmt.Sprintf("%s, in commit %d of 18", way.name, n+1), id, list, n, way.kinds...)
		}
	}
	p.look(Options{LogOnly: true, Checks: []Check{}})
}

// What happens to commits in place, without new chains, is found where it was
// done: but for the end of a thread, which a witness shows.
func TestTampering_InPlace(t *testing.T) {
	t.Parallel()
	p := newPlot(t)
	p.stopRelay()
	ways := []struct {
		name   string
		last   bool // also of the last commit
		change func(list []*nats.Msg, n int) []*nats.Msg
		kinds  []Kind
	}{
		{"a bit flipped at the beginning", true, func(l []*nats.Msg, n int) []*nats.Msg { l[n].Data[0] ^= 1; return l }, []Kind{KindBroken}},
		{"a bit flipped in the middle", true, func(l []*nats.Msg, n int) []*nats.Msg { l[n].Data[len(l[n].Data)/2] ^= 1; return l }, []Kind{KindChain, KindBroken}},
		{"a bit flipped at the end", true, func(l []*nats.Msg, n int) []*nats.Msg { l[n].Data[len(l[n].Data)-3] ^= 4; return l }, []Kind{KindChain, KindBroken}},
		{"cut short", true, func(l []*nats.Msg, n int) []*nats.Msg { l[n].Data = l[n].Data[:len(l[n].Data)/2]; return l }, []Kind{KindBroken}},
		{"empty", true, func(l []*nats.Msg, n int) []*nats.Msg { l[n].Data = nil; return l }, []Kind{KindBroken}},
		{"without headers", true, func(l []*nats.Msg, n int) []*nats.Msg { l[n].Header = nil; return l }, []Kind{KindBroken}},
		{"twice", true, func(l []*nats.Msg, n int) []*nats.Msg { return slices.Insert(l, n, l[n]) }, []Kind{KindChain}},
		{"left out", false, func(l []*nats.Msg, n int) []*nats.Msg { return slices.Delete(l, n, n+1) }, []Kind{KindChain}},
		{"after the next", false, func(l []*nats.Msg, n int) []*nats.Msg { l[n], l[n+1] = l[n+1], l[n]; return l }, []Kind{KindChain}},
	}
	for n := range 18 {
		for _, way := range ways {
			id := p.next()
			list := whole(t, id).messages()
			if n == len(list)-1 && !way.last {
				continue
			}
			list = way.change(list, n)
			at := n
			if way.name == "twice" {
				at++
			}
			p.plant(fmt.Sprintf("commit %d of 18 %s", n+1, way.name), id, list, at, way.kinds...)
		}
	}
	p.look(Options{LogOnly: true, Checks: []Check{}})
}

// forgedEvent is one event that a forger adds to a thread, with a right chain.
type forgedEvent struct {
	name        string
	base        func(testing.TB, string) *tale
	typ         events.Type
	subject     string // THREAD: the thread's id
	correlation string
	data        any
	kinds       []Kind
}

// add forges the event after a tale.
func (f forgedEvent) add(t testing.TB, k *tale) []*nats.Msg {
	e := events.Event{
		ID: events.EventID("acme", k.id, "forged", 0), Type: f.typ, Time: k.at + 5000, Subject: strings.ReplaceAll(f.subject, "THREAD", k.id),
		Correlation: f.correlation, Tenant: "acme", ThreadID: k.id, Version: k.state.Version + 1, CommandID: "forged", Data: f.data,
	}
	if f.typ == events.ChunkEmittedType { // NewCommit refuses it
		e.Type, e.Data = "chunk.emitted", events.Unknown{Schema: "urn:skein:event:chunk.emitted:1", Raw: raw(`{"executionId":"exe_1","index":0,"attempt":1,"type":"finish"}`)}
		body, err := e.Append([]byte("["))
		if err != nil {
			t.Fatal(err)
		}
		body = append(body, ']')
		return append(k.messages(), message(&events.Commit{Thread: k.id, Version: e.Version, Chain: events.Chain(k.state.Chain, body), Body: body}))
	}
	commit, err := events.NewCommit(k.state.Chain, []events.Event{e})
	if err != nil {
		t.Fatal(err)
	}
	return append(k.messages(), message(commit))
}

// fromNow makes a time of the log, from now.
func fromNow(d time.Duration) string { return events.TimeOf(time.Now().Add(d)).String() }
