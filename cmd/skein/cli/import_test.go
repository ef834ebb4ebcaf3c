package cli_test

import (
	"github.com/go-json-experiment/json/jsontext"

	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/rs/zerolog"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/cmd/skein/cli"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/events/openresponses"
	"github.com/skein-threads/skein/internal/natstest"
	"github.com/skein-threads/skein/internal/openaichat"
	"github.com/skein-threads/skein/internal/openaichat/chattest"
	"github.com/skein-threads/skein/server"
)

// start runs a whole Skein and returns a client of it.
func start(t testing.TB) *client.Client {
	t.Helper()
	c, _ := startAt(t)
	return c
}

// startAt also returns the address of its NATS server.
func startAt(t testing.TB) (*client.Client, string) {
	t.Helper()
	s, err := server.Start(t.Context(), server.Config{
		Store: t.TempDir(), NATSListen: "127.0.0.1:0", HTTPListen: "127.0.0.1:0", Volatile: true,
	}, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.Connect(s.Addresses().NATS, client.Options{Tenant: "acme", Timeout: natstest.Patience})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Close()
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
		defer cancel()
		if err := s.Stop(ctx); err != nil {
			t.Error(err)
		}
	})
	return c, s.Addresses().NATS
}

func file(text string) cli.ImportSource {
	return cli.ImportSource{Name: "file", Open: func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(text)), nil }}
}

// do imports a text, which must have no problems unless some are expected.
func do(t testing.TB, c *client.Client, text string, problems ...*[]cli.ImportProblem) cli.ImportSummary {
	t.Helper()
	sum, err := cli.ImportConversations(t.Context(), c, []cli.ImportSource{file(text)}, cli.ImportOptions{Problem: func(p cli.ImportProblem) {
		if len(problems) == 0 {
			t.Errorf("line %d: %s", p.Line, p.Message)
			return
		}
		*problems[0] = append(*problems[0], p)
	}})
	if err != nil {
		t.Fatal(err)
	}
	return sum
}

// history returns a thread's events, checked (EK-150).
func history(t testing.TB, c *client.Client, id string) []events.Event {
	t.Helper()
	line, err := c.Timeline(t.Context(), client.SubscribeOptions{Thread: events.DeriveThreadID("acme", "import:"+id), History: true})
	if err != nil {
		t.Fatal(err)
	}
	defer line.Close()
	var out []events.Event
	for e, err := range line.All(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, e.Event)
	}
	if err := events.ValidateTimeline(out); err != nil {
		t.Fatal(err)
	}
	return out
}

func types(list []events.Event) string {
	var out []string
	for _, e := range list {
		out = append(out, string(e.Type))
	}
	return strings.Join(out, " ")
}

const userTurn = `{"role":"user","content":"plan it"}`
const planned = `{"role":"assistant","content":"I write it.","tool_calls":[{"id":"tc_1","type":"function","function":{"name":"plan_writer","arguments":"{\"scope\":\"full\"}"}}]},` +
	`{"role":"tool","tool_call_id":"tc_1","content":"done"},{"role":"assistant","content":"There it is."}`

// A turn is one commit in the order of EK 7 (EK-110..EK-119), with the shapes of
// the example of EK 14 (EK-187..EK-191).
func TestTurnInTheOrderOfEK7(t *testing.T) {
	t.Parallel()
	c := start(t)
	do(t, c, `{"id":"1","messages":[`+userTurn+`,`+planned+`]}`)
	all := history(t, c, "1")
	const want = "thread.created context.created key.claimed " +
		"context.resolved item.created thread.status.changed context.status.changed execution.created " + // EK-110..EK-112
		"step.created part.created part.created item.created " + // EK-113..EK-115
		"item.created item.created part.updated message.edited step.status.changed " + // EK-116, EK-117, C-9
		"step.created part.created message.edited step.status.changed " + // EK-118
		"item.status.changed execution.status.changed thread.finished context.status.changed thread.status.changed" // EK-119
	if got := types(all); got != want {
		t.Errorf("events:\n%s\nnot:\n%s", got, want)
	}
	turn := all[3:]
	for _, e := range turn { // one atomic commit
		if e.CommandID != turn[0].CommandID {
			t.Errorf("%s is of the command %s", e.Type, e.CommandID)
		}
	}
	execution := turn[4].Data.(events.ExecutionCreated)
	reaction := turn[8].Data.(events.ItemCreated)
	if execution.TriggerItemID != turn[1].Subject || execution.ReactionItemID != reaction.ID || execution.Status != events.Executing { // EK-188
		t.Errorf("%+v", execution)
	}
	const pending = `[{"type":"output_text","text":"I write it."},{"type":"tool-plan_writer","toolCallId":"tc_1","input":{"scope":"full"}}]`
	if reaction.Status != events.ItemPending || string(reaction.Content) != pending { // EK-189
		t.Errorf("%s %s", reaction.Status, reaction.Content)
	}
	const merged = `{"type":"tool-plan_writer","toolCallId":"tc_1","state":"output-available","input":{"scope":"full"},"output":"done"}`
	part := turn[11].Data.(events.PartUpdated)
	if part.Idx != 1 || part.Key != turn[7].Subject || string(part.Part) != merged { // EK-190, C-42: the input stays
		t.Errorf("%+v", part)
	}
	first, last := turn[13].Data.(events.StepStatusChanged), turn[17].Data.(events.StepStatusChanged)
	if !*first.ContinueLoop || *last.ContinueLoop || !strings.Contains(string(first.ToolExecutionResults), `"done"`) ||
		!strings.Contains(string(first.ToolCalls), `"plan_writer"`) {
		t.Errorf("%+v %+v", first, last)
	}
	thread, err := client.Read(t.Context(), c.WithMinSeq(int64(lastSeq(t, c))), events.GetThread{ThreadID: "key:import:1"})
	if err != nil || thread.Status != events.ThreadOpen { // EK-191
		t.Errorf("%+v, %v", thread, err)
	}
}

func lastSeq(t testing.TB, c *client.Client) uint64 {
	t.Helper()
	line, err := c.Timeline(t.Context(), client.SubscribeOptions{History: true})
	if err != nil {
		t.Fatal(err)
	}
	defer line.Close()
	var seq uint64
	for e := range line.All(t.Context()) {
		seq = uint64(e.Seq)
	}
	return seq
}

// Whatever is imported again adds nothing; what has grown adds what is new.
func TestImportAgainAndGrown(t *testing.T) {
	t.Parallel()
	c := start(t)
	conversation := func(messages ...string) string {
		return `{"id":"grows","messages":[` + strings.Join(messages, ",") + `]}`
	}
	system := `{"role":"system","content":"be kind"}`
	more := `{"role":"user","content":"more"}`
	grown := []string{}
	version := 0
	for _, step := range []struct {
		add   string
		turns int
	}{
		{system, 0},
		{userTurn, 1},
		{planned, 0}, // the turn that nobody had answered is answered by another execution
		{system, 0},
		{more, 1},
		{`{"role":"assistant","content":"one"}`, 0},
		{`{"role":"assistant","content":"two"},` + system, 0}, // an answer that goes on
		{`{"role":"assistant","content":"three"},` + userTurn, 1},
	} {
		grown = append(grown, step.add)
		sum := do(t, c, conversation(grown...))
		if sum.Conversations != 1 || sum.Turns != step.turns || sum.Events == 0 {
			t.Errorf("after %s: %+v", step.add, sum)
		}
		before := types(history(t, c, "grows"))
		if sum := do(t, c, conversation(grown...)); sum.Events != 0 || sum.Unchanged != 1 || sum.Conversations != 0 {
			t.Errorf("again after %s: %+v", step.add, sum)
		}
		if after := types(history(t, c, "grows")); after != before || len(after) <= version {
			t.Errorf("after %s:\n%s\nthen:\n%s", step.add, before, after)
		}
		version = len(before)
	}
	all := types(history(t, c, "grows"))
	for want, n := range map[string]int{"execution.created": 7, "step.created": 5, "thread.finished": 7} {
		if got := strings.Count(all, want); got != n {
			t.Errorf("%d %s, not %d", got, want, n)
		}
	}
}

// An import that was killed amid a turn of several commits is finished by the
// next one.
func TestKilledImportIsFinished(t *testing.T) {
	t.Parallel()
	var steps []string
	for i := range 80 { // of several commits
		steps = append(steps, call(fmt.Sprint("c", i), "f", `{"n":1}`), fmt.Sprintf(`{"role":"tool","tool_call_id":"c%d","content":"ok"}`, i))
	}
	text := `{"id":"long","messages":[` + userTurn + `,` + strings.Join(steps, ",") + `,` + userTurn + `]}`
	whole := start(t)
	want := do(t, whole, text)
	wantTypes := types(history(t, whole, "long"))
	for kill := 2; kill <= 4; kill++ {
		c := start(t)
		ctx, cancel := context.WithCancel(t.Context())
		commits := 0
		_, err := cli.ImportConversations(ctx, c, []cli.ImportSource{file(text)}, cli.ImportOptions{Progress: func(cli.ImportSummary) {
			if commits++; commits == kill {
				cancel()
			}
		}})
		if err == nil {
			t.Fatal("the import was not killed")
		}
		before := len(history(t, c, "long"))
		sum := do(t, c, text)
		if got := types(history(t, c, "long")); got != wantTypes || before+sum.Events != want.Events {
			t.Errorf("killed after %d commits: %d events, then %d more; not %d", kill, before, sum.Events, want.Events)
		}
	}
}

// A step that is larger than a commit may be is split, and so is what is put into a reaction that is
// larger than an event may be.
func TestLargeTurns(t *testing.T) {
	t.Parallel()
	c := start(t)
	big := strings.Repeat("x", 200<<10)
	var calls, results, large []string
	for i := range 90 { // 4 commands a call
		calls = append(calls, fmt.Sprintf(`{"id":"c%d","type":"function","function":{"name":"f","arguments":"{}"}}`, i))
		results = append(results, fmt.Sprintf(`{"role":"tool","tool_call_id":"c%d","content":"r"}`, i))
	}
	for i := range 6 {
		large = append(large, call(fmt.Sprint("c", i), "f", "{}"), fmt.Sprintf(`{"role":"tool","tool_call_id":"c%d","content":"%s"}`, i, big))
	}
	sum := do(t, c, `{"id":"wide","messages":[`+userTurn+`,{"role":"assistant","content":null,"tool_calls":[`+strings.Join(calls, ",")+`]},`+strings.Join(results, ",")+`]}`+"\n"+
		`{"id":"large","messages":[`+userTurn+`,`+strings.Join(large, ",")+`]}`)
	if sum.Turns != 2 || sum.ToolCalls != 96 {
		t.Errorf("%+v", sum)
	}
	for _, id := range []string{"wide", "large"} {
		var ids []string
		for _, e := range history(t, c, id) {
			ids = append(ids, e.CommandID)
		}
		if n := len(slices.Compact(ids)); n < 3 {
			t.Errorf("%s has %d commits", id, n)
		}
	}
	var problems []cli.ImportProblem
	do(t, c, `{"id":"huge","messages":[{"role":"user","content":"`+strings.Repeat("x", events.MaxEventBytes)+`"}]}`, &problems)
	if len(problems) != 1 || !strings.Contains(problems[0].Message, "message 1") {
		t.Errorf("%+v", problems)
	}
	half := strings.Repeat("x", 300<<10)
	do(t, c, `{"id":"answers","messages":[`+userTurn+`,{"role":"assistant","content":"`+half+`"},{"role":"assistant","content":[{"type":"text","text":"`+half+`"},{"type":"text","text":"`+half+`"}]}]}`)
	if got := strings.Join(retold(history(t, c, "answers")), ""); strings.Count(got, half) != 3 {
		t.Errorf("the answers have %d bytes", len(got))
	}
	if got := history(t, c, "huge"); len(got) != 0 {
		t.Errorf("a conversation that does not fit left %d events", len(got))
	}
}

// What a turn takes grows with its length, and not with its square.
func TestImport_LongTurnIsLinear(t *testing.T) {
	t.Parallel()
	c := start(t)
	size := func(calls int) int {
		id := fmt.Sprint("turn", calls)
		var steps []string
		for i := range calls {
			steps = append(steps, call(fmt.Sprint("c", i), "look", "{}"), fmt.Sprintf(`{"role":"tool","tool_call_id":"c%d","content":"r%d"}`, i, i))
		}
		do(t, c, `{"id":"`+id+`","messages":[`+userTurn+`,`+strings.Join(steps, ",")+`]}`)
		bytes := 0
		for _, e := range history(t, c, id) {
			bytes += len(e.Raw())
		}
		return bytes
	}
	if short, long := size(40), size(320); long > 9*short {
		t.Errorf("40 calls take %d bytes, and 320 calls %d", short, long)
	}
}

// Items have the times of their messages.
func TestImport_KeepsTimes(t *testing.T) {
	t.Parallel()
	c := start(t)
	do(t, c, strings.ReplaceAll(`{"id":"old","title":"Bicycles","metadata":{"shop":7},"created_at":"2024-01-01T00:00:00+01:00","messages":[
		{"role":"system","content":"be kind"},
		{"role":"user","content":"look","created_at":1700000000},
		`+strings.Replace(call("c1", "f", "{}"), `"role"`, `"createdAt":1700000001500,"role"`, 1)+`,
		{"role":"tool","tool_call_id":"c1","content":"r","timestamp":"2023-11-14T22:13:22.25Z"},
		{"role":"assistant","content":"done","created_at":1700000003000000}]}`, "\n", ""))
	want := []string{"2023-12-31T23:00:00Z", "2023-11-14T22:13:20Z", "2023-11-14T22:13:21.5Z", "2023-11-14T22:13:21.5Z", "2023-11-14T22:13:22.25Z"}
	var got []string
	for _, e := range history(t, c, "old") {
		if d, ok := e.Data.(events.ItemCreated); ok {
			at, err := time.Parse(time.RFC3339, d.CreatedAt)
			if err != nil {
				t.Fatalf("%s: %v", d.Type, err)
			}
			got = append(got, at.Format(time.RFC3339Nano))
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("the items are of %v, not %v", got, want)
	}
	thread, err := client.Read(t.Context(), c.WithMinSeq(int64(lastSeq(t, c))), events.GetThread{ThreadID: "key:import:old"})
	if err != nil || thread.Title != "Bicycles" || string(thread.Metadata) != `{"shop":7}` {
		t.Errorf("%+v, %v", thread, err)
	}
}

// A conversation that cannot be imported whole leaves nothing, wherever its fault is. Its id stays
// free for the corrected one.
func TestImport_RefusedConversationLeavesNothing(t *testing.T) {
	t.Parallel()
	c := start(t)
	long := strings.Repeat(userTurn+",", 300) // of several commits
	for name, last := range map[string]string{
		"parts":                    `{"role":"assistant","parts":[{"type":"text","text":"hello"}]}`,
		"nothing":                  `{"role":"assistant"}`,
		"blocks of another format": `{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"found"}]}`,
		"a title that is too long": `{"role":"user","content":"x"}],"title":"` + strings.Repeat("x", 2000) + `","x":[`,
		"deep metadata":            `{"role":"user","content":"x"}],"metadata":` + strings.Repeat(`{"a":`, 300) + "1" + strings.Repeat("}", 300) + `,"x":[`,
		"a deep part":              `{"role":"user","content":[{"type":"text","text":"x","a":` + strings.Repeat("[", 300) + strings.Repeat("]", 300) + `}]}`,
		"a large text":             `{"role":"assistant","content":"` + strings.Repeat("x", events.MaxEventBytes) + `"}`,
	} {
		id := strings.ReplaceAll(name, " ", "-")
		var problems []cli.ImportProblem
		sum := do(t, c, `{"id":"`+id+`","messages":[`+long+last+`]}`, &problems)
		if sum.Events != 0 || sum.Failed != 1 || len(problems) != 1 || problems[0].Line != 1 {
			t.Errorf("%s: %+v, %+v", name, sum, problems)
		}
		if sum := do(t, c, `{"id":"`+id+`","messages":[`+userTurn+`]}`); sum.Turns != 1 {
			t.Errorf("%s, corrected: %+v", name, sum)
		}
	}
	// With a field left out, the rest is imported.
	sum, err := cli.ImportConversations(t.Context(), c, []cli.ImportSource{file(`{"id":"ignored","messages":[{"role":"user","content":"q","thinking":"t"}]}`)},
		cli.ImportOptions{Ignore: []string{"thinking"}, Problem: func(p cli.ImportProblem) { t.Error(p) }})
	if err != nil || sum.Turns != 1 {
		t.Errorf("%+v, %v", sum, err)
	}
}

// The log holds an imported output once. The timeline and the read models show it wherever they
// have always shown it: in the result's item, the part, the answer and the step's outcome.
func TestImport_StoresOutputOnce(t *testing.T) {
	t.Parallel()
	c, url := startAt(t)
	output := strings.Repeat("output ", 20<<10)
	do(t, c, `{"id":"large","messages":[`+userTurn+`,`+call("c1", "f", `{}`)+`,{"role":"tool","tool_call_id":"c1","content":"`+output+`"},{"role":"assistant","content":"done"}]}`)

	nc := natstest.Dial(t, url)
	js, err := nc.JetStream()
	if err != nil {
		t.Fatal(err)
	}
	info, err := js.StreamInfo("SKEIN_LOG")
	if err != nil {
		t.Fatal(err)
	}
	stored := 0
	for seq := uint64(1); seq <= info.State.LastSeq; seq++ {
		m, err := js.GetMsg("SKEIN_LOG", seq)
		if err != nil {
			t.Fatal(err)
		}
		stored += bytes.Count(m.Data, []byte(output))
	}
	if stored != 1 {
		t.Errorf("the log holds the output %d times", stored)
	}

	shown := map[events.Type]int{}
	for _, e := range history(t, c, "large") {
		if n := bytes.Count(e.Raw(), []byte(output)); n > 0 {
			shown[e.Type] += n
		}
	}
	want := map[events.Type]int{events.ItemCreatedType: 1, events.PartUpdatedType: 1, events.MessageEditedType: 1, events.StepStatusChangedType: 1}
	if !maps.Equal(shown, want) {
		t.Errorf("the timeline shows it in %v, not %v", shown, want)
	}

	c = c.WithMinSeq(int64(info.State.LastSeq))
	thread := events.DeriveThreadID("acme", "import:large")
	items, err := client.Read(t.Context(), c, events.ListItems{ThreadID: thread})
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]int{}
	for _, i := range items.Items {
		seen[string(i.Type)] += bytes.Count(i.Content, []byte(output))
		responses, err := openresponses.Form{Split: true, Exact: true}.Write(&i)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range responses {
			raw, err := json.Marshal(r)
			if err != nil {
				t.Fatal(err)
			}
			seen["response of "+string(i.Type)] += bytes.Count(raw, []byte(output))
		}
	}
	runs, err := client.Read(t.Context(), c, events.ListExecutions{ThreadID: thread})
	if err != nil || len(runs.Executions) != 1 {
		t.Fatalf("%+v, %v", runs, err)
	}
	steps, err := client.Read(t.Context(), c, events.ListSteps{ThreadID: thread, ExecutionID: runs.Executions[0].ID})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range steps.Steps {
		seen["step"] += bytes.Count(s.ToolExecutionResults, []byte(output))
		parts, err := client.Read(t.Context(), c, events.ListParts{ThreadID: thread, StepID: s.ID})
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range parts.Parts {
			seen["part"] += bytes.Count(p.Part, []byte(output))
		}
	}
	if seen["action_result"] != 1 || seen["message"] != 1 || seen["step"] != 1 || seen["part"] != 1 || seen["response of action_result"] == 0 {
		t.Errorf("the read models show it in %v", seen)
	}
	if again := do(t, c, `{"id":"large","messages":[`+userTurn+`,`+call("c1", "f", `{}`)+`,{"role":"tool","tool_call_id":"c1","content":"`+output+`"},{"role":"assistant","content":"done"}]}`); again.Events != 0 {
		t.Errorf("again: %+v", again)
	}
}

func TestProblemsDoNotKeepOthersBack(t *testing.T) {
	t.Parallel()
	c := start(t)
	var problems []cli.ImportProblem
	sum := do(t, c, `{"id":"1","messages":[`+userTurn+`]}
nonsense
{"id":"1","messages":[]}
{"id":"2","messages":[`+userTurn+`]}`, &problems)
	if sum.Conversations != 2 || sum.Failed != 2 || len(problems) != 2 || problems[0].Line != 2 || problems[1].Line != 3 {
		t.Errorf("%+v %+v", sum, problems)
	}
	// A thread that was deleted does not come back.
	if _, err := c.Send(t.Context(), "key:import:2", events.DeleteThread{}); err != nil {
		t.Fatal(err)
	}
	problems = nil
	sum = do(t, c, `{"id":"2","messages":[`+userTurn+`]}`, &problems)
	if sum.Failed != 1 || len(problems) != 1 || !strings.Contains(problems[0].Message, "deleted") {
		t.Errorf("%+v %+v", sum, problems)
	}
}

// The items of an imported thread tell the conversation again, whatever it was.
func TestItemsReproduceTheConversation(t *testing.T) {
	t.Parallel()
	c := start(t)
	random := rand.New(rand.NewPCG(1, 2))
	var lines []string
	var all []*openaichat.Conversation
	for i := range 40 {
		line := randomConversation(random, i)
		parsed, err := openaichat.Parse([]byte(line))
		if err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		lines, all = append(lines, line), append(all, parsed)
	}
	do(t, c, strings.Join(lines, "\n"))
	for i, conversation := range all {
		want := told(conversation)
		got := retold(history(t, c, conversation.ID))
		if !slices.Equal(got, want) {
			t.Errorf("conversation %d:\n%s\nbecame\n%s", i, strings.Join(want, "\n"), strings.Join(got, "\n"))
		}
	}
	if sum := do(t, c, strings.Join(lines, "\n")); sum.Events != 0 {
		t.Errorf("again: %+v", sum)
	}
}

func randomConversation(r *rand.Rand, id int) string {
	var messages []string
	calls := 0
	say := func(role string) string {
		return fmt.Sprintf(`{"role":"%s","content":"%s %d \u00e9\n"}`, role, role, r.IntN(100))
	}
	for range 1 + r.IntN(12) {
		switch r.IntN(6) {
		case 0:
			messages = append(messages, say("system"))
		case 1, 2:
			messages = append(messages, say("user"))
		case 3:
			messages = append(messages, say("assistant"))
		default:
			var asked, answers []string
			for range 1 + r.IntN(3) {
				calls++
				asked = append(asked, fmt.Sprintf(`{"id":"c%d","type":"function","function":{"name":"f%d","arguments":"{\"n\":%d}"}}`, calls, r.IntN(3), calls))
				if r.IntN(5) > 0 {
					answers = append(answers, fmt.Sprintf(`{"role":"tool","tool_call_id":"c%d","content":"result %d"}`, calls, calls))
				}
			}
			r.Shuffle(len(answers), func(i, j int) { answers[i], answers[j] = answers[j], answers[i] })
			messages = append(messages, `{"role":"assistant","content":null,"tool_calls":[`+strings.Join(asked, ",")+`]}`)
			messages = append(messages, answers...)
		}
	}
	return fmt.Sprintf(`{"id":"random-%d","messages":[%s]}`, id, strings.Join(messages, ","))
}

// told returns a conversation as lines: who said what.
func told(c *openaichat.Conversation) []string {
	var out []string
	for _, m := range c.Messages {
		if m.Result {
			out = append(out, "result "+m.CallID+" "+canonical(m.Output))
			continue
		}
		for _, p := range m.Content {
			out = append(out, string(m.Role)+" "+canonical(p))
		}
		for _, call := range m.Calls {
			out = append(out, "call "+call.ID+" "+call.Name+" "+string(call.Arguments))
		}
	}
	slices.Sort(out) // calls come before all results of a step, and reactions hold several messages
	return out
}

// canonical returns JSON with normalised escapes.
func canonical(v events.JSON) string {
	v = slices.Clone(v)
	_ = (*jsontext.Value)(&v).Canonicalize()
	return string(v)
}

// retold returns the same for a thread's items, in their final state.
func retold(list []events.Event) []string {
	contents := map[string]events.JSON{}
	items := map[string]events.ItemCreated{}
	for _, e := range list {
		switch d := e.Data.(type) {
		case events.ItemCreated:
			items[d.ID], contents[d.ID] = d, d.Content
		case events.MessageEdited:
			item := events.Item{Content: contents[e.Subject]}
			item.Edit(d)
			contents[e.Subject] = item.Content
		}
	}
	var out []string
	for id, item := range items {
		switch item.Type {
		case events.Message:
			var parts []events.JSON
			_ = json.Unmarshal(contents[id], &parts)
			for _, p := range parts {
				if !strings.Contains(string(p), `"type":"tool-`) { // a call has items of its own
					out = append(out, string(item.Role)+" "+canonical(p))
				}
			}
		case events.ActionExecute:
			var d struct {
				CallID    string      `json:"callId"`
				Name      string      `json:"name"`
				Arguments events.JSON `json:"arguments"`
			}
			_ = json.Unmarshal(contents[id], &d)
			out = append(out, "call "+d.CallID+" "+d.Name+" "+string(d.Arguments))
		case events.ActionResult:
			var d struct {
				CallID string      `json:"callId"`
				Output events.JSON `json:"output"`
			}
			_ = json.Unmarshal(contents[id], &d)
			out = append(out, "result "+d.CallID+" "+canonical(d.Output))
		}
	}
	slices.Sort(out)
	return out
}

// A hundred conversations, all of whose messages are there afterwards.
// SKEIN_CONVERSATIONS names a file of more.
func TestImport_HundredConversations(t *testing.T) {
	t.Parallel()
	own, _ := chattest.Conversations(1, 100)
	importsAll(t, own)
	if name := os.Getenv("SKEIN_CONVERSATIONS"); name != "" {
		more, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		importsAll(t, more)
	}
}

// importsAll imports conversations and compares the log with their messages, as
// they stand in the file.
func importsAll(t *testing.T, raw []byte) {
	t.Helper()
	want := map[string]int{}
	for line := range bytes.Lines(raw) {
		var c struct {
			Messages []struct {
				Role      string
				ToolCalls []struct{ ID string } `json:"tool_calls"`
			}
		}
		if err := json.Unmarshal(line, &c, json.MatchCaseInsensitiveNames(true)); err != nil {
			t.Fatal(err)
		}
		want["thread.created"]++
		for _, m := range c.Messages {
			switch m.Role {
			case "user": // each begins a turn, which ends with an assistant's message
				for _, what := range []string{"messageuser", "messageassistant", "execution.created", "thread.finished"} {
					want[what]++
				}
			case "assistant":
				want["step.created"]++
				want["action_execute"] += len(m.ToolCalls)
			case "tool":
				want["action_result"]++
			case "system":
				want["messagesystem"]++
			}
		}
	}
	if want["messageuser"] < 300 || want["action_execute"] < 300 {
		t.Fatalf("too little to show anything: %v", want)
	}
	c := start(t)
	sum := do(t, c, string(raw))
	if sum.Conversations != want["thread.created"] || sum.Turns != want["messageuser"] || sum.ToolCalls != want["action_execute"] {
		t.Errorf("%+v, not %v", sum, want)
	}
	line, err := c.Timeline(t.Context(), client.SubscribeOptions{History: true})
	if err != nil {
		t.Fatal(err)
	}
	defer line.Close()
	count := map[string]int{}
	check := events.NewTimelineChecker()
	for e, err := range line.All(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if err := check.Check(&e.Event); err != nil {
			t.Fatal(err)
		}
		count[string(e.Type)]++
		if d, ok := e.Data.(events.ItemCreated); ok {
			count[string(d.Type)+string(d.Role)]++
		}
	}
	for what, n := range want {
		if count[what] != n {
			t.Errorf("%s: %d, not %d", what, count[what], n)
		}
	}
	if again := do(t, c, string(raw)); again.Events != 0 || again.Unchanged != want["thread.created"] {
		t.Errorf("again: %+v", again)
	}
}

// call is an assistant's message with one call.
func call(id, name, arguments string) string {
	return `{"role":"assistant","content":null,"tool_calls":[{"id":"` + id + `","type":"function","function":{"name":"` + name + `","arguments":` +
		`"` + strings.ReplaceAll(arguments, `"`, `\"`) + `"}}]}`
}
