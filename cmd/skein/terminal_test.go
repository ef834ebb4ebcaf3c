package main

import (
	"bytes"
	"context"
	"os/exec"
	"strings"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/skein-threads/skein"
	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/cmd/skein/cli"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/natstest"
	"github.com/skein-threads/skein/skeintest"
)

// typed is what came of a command that was typed at a terminal.
type typed struct {
	code     int
	out, err string
}

// atTerminal runs a command in this process, as at a terminal on which somebody types an answer.
func atTerminal(t *testing.T, url, answer string, args ...string) typed {
	t.Helper()
	return execute(t, url, answer, true, args...)
}

func execute(t *testing.T, url, input string, terminal bool, args ...string) typed {
	t.Helper()
	var out, problems bytes.Buffer
	a := &cli.App{In: strings.NewReader(input), Out: &out, Err: &problems, IsTerminal: func(any) bool { return terminal }}
	a.Env = func(name string) (string, bool) {
		value, ok := map[string]string{"SKEIN_SERVER": url, "SKEIN_TENANT": "acme"}[name]
		return value, ok
	}
	code := a.Execute(t.Context(), args, verbs(a)...)
	return typed{code, out.String(), problems.String()}
}

// startListening starts a Skein with a NATS server that commands reach.
func startListening(t *testing.T) *skeintest.Server {
	t.Helper()
	return skeintest.Start(t, func(o *skein.Options) { o.NATSListen = "127.0.0.1:0" })
}

// A purge asks on a terminal, and nowhere else; each deletion says what it did.
func TestDelete_PurgeAsksOnATerminal(t *testing.T) {
	t.Parallel()
	s := startListening(t)
	c := s.Client("acme")
	create := func() string {
		t.Helper()
		reply, err := c.Send(t.Context(), "", events.CreateThread{Title: "Order 42"})
		s.Must(err)
		return reply.ThreadID
	}
	url := s.Addresses().NATS
	kept := create()
	for _, answer := range []string{"", "\n", "n\n", "maybe\n"} {
		got := atTerminal(t, url, answer, "thread", "delete", kept, "--purge")
		if got.code != 1 || !strings.Contains(got.err, kept) || !strings.Contains(got.err, "Order 42") || !strings.Contains(got.err, "skein: not_confirmed: nothing was deleted") {
			t.Errorf("after %q: %+v", answer, got)
		}
	}
	if got := atTerminal(t, url, "", "thread", "get", kept); got.code != 0 {
		t.Errorf("the thread that was kept: %+v", got)
	}
	for name, c := range map[string]struct {
		terminal bool
		answer   string
		args     []string
		asks     bool
		want     string
	}{
		"yes":         {true, "Yes\n", []string{"--purge"}, true, "purged; its events"},
		"--yes":       {true, "", []string{"--purge", "--yes"}, false, "purged; its events"},
		"no terminal": {false, "", []string{"--purge"}, false, "purged; its events"},
		"no purge":    {true, "", nil, false, "deleted; its events stay in the log, and cannot"},
	} {
		id := create()
		got := execute(t, url, c.answer, c.terminal, append([]string{"thread", "delete", id}, c.args...)...)
		if got.code != 0 || !strings.HasPrefix(got.out, id+" version ") || !strings.Contains(got.out, c.want) || strings.Contains(got.err, "[y/N]") != c.asks {
			t.Errorf("%s: %+v", name, got)
		}
		if again := execute(t, url, "", false, "thread", "get", id); again.code != 1 {
			t.Errorf("%s: the thread is still there: %+v", name, again)
		}
	}
}

// What reads all that is stored shows how far it is, on standard error.
func TestProgress_OfReplayAndSize(t *testing.T) {
	t.Parallel()
	s := startListening(t)
	reply, err := s.Client("acme").Send(t.Context(), "", events.CreateThread{})
	s.Must(err)
	_, err = client.Read(t.Context(), s.Client("acme").WithMinSeq(reply.Seq), events.ListThreads{})
	s.Must(err)
	url := s.Addresses().NATS
	for call, want := range map[string]string{
		"replay --verify":          " compared",
		"replay":                   " compared",
		"replay --rewrite":         " compared",
		"replay timeline --verify": "",
		"size":                     "SKEIN_LOG: 1 message",
		"size --tenant acme":       "SKEIN_LOG: 1 message",
	} {
		got := atTerminal(t, url, "", strings.Fields(call)...)
		if got.code != 0 || !strings.Contains(got.err, want) || strings.Contains(got.out, "\r") {
			t.Errorf("skein %s: %+v", call, got)
		}
		if got := execute(t, url, "", false, strings.Fields(call)...); got.code != 0 || strings.Contains(got.err, "\r") {
			t.Errorf("skein %s without a terminal: %+v", call, got)
		}
	}
}

// Refusals of a value name the flag or the argument that has it, not its place in the request.
func TestErrors_NameFlagsAndArguments(t *testing.T) {
	t.Parallel()
	s := startListening(t)
	url, long := s.Addresses().NATS, strings.Repeat("x", 2000)
	_, err := s.Client("acme").Send(t.Context(), "", events.CreateThread{Key: "order:42"})
	s.Must(err)
	for _, c := range []struct{ call, want string }{
		{"files grep key:order:42 x --limit 99999999", "--limit"},
		{"thread list --key-prefix " + long, "--key-prefix"},
		{"thread list --updated-after yesterday", "--updated-after"},
		{"thread list --cursor x", "--cursor"},
		{"thread get nonsense", "THREAD"},
		{"thread create --title " + long, "--title"},
		{"thread create --user " + long, "--user"},
		{"thread create --key " + long, "--key"},
		{"thread update order --title x", "THREAD"},
		{"thread update key:order:42 --mode " + long, "--mode"},
		{"thread status nonsense open", "THREAD"},
		{"item get " + long, "ITEM"},
		{"item list nonsense", "THREAD"},
		{"message list nonsense", "THREAD"},
		{"thread fork key:order:42 --message 0 --key " + long, "--key"},
	} {
		got := execute(t, url, "", false, strings.Fields(c.call)...)
		if message, is := strings.CutPrefix(got.err, "skein: invalid_request: "); got.code != 1 || !is || !strings.HasPrefix(message, c.want) || strings.HasPrefix(message, "/") {
			t.Errorf("skein %.60s: %d %.300s, want %s", c.call, got.code, got.err, c.want)
		}
	}
	// What is sent as JSON has no flags.
	if got := execute(t, url, "", false, "query", "thread.list", `{"limit":5000}`); !strings.Contains(got.err, "/limit") {
		t.Errorf("%+v", got)
	}
}

// --timeout bounds the whole of every command that has it, whatever does not answer.
func TestTimeout_BoundsEveryCommand(t *testing.T) {
	t.Parallel()
	silent, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, NoSigs: true, NoLog: true})
	if err != nil {
		t.Fatal(err)
	}
	silent.Start()
	t.Cleanup(silent.Shutdown)
	if !silent.ReadyForConnections(natstest.Patience) {
		t.Fatal("the server does not start")
	}
	nc := natstest.Dial(t, silent.ClientURL())
	if _, err := nc.Subscribe("skein.>", func(*nats.Msg) {}); err != nil { // takes requests, and answers none
		t.Fatal(err)
	}
	if _, err := nc.Subscribe("$JS.>", func(*nats.Msg) {}); err != nil {
		t.Fatal(err)
	}
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
	checked := 0
	for _, c := range leaves(root()) {
		f := c.Flags().Lookup("timeout")
		if f == nil || c.Flags().Lookup("server") == nil || c.Name() == "mcp" { // it serves
			continue
		}
		checked++
		example, _, _ := strings.Cut(c.Example, "\n")
		out, err := exec.Command("sh", "-c", `skein() { for a in "$@"; do printf '%s\n' "$a"; done; }; `+example[strings.LastIndex(example, "| ")+1:]).Output()
		if err != nil {
			t.Fatalf("%s: %v", example, err)
		}
		args := append(strings.Split(strings.TrimSuffix(string(out), "\n"), "\n"), "--timeout", "100ms", "--server", silent.ClientURL())
		t.Run(c.CommandPath(), func(t *testing.T) {
			t.Parallel()
			if got := execute(t, silent.ClientURL(), "{}", false, args...); got.code == 0 {
				t.Errorf("%q: %+v", args, got)
			} else {
				t.Logf("%.200s", got.err)
			}
		})
	}
	if checked < 80 {
		t.Errorf("only %d commands were checked", checked)
	}
}

// What would go on for ever ends after --timeout, too, though every request is answered.
func TestTimeout_EndsWhatFollows(t *testing.T) {
	t.Parallel()
	s := startListening(t)
	s.Must(s.Reactor("thinks", func(ctx context.Context, _ *skein.StepInput, _ skein.Stream) (*skein.Reaction, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}))
	reply, err := s.Client("acme").Send(t.Context(), "", events.CreateThread{AgentID: "thinks"})
	s.Must(err)
	for call, code := range map[string]int{"tail": 0, "tail " + reply.ThreadID: 0, "thread react " + reply.ThreadID + " hello --wait": 1} { // who follows is told to stop
		got := execute(t, s.Addresses().NATS, "", false, append(strings.Fields(call), "--timeout", "3s")...)
		if got.code != code || code == 1 && !strings.Contains(got.err, "skein: timeout: ") {
			t.Errorf("skein %s: %+v", call, got)
		}
	}
}

// The commands stand in groups in the help.
func TestHelp_IsGrouped(t *testing.T) {
	t.Parallel()
	r := root()
	for _, c := range r.Commands() {
		if c.GroupID == "" && c.Name() != "version" && c.Name() != "help" && c.Name() != "completion" {
			t.Errorf("skein %s is in no group", c.Name())
		}
	}
	help := r.UsageString()
	last := -1
	for _, g := range r.Groups() {
		at := strings.Index(help, "\n"+g.Title+"\n")
		if at <= last {
			t.Errorf("the group %s is at %d of the help, after %d", g.Title, at, last)
		}
		last = at
	}
}
