package audit

import (
	"fmt"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/skein-threads/skein/events"
)

// chainOf makes commits of any aggregate, one event each, with right chains.
func chainOf(t testing.TB, tenant, id string, list ...events.Event) (out []*nats.Msg) {
	t.Helper()
	chain := ""
	at := newTale(t, id).at
	for i, e := range list {
		command := e.CommandID
		if command == "" {
			command = fmt.Sprintf("forged-%d", i)
		}
		e.ID, e.CommandID, e.Tenant, e.ThreadID = events.EventID(tenant, id, command, 0), command, tenant, id
		if e.Version == 0 {
			e.Version = int64(i + 1)
		}
		if e.Subject == "" {
			e.Subject = id
		}
		e.Time = at + events.Time(i)
		c, err := events.NewCommit(chain, []events.Event{e})
		if err != nil {
			t.Fatal(err)
		}
		chain = c.Chain
		m := message(c)
		m.Subject = "skein.log." + tenant + "." + id
		out = append(out, m)
	}
	return out
}

// Keys, tombstones, the tenant's own aggregate and commands that are done twice:
// what a forger adds to them with right chains is found.
func TestTampering_OtherAggregates(t *testing.T) {
	t.Parallel()
	p := newPlot(t)
	p.stopRelay()
	live := p.next()
	p.write(whole(t, live).messages(), 0)
	own := p.do("thread.create", fmt.Sprintf(`{"threadId":%q,"data":{"key":"own"}}`, p.next())).ThreadID
	claim := func(key, id string) events.Event {
		return events.Event{Type: events.KeyClaimedType, Data: events.KeyClaimed{Key: key, ThreadID: id}}
	}
	release := func(key, id string) events.Event {
		return events.Event{Type: events.KeyReleasedType, Data: events.KeyReleased{Key: key, ThreadID: id}}
	}
	either := []Kind{KindCondition, KindLink}
	for name, list := range map[string][]events.Event{
		"for a thread that never claimed it":    {claim("KEY", live)},
		"for a thread with another key":         {claim("KEY", own)},
		"for no thread":                         {claim("KEY", "T-0190a000-0000-7000-8000-00000000dead")},
		"claimed twice":                         {claim("KEY", own), claim("KEY", live)},
		"released, and not held":                {release("KEY", live)},
		"released by another":                   {claim("KEY", live), release("KEY", own)},
		"another key on its subject":            {claim("other", live)},
		"another key released on its subject":   {claim("KEY", live), release("other", live)},
		"an item on its subject":                {{Type: events.MessageDeletedType, Subject: "itm_1", Data: events.MessageDeleted{ContextID: "c", Type: "message"}}},
		"a definition on its subject":           {{Type: events.DefinitionChangedType, Subject: "agent/a", Data: events.DefinitionChanged{Kind: "agent", Name: "a", Version: 1}}},
		"a thread on its subject":               {{Type: events.ThreadCreatedType, Data: events.ThreadCreated{ID: live, Status: "open"}}},
		"a refusal on its subject":              {{Type: events.CommandRejectedType, Data: events.CommandRejected{Command: "x.y", Code: "not_found", Message: "no"}}},
		"the same command twice on its subject": {{CommandID: "c", Type: events.KeyClaimedType, Data: events.KeyClaimed{Key: "KEY", ThreadID: live}}, {CommandID: "c", Type: events.KeyReleasedType, Data: events.KeyReleased{Key: "KEY", ThreadID: live}}},
	} {
		key := "key: " + name
		for i := range list {
			switch d := list[i].Data.(type) {
			case events.KeyClaimed:
				d.Key = strings.Replace(d.Key, "KEY", key, 1)
				list[i].Data = d
			case events.KeyReleased:
				d.Key = strings.Replace(d.Key, "KEY", key, 1)
				list[i].Data = d
			}
		}
		id := events.KeyAggregate(key)
		p.plant(key, id, chainOf(t, "acme", id, list...), len(list)-1, either...)
	}
	tombstone := events.Event{Type: events.LifecycleDeletedType, Version: 9, Data: events.LifecycleDeleted{Purge: true}}
	id := p.next()
	p.plant("a tombstone of a thread that never was", id, chainOf(t, "acme", id, tombstone), 0, KindLink)
	id = p.next()
	p.plant("a tombstone that does not purge", id, chainOf(t, "acme", id, events.Event{Type: events.LifecycleDeletedType, Version: 9, Data: events.LifecycleDeleted{}}), 0, KindLink, KindVersion)
	// A command or an event that is there twice, one commit later or in the same.
	id = p.next()
	k := whole(t, id)
	again, err := events.NewCommit(k.state.Chain, []events.Event{{
		ID: events.EventID("acme", id, "cmd-3", 0), Type: events.ProfileChangedType, Time: k.at + 9, Subject: id, Tenant: "acme", ThreadID: id,
		Version: k.state.Version + 1, CommandID: "cmd-3", Data: events.ProfileChanged{Title: to("x")},
	}})
	if err != nil {
		t.Fatal(err)
	}
	p.plant("a command and an event id twice", id, append(k.messages(), message(again)), len(k.commits), KindCondition)
	id = p.next()
	k = newTale(t, id).tell(events.CreateThread{})
	var two []events.Event
	for i, command := range []string{"a", "b", "a"} {
		two = append(two, events.Event{
			ID: events.EventID("acme", id, command, 0), Type: events.ProfileChangedType, Time: k.at + 9, Subject: id, Tenant: "acme", ThreadID: id,
			Version: k.state.Version + 1 + int64(i), CommandID: command, Data: events.ProfileChanged{Title: to("x")},
		})
	}
	twice, err := events.NewCommit(k.state.Chain, two)
	if err != nil {
		t.Fatal(err)
	}
	p.plant("a command twice in one commit", id, append(k.messages(), message(twice)), 1, KindCondition)
	// A thread whose first commit lacks what belongs to it.
	key := "mine"
	for name, list := range map[string][]events.Event{
		"without its default context": {{Type: events.ThreadCreatedType}},
		"without the claim of its key": {{Type: events.ThreadCreatedType}, {Type: events.ContextCreatedType, Subject: "ctx_1",
			Data: events.ContextCreated{ID: "ctx_1", Status: "open", Default: true, Content: raw("null")}}},
		"that begins with its context": {{Type: events.ContextCreatedType, Subject: "ctx_1", Data: events.ContextCreated{ID: "ctx_1", Status: "open", Default: true, Content: raw("null")}}},
	} {
		id := p.next()
		if list[0].Type == events.ThreadCreatedType {
			created := events.ThreadCreated{ID: id, Status: "open"}
			if len(list) > 1 {
				created.Key = &key
			}
			list[0].Data = created
		}
		p.plant("a thread "+name, id, chainOf(t, "acme", id, list...), 0, KindCondition, KindLink)
	}
	p.look(Options{LogOnly: true, Checks: []Check{}})
}

// What a forger adds to a tenant's definitions with right chains is found.
func TestTampering_Definitions(t *testing.T) {
	t.Parallel()
	p := newPlot(t)
	p.stopRelay()
	prompt := func(name, text string) (raw []byte, digest string) {
		raw, err := events.EncodeDefinition(events.PromptDefinition{Name: name, Text: text})
		if err != nil {
			t.Fatal(err)
		}
		return raw, events.DefinitionDigest(raw)
	}
	a, digest := prompt("a", "x")
	b, digestB := prompt("a", "y")
	first := events.DefinitionChanged{Kind: "prompt", Name: "a", Version: 1, Digest: digest, Definition: a}
	agent, err := events.EncodeDefinition(events.AgentDefinition{Name: "a", Model: "nowhere"})
	if err != nil {
		t.Fatal(err)
	}
	n, missed := 0, 0
	for name, next := range map[string]events.DefinitionChanged{
		"a version skipped":         {Kind: "prompt", Name: "a", Version: 3, Previous: 1, Digest: digestB, Definition: b},
		"a version twice":           {Kind: "prompt", Name: "a", Version: 1, Digest: digestB, Definition: b},
		"another previous":          {Kind: "prompt", Name: "a", Version: 2, Previous: 7, Digest: digestB, Definition: b},
		"no previous":               {Kind: "prompt", Name: "a", Version: 2, Digest: digestB, Definition: b},
		"another digest":            {Kind: "prompt", Name: "a", Version: 2, Previous: 1, Digest: digest, Definition: b},
		"no digest":                 {Kind: "prompt", Name: "a", Version: 2, Previous: 1, Definition: b},
		"what it was":               {Kind: "prompt", Name: "a", Version: 2, Previous: 1, Digest: digest, Definition: a},
		"removed, and never made":   {Kind: "prompt", Name: "b", Version: 1},
		"removed with a digest":     {Kind: "prompt", Name: "a", Version: 2, Previous: 1, Digest: digest},
		"under another name":        {Kind: "prompt", Name: "b", Version: 1, Digest: digestB, Definition: b},
		"a model that is not there": {Kind: "agent", Name: "a", Version: 1, Digest: events.DefinitionDigest(agent), Definition: agent},
	} {
		n++
		tenant := fmt.Sprintf("tenant-%d", n)
		list := chainOf(t, tenant, events.TenantAggregate,
			events.Event{Type: events.DefinitionChangedType, Subject: "prompt/a", Data: first},
			events.Event{Type: events.DefinitionChangedType, Subject: events.DefinitionRef{Kind: next.Kind, Name: next.Name}.ID(), Data: next})
		seq := p.write(list, 1)
		found, _ := p.verify(Options{Tenant: tenant, LogOnly: true, Checks: []Check{}})
		hit := false
		for _, f := range found {
			hit = hit || f.Seq == seq && f.Tenant == tenant && (f.Kind == KindCondition || f.Kind == KindLink)
		}
		if !hit {
			missed++
			t.Errorf("%s: %v", name, found)
		}
	}
	t.Logf("%d tamperings planted, %d found", n, n-missed)
}
