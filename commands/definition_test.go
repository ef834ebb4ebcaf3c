package commands

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/skein-threads/skein/events"
)

// applied returns what a reply says that an apply changed: "model m 1 added".
func applied(r *events.Reply) string {
	var out []string
	if r.Result != nil {
		for _, c := range r.Result.Definitions {
			out = append(out, fmt.Sprintf("%s %s %d %s", c.Kind, c.Name, c.Version, c.Outcome))
		}
	}
	return strings.Join(out, ", ")
}

func definitions(list ...string) string {
	return `{"data":{"definitions":[` + strings.Join(list, ",") + `]}}`
}

func modelOf(name, provider string) string {
	return `{"kind":"model","name":` + strconv.Quote(name) + `,"definition":{"model":` + strconv.Quote(provider) + `}}`
}

// An apply is one commit on the tenant's own aggregate. Doing it again writes
// nothing, and is answered with how the tenant stands; also by a process that has
// not seen the first.
func TestDefinitionApply(t *testing.T) {
	w := newWorld(t, Config{})
	const body = `{"commandId":"first","actor":"ada","data":{"definitions":[
		{"kind":"agent","definition":{"name":"support","type":"ai_human","model":"fast"}},
		{"kind":"model","name":"fast","definition":{"name":"fast","model":"gpt","params":{"b":1.0,"a":9007199254740993}}}]}}`
	empty := must(t, w.d, "definition.apply", `{"data":{"definitions":[`+modelOf("fast", "gpt")+`],"dryRun":true}}`)
	if applied(empty) != "model fast 1 added" || empty.Version != 0 || empty.Seq != 0 || len(empty.Events) != 0 || w.lastSeq() != 0 {
		t.Errorf("a dry run on a tenant without anything: %+v", empty)
	}
	first := must(t, w.d, "definition.apply", body)
	if applied(first) != "agent support 1 added, model fast 1 added" || first.Version != 2 || first.Seq != 1 || len(first.Events) != 2 || first.ThreadID != "" {
		t.Errorf("%+v", first)
	}
	commits := w.commits(events.TenantAggregate)
	made := commits[0].Events[1].Data.(events.DefinitionChanged)
	if len(commits) != 1 || string(made.Definition) != `{"model":"gpt","name":"fast","params":{"a":9007199254740993,"b":1.0}}` || made.Digest != events.DefinitionDigest(made.Definition) {
		t.Errorf("%+v", made)
	}
	again := must(t, w.d, "definition.apply", body) // the same command: its first answer
	if applied(again) != applied(first) || again.Seq != 1 {
		t.Errorf("%+v", again)
	}
	for name, d := range map[string]*Dispatcher{"this process": w.d, "another": w.another(Config{})} {
		same := must(t, d, "definition.apply", strings.Replace(body, "first", "second", 1))
		if applied(same) != "" || same.Version != 2 || same.Seq != 1 || len(same.Events) != 0 || w.lastSeq() != 1 {
			t.Errorf("%s: %+v", name, same)
		}
	}
	dry := must(t, w.d, "definition.apply", `{"data":{"definitions":[`+modelOf("fast", "x")+`],"dryRun":true}}`)
	if applied(dry) != "model fast 2 changed" || dry.Version != 2 || dry.Seq != 1 || w.lastSeq() != 1 {
		t.Errorf("a dry run: %+v", dry)
	}
	moved := must(t, w.d, "definition.apply", `{"expectedVersion":2,"data":{"definitions":[`+modelOf("fast", "x")+`]}}`)
	if applied(moved) != "model fast 2 changed" || moved.Version != 3 {
		t.Errorf("%+v", moved)
	}
	gone := must(t, w.d, "definition.apply", `{"data":{"remove":[{"kind":"agent","name":"support"},{"kind":"tool","name":"none"}]}}`)
	if applied(gone) != "agent support 2 removed" || gone.Version != 4 {
		t.Errorf("%+v", gone)
	}
}

// Each refusal says where, and writes nothing.
func TestDefinitionApplyRefusals(t *testing.T) {
	w := newWorld(t, Config{})
	large := `{"kind":"prompt","definition":{"name":"p","text":"` + strings.Repeat("a", events.MaxDefinitionBytes) + `"}}`
	for _, c := range []struct {
		name, body, path string
		code             events.Code
	}{
		{"definition.apply", `{}`, "/data", events.InvalidRequest},
		{"definition.apply", `{"data":{"definitions":{}}}`, "/data/definitions", events.InvalidRequest},
		{"definition.apply", `{"data":{"definitions":[{"kind":"model"}]}}`, "/data/definitions/0/definition", events.InvalidRequest},
		{"definition.apply", `{"data":{"definitions":[{"kind":"spell","definition":{}}]}}`, "/data/definitions/0/kind", events.InvalidRequest},
		{"definition.apply", `{"data":{"definitions":[{"kind":"model","name":"a","definition":{"name":"b","model":"x"}}]}}`, "/data/definitions/0/name", events.InvalidRequest},
		{"definition.apply", `{"data":{"definitions":[` + modelOf("a", "x") + `,{"kind":"model","definition":{"name":"b","modle":"x"}}]}}`, "/data/definitions/1/definition/modle", events.InvalidRequest},
		{"definition.apply", definitions(`{"kind":"agent","definition":{"name":"a","type":"ai_human","model":"gone"}}`), "/data/definitions/0/definition/model", events.InvalidRequest},
		{"definition.apply", `{"data":{"remove":[{"kind":"model"}]}}`, "/data/remove/0/name", events.InvalidRequest},
		{"definition.apply", `{"data":{"remove":[{"kind":"model","name":"a","path":"x"}]}}`, "/data/remove/0/path", events.InvalidRequest},
		{"definition.apply", `{"threadId":"T-0195e5d0-3c1a-7b2e-9f44-1d2e3f405162","data":{"definitions":[]}}`, "/threadId", events.InvalidRequest},
		{"definition.apply", `{"expectedVersion":7,"data":{"definitions":[` + modelOf("a", "x") + `]}}`, "", events.VersionConflict},
		{"definition.apply", definitions(large), "", events.PayloadTooLarge},
		{"thread.commit", `{"data":{"commands":[{"command":"definition.apply","data":{"definitions":[]}}]}}`, "/data/commands/0/command", events.InvalidRequest},
		{"thread.status", `{"threadId":"tenant","data":{"to":"open"}}`, "/threadId", events.InvalidRequest},
	} {
		e := refused(t, w.d, c.code, c.name, c.body)
		if c.path != "" && (e.Details == nil || e.Details.Path != c.path) {
			t.Errorf("%.200s: %v at %+v, want %s", c.body, e, e.Details, c.path)
		}
	}
	if w.lastSeq() != 0 {
		t.Error("something was written")
	}
}

// Appliers that race, in several processes: each change is made once, versions
// have no gap, and nobody is told of a change that another one made.
func TestDefinitionAppliersRace(t *testing.T) {
	w := newWorld(t, Config{})
	workers := []*Dispatcher{w.d, w.another(Config{}), w.another(Config{})}
	const rounds = 8
	told := make([][]string, len(workers))
	var all sync.WaitGroup
	for i, d := range workers {
		all.Go(func() {
			for n := range rounds {
				// All apply the same, and one of their own.
				reply, err := ask(t, d, "definition.apply", definitions(modelOf("shared", fmt.Sprint("v", n)), modelOf(fmt.Sprint("own", i), fmt.Sprint("v", n))))
				if err != nil {
					t.Errorf("%v (%v)", err, err.Cause)
					return
				}
				if reply.Result != nil {
					for _, c := range reply.Result.Definitions {
						told[i] = append(told[i], fmt.Sprintf("%s %d", c.Name, c.Version))
					}
				}
			}
		})
	}
	all.Wait()
	versions, content, want := map[string]int64{}, map[string]string{}, map[string]bool{}
	for _, c := range w.commits(events.TenantAggregate) {
		for i := range c.Events {
			d := c.Events[i].Data.(events.DefinitionChanged)
			if versions[d.Name]++; d.Version != versions[d.Name] || content[d.Name] == string(d.Definition) {
				t.Errorf("%s has version %d after %d, and was %s", d.Name, d.Version, versions[d.Name]-1, content[d.Name])
			}
			content[d.Name] = string(d.Definition)
			want[fmt.Sprintf("%s %d", d.Name, d.Version)] = true
		}
	}
	for i := range workers {
		if got := versions[fmt.Sprint("own", i)]; got != rounds {
			t.Errorf("own%d has version %d, want %d", i, got, rounds)
		}
		for _, change := range told[i] {
			if !want[change] {
				t.Errorf("%s was told twice, or is not in the log", change)
			}
			delete(want, change)
		}
	}
	if len(want) > 0 {
		t.Errorf("nobody was told of %v", want)
	}
}

// What shares a commit with others keeps its own answer, and one that has nothing
// to do is answered on what is stored.
func TestDefinitionAppliesShareACommit(t *testing.T) {
	w := newWorld(t, Config{})
	const n = 40
	replies := make([]*events.Reply, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			replies[i] = must(t, w.d, "definition.apply", definitions(modelOf(fmt.Sprint("m", i%10), "x")))
		})
	}
	all.Wait()
	added := 0
	for i, r := range replies {
		switch applied(r) {
		case "":
			if len(r.Events) != 0 || r.Seq == 0 {
				t.Errorf("%+v", r)
			}
		case fmt.Sprintf("model m%d 1 added", i%10):
			added++
		default:
			t.Errorf("%d: %s", i, applied(r))
		}
	}
	if added != 10 {
		t.Errorf("%d were added", added)
	}
}

// A long history is snapshotted, and a process that begins with the snapshot
// decides the same.
func TestDefinitionsSurviveASnapshot(t *testing.T) {
	w := newWorld(t, Config{SnapshotEvery: 20})
	for n := range 30 {
		must(t, w.d, "definition.apply", definitions(modelOf("m", fmt.Sprint(n)), modelOf(fmt.Sprint("m", n), "x")))
	}
	d := w.another(Config{SnapshotEvery: 20})
	if r := must(t, d, "definition.apply", definitions(modelOf("m", "29"), modelOf("m7", "x"))); applied(r) != "" || r.Version != 60 {
		t.Errorf("%+v", r)
	}
	if r := must(t, d, "definition.apply", definitions(modelOf("m", "new"))); applied(r) != "model m 31 changed" {
		t.Errorf("%+v", r)
	}
}

// Submitted applies of a tenant are done in their order, each once; one that has
// nothing to do is taken off the list, and one that is refused is recorded.
func TestSubmittedDefinitions(t *testing.T) {
	w := newWorld(t, Config{})
	const n = 20
	for i := range n {
		body := definitions(modelOf("m", fmt.Sprint(i)))
		w.submit("definition.apply", body)
		w.submit("definition.apply", body)
	}
	w.submit("definition.apply", definitions(`{"kind":"model","definition":{"name":"m"}}`))
	stop := w.work(w.d)
	w.empty()
	stop()
	next := 0
	for _, c := range w.commits(events.TenantAggregate) {
		for i := range c.Events {
			if d, ok := c.Events[i].Data.(events.DefinitionChanged); ok {
				if want := fmt.Sprintf(`{"model":"%d","name":"m"}`, next); string(d.Definition) != want {
					t.Errorf("%s, want %s", d.Definition, want)
				}
				next++
			}
		}
	}
	if rejected := w.rejections(events.TenantAggregate); next != n || len(rejected) != 1 || rejected[0].Command != "definition.apply" {
		t.Errorf("%d changes, refused: %+v", next, rejected)
	}
}
