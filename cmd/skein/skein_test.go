package main_test

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

type reply struct {
	ThreadID string
	Version  int
	Seq      int
	Result   struct{ ItemID, ContextID string }
}

type thread struct {
	ID, Key, Status, Title string
	Version, Items         int
}

type event struct{ Type, ThreadID, SpecVersion string }

// A day with the program: serve, create, add, list, look at the past, follow, verify,
// stop, and find everything again (EK-2).
func TestProgram_WholeSession(t *testing.T) {
	t.Parallel()
	store := t.TempDir()
	s := start(t, store)
	var made reply
	decode(t, s.ok("thread", "create", "--key", "orders/7", "--title", "An order", "--metadata", `{"n":1}`, "--json"), &made)
	if made.Version != 3 || made.ThreadID == "" {
		t.Fatalf("%+v", made)
	}
	var added reply
	decode(t, s.ok("item", "add", "key:orders/7", "hello", "--json"), &added)
	if o := run(t, s.env, "from a pipe\n", "item", "add", made.ThreadID, "-", "--role", "assistant"); o.code != 0 || !strings.Contains(o.out, made.ThreadID) {
		t.Errorf("%+v", o)
	}
	s.ok("thread", "status", made.ThreadID, "streaming", "--reason", "work")

	var now, then thread
	decode(t, s.ok("thread", "get", "key:orders/7", "--json"), &now)
	decode(t, s.ok("thread", "get", made.ThreadID, "--at", fmt.Sprint(added.Version), "--json"), &then)
	if now.Items != 2 || now.Status != "streaming" || now.Version != 6 || then.Items != 1 || then.Status != "open" {
		t.Errorf("now %+v, then %+v", now, then)
	}
	if list := decodeLines[thread](t, s.ok("thread", "list", "--json")); len(list) != 1 || list[0].Key != "orders/7" {
		t.Errorf("%+v", list)
	}
	if text := s.ok("thread", "list"); !strings.Contains(text, "orders/7") || !strings.Contains(text, "An order") {
		t.Error(text)
	}
	type item struct {
		ID    string
		Index int
		Role  string
	}
	items := decodeLines[item](t, s.ok("item", "list", made.ThreadID, "--json"))
	if len(items) != 2 || items[0].ID != added.Result.ItemID || items[1].Role != "assistant" {
		t.Errorf("%+v", items)
	}
	if text := s.ok("item", "get", items[1].ID); !strings.Contains(text, "from a pipe") {
		t.Error(text)
	}
	if text := s.ok("item", "list", made.ThreadID); !strings.Contains(text, "hello") {
		t.Error(text)
	}
	all := decodeLines[event](t, s.ok("tail", "--follow=false", "--json"))
	if len(all) != 6 || all[0].Type != "thread.created" || all[5].Type != "thread.status.changed" || all[0].SpecVersion != "1.0" {
		t.Errorf("%+v", all)
	}
	if text := s.ok("tail", "key:orders/7", "--follow=false", "--type", "item.*"); strings.Count(text, "\n") != 2 || strings.Contains(text, "\x1b") {
		t.Errorf("%q", text)
	}
	if text := s.ok("replay", "--verify"); !strings.Contains(text, " 0 differ") {
		t.Error(text)
	}
	s.ok("replay", "threads")
	s.stop()

	s = start(t, store)
	decode(t, s.ok("thread", "get", "key:orders/7", "--json"), &then)
	if then != now {
		t.Errorf("after a restart %+v, not %+v", then, now)
	}
	s.ok("thread", "status", made.ThreadID, "open")
	s.ok("thread", "delete", made.ThreadID)
	if o := run(t, s.env, "", "thread", "get", made.ThreadID); o.code != 1 || !strings.HasPrefix(o.err, "skein: not_found: ") {
		t.Errorf("%+v", o)
	}
	s.stop()
}

// Wrong usage exits 2 and a failure 1, each with one line on standard error (EK-181 for
// the tenant).
func TestExitCodes_UsageAndFailures(t *testing.T) {
	t.Parallel()
	s := start(t, t.TempDir())
	noTenant := []string{"SKEIN_SERVER=" + s.NATS}
	for _, c := range []struct {
		env  []string
		args string
		code int
		want string
	}{
		{s.env, "nonsense", 2, "skein: usage: "},
		{s.env, "thread", 2, "skein: usage: "},
		{s.env, "thread nonsense", 2, "skein: usage: "},
		{s.env, "thread get", 2, "skein: usage: "},
		{s.env, "thread get a b", 2, "skein: usage: "},
		{s.env, "thread list --nonsense", 2, "skein: usage: "},
		{s.env, "thread list --limit x", 2, "skein: usage: "},
		{s.env, "thread list --status asleep", 2, "skein: usage: "},
		{s.env, "thread create --metadata {", 2, "skein: usage: "},
		{s.env, "thread get x --at yesterday", 2, "skein: usage: "},
		{s.env, "tail --from yesterday", 2, "skein: usage: "},
		{s.env, "tail --type item.>", 2, "skein: usage: "},
		{s.env, "tail nonsense", 2, `"nonsense" is not a thread's id; a thread's key is written key:KEY`},
		{s.env, "replay nonsense", 2, "skein: usage: "},
		{s.env, "import", 2, "skein: usage: "},
		{s.env, "serve --http-listen 0.0.0.0:0", 2, "loopback"},
		{s.env, "serve --nats-listen 0.0.0.0:0", 2, "loopback"},
		{s.env, "serve --replicas 3", 2, "one node"},
		{s.env, "serve --log-level loud", 2, "skein: usage: "},
		{s.env, "serve --config nowhere.json", 2, "skein: usage: "},
		{noTenant, "thread list", 2, "tenant"},
		{noTenant, "import x", 2, "tenant"},
		{append(noTenant, "SKEIN_TENANT=a.b"), "tail", 2, "tenant"},
		{append(s.env, "SKEIN_LIMIT=x"), "thread list", 2, "SKEIN_LIMIT"},
		{s.env, "thread get T-01900000-0000-7000-8000-000000000000", 1, "skein: not_found: "},
		{s.env, "thread status T-01900000-0000-7000-8000-000000000000 open", 1, "skein: not_found: "},
		{s.env, "thread get nonsense", 1, "skein: invalid_request: "},
		{s.env, "import nowhere.jsonl", 1, "nowhere.jsonl"},
		{append(s.env, "SKEIN_SERVER=nats://127.0.0.1:1"), "thread list", 1, "skein: unavailable: "},
	} {
		o := run(t, c.env, "", strings.Fields(c.args)...)
		last := o.err[strings.LastIndex(strings.TrimRight(o.err, "\n"), "\n")+1:]
		if o.code != c.code || !strings.Contains(o.err, c.want) || !strings.HasPrefix(last, "skein: ") ||
			(strings.Count(o.err, "\n") != 1 && !strings.HasPrefix(c.args, "import")) {
			t.Errorf("skein %s: exit %d, not %d: %q", c.args, o.code, c.code, o.err)
		}
	}
	// The store is in use: a second server must not open it.
	o := run(t, nil, "", "serve", "--store", filepath.Join(t.TempDir(), "x", "y"), "--nats-listen", strings.TrimPrefix(s.NATS, "nats://"), "--http-listen", "127.0.0.1:0")
	if o.code != 1 || strings.Count(o.err, "\n") != 1 || o.out != "" {
		t.Errorf("a port in use: %+v", o)
	}
	s.stop()
}

func TestImport_SecondRunAddsNothing(t *testing.T) {
	t.Parallel()
	s := start(t, t.TempDir())
	file := filepath.Join(t.TempDir(), "talk.jsonl")
	text := `{"id":"1","messages":[{"role":"user","content":"hi"},{"role":"assistant","content":"hello"}]}
not json
{"id":"2","messages":[{"role":"user","content":"is anybody there?"}]}
`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	type sum struct{ Conversations, Unchanged, Turns, Items, ToolCalls, Events, Failed int }
	var first, second sum
	o := run(t, s.env, "", "import", file, "--json")
	decode(t, o.out, &first)
	if o.code != 1 || !strings.Contains(o.err, file+":2: ") || !strings.Contains(o.err, "\nskein: ") || first.Conversations != 2 || first.Turns != 2 || first.Failed != 1 {
		t.Errorf("%+v", o)
	}
	decode(t, run(t, s.env, text, "import", "-", "--json").out, &second)
	if second.Events != 0 || second.Unchanged != 2 || second.Conversations != 0 {
		t.Errorf("%+v", second)
	}
	if list := decodeLines[thread](t, s.ok("thread", "list", "--key-prefix", "import:", "--json")); len(list) != 2 {
		t.Errorf("%+v", list)
	}
	if text := s.ok("import", filepath.Join("/dev", "null")); !strings.Contains(text, "CONVERSATIONS") {
		t.Error(text)
	}
	s.ok("replay", "timeline")
	s.ok("replay", "--verify")
	s.ok("replay", "timeline", "--verify")
	s.ok("audit", "verify")
	s.ok("audit", "verify", "--all-tenants")
	s.stop()
}

// tail follows until it is interrupted, which is no failure.
func TestTail_FollowsUntilInterrupted(t *testing.T) {
	t.Parallel()
	s := start(t, t.TempDir())
	cmd := exec.Command(binary, "tail", "--json", "--from", "start", "--type", "thread.created")
	cmd.Env = environment(s.env...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for i := range 3 {
		s.ok("thread", "create", "--title", fmt.Sprint(i))
		if !lines.Scan() || !strings.Contains(lines.Text(), `"title":"`+fmt.Sprint(i)+`"`) {
			t.Fatalf("%s, %v", lines.Text(), lines.Err())
		}
	}
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	s.stop()
}

func TestHealthAndMetrics(t *testing.T) {
	t.Parallel()
	s := start(t, t.TempDir())
	s.ok("thread", "create")
	s.ok("thread", "list")
	get := func(path string) (int, string) {
		r, err := http.Get(s.HTTP + path)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Body.Close()
		body, _ := io.ReadAll(r.Body)
		return r.StatusCode, string(body)
	}
	for _, path := range []string{"/healthz", "/readyz"} {
		if code, body := get(path); code != http.StatusOK {
			t.Errorf("%s: %d %s", path, code, body)
		}
	}
	_, metrics := get("/metrics")
	for _, want := range []string{
		`skein_commands_total{command="thread.create",result="ok"} 1`, `skein_command_seconds_count{command="thread.create"} 1`,
		"skein_commit_commands_count 1", "skein_append_commits_count", `skein_append_seconds_count`, "skein_cache_threads 1", "skein_cache_bytes",
		"skein_timeline_seq 1", "skein_timeline_lag_seconds", `skein_projection_lag_commits{projection=`, `skein_projection_lag_seconds{projection=`,
		`skein_queries_total{query="thread.list",result="ok"} 1`, "go_goroutines",
	} {
		if !strings.Contains(metrics, want) {
			t.Errorf("the metrics have no %s", want)
		}
	}
	s.stop()
}

// A killed server loses nothing, and starts again (EK-2).
func TestServe_KeepsDataAfterKill(t *testing.T) {
	t.Parallel()
	store := t.TempDir()
	s := start(t, store)
	s.ok("thread", "create", "--key", "kept")
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
	s = start(t, store)
	if text := s.ok("thread", "get", "key:kept", "--timeout", "20s"); !strings.Contains(text, "kept") {
		t.Error(text)
	}
	s.stop()
}

func TestDemo(t *testing.T) {
	t.Parallel()
	begin := time.Now()
	o := run(t, nil, "", "demo")
	// A few seconds, more on a loaded machine, but not more processor time.
	if o.code != 0 || o.err != "" || strings.Contains(o.out, "\x1b") || o.worked > 10*time.Second || time.Since(begin) > 5*time.Minute {
		t.Fatalf("exit %d after %v, %v of processors: %s", o.code, time.Since(begin), o.worked, o.err)
	}
	for _, want := range []string{"thread.created", "CONVERSATIONS", "import:lisbon-weekend", "Time travel: ", "To try next"} {
		if !strings.Contains(o.out, want) {
			t.Errorf("no %q in:\n%s", want, o.out)
		}
	}
}

func TestConfigFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "skein.json")
	text := fmt.Sprintf(`{"store":%q,"nats-listen":"127.0.0.1:0","http-listen":"127.0.0.1:0","json":true}`, filepath.Join(dir, "store"))
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(binary, "serve", "--config", file)
	cmd.Env = environment()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || !strings.HasPrefix(line, `{"ready":true,"nats":"nats://127.0.0.1:`) {
		t.Errorf("%q, %v", line, err)
	}
	_ = cmd.Process.Signal(syscall.SIGTERM)
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	if o := run(t, nil, "", "serve", "--config", file, "--log-level", "x"); o.code != 2 {
		t.Errorf("%+v", o)
	}
}

// Invalid limits of tenants are refused, in flags, in a list of the file and in a
// variable.
func TestServe_RefusesInvalidTenantLimits(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "skein.json")
	for _, c := range []struct{ text, variable, want string }{
		{`{"egress-allow":["10.0.0.0/8","10.0.0.0/99"]}`, "", `"10.0.0.0/99"`},
		{`{"mcp-variable":["SHOP_TOKEN"]}`, "", "TENANT:NAME=TARGET"},
		{`{"model-param":["model"]}`, "", "--model-param"},
		{`{"store":["a"]}`, "", "takes one value"},
		{`{"egress-allow":[1]}`, "", "a list must contain strings"},
		{`{}`, "SKEIN_EGRESS_ALLOW=10.0.0.0/8,http://x", `"http://x"`},
	} {
		if err := os.WriteFile(file, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		if o := run(t, append(environment(), c.variable), "", "serve", "--config", file, "--http-listen", "127.0.0.1:0", "--nats-listen", "127.0.0.1:0"); o.code != 2 || !strings.Contains(o.err, c.want) {
			t.Errorf("%s %s: %+v", c.text, c.variable, o)
		}
	}
}

func TestVersionAndCompletion(t *testing.T) {
	t.Parallel()
	var v struct{ Version, Commit, Go, NATSServer string }
	decode(t, run(t, nil, "", "version", "--json").out, &v)
	if v.Version == "" || v.Commit == "" || !strings.HasPrefix(v.Go, "go") || v.NATSServer == "" {
		t.Errorf("%+v", v)
	}
	for _, args := range [][]string{{"version"}, {"completion", "bash"}, {"--help"}, {"thread", "--help"}} {
		if o := run(t, nil, "", args...); o.code != 0 || o.out == "" || o.err != "" {
			t.Errorf("skein %v: exit %d: %s", args, o.code, o.err)
		}
	}
}
