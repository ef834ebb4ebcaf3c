package mcp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/runtime"
	"github.com/skein-threads/skein/runtime/egress"
)

// manage returns a manager that is closed at the end of the test.
func manage(t *testing.T, o Options, servers ...Server) *Manager {
	t.Helper()
	if o.Start == 0 { // a machine with much else to do starts a program late
		o.Start = 5 * time.Minute
	}
	var err error
	if o.Egress, err = egress.Parse(egress.Loopback()); err != nil {
		t.Fatal(err)
	}
	m, err := New(o, servers...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	return m
}

// offered returns a server's tool by its own name.
func offered(t *testing.T, m *Manager, server, name string) runtime.Tool {
	t.Helper()
	listing, err := m.Tools(t.Context(), server)
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range listing.Tools {
		if one.(*tool).name == name {
			return one
		}
	}
	t.Fatalf("there is no tool %s", name)
	return nil
}

func call(t *testing.T, one runtime.Tool, arguments string) (runtime.ToolResult, error) {
	t.Helper()
	return one.Call(t.Context(), &runtime.ToolInput{Key: "exe_1/call_1", Arguments: events.JSON(arguments)})
}

// fails makes a call that must fail with a text, and reports whether it may be
// repeated.
func fails(t *testing.T, one runtime.Tool, want string) (again bool) {
	t.Helper()
	result, err := call(t, one, `{}`)
	if err == nil || !strings.Contains(err.Error(), want) || len(err.Error()) > 500 || strings.Contains(err.Error(), "topsecret123") {
		t.Errorf("%s: %.200s %v, want %q", one.Spec().Name, result.Result, err, want)
	}
	var retry *runtime.RetryError
	return errors.As(err, &retry)
}

// until waits for a state of the manager.
func until(t *testing.T, m *Manager, what string, holds func() bool) {
	t.Helper()
	limit := time.After(5 * time.Minute)
	for {
		m.mu.Lock()
		ok, changed := holds(), m.changed
		m.mu.Unlock()
		if ok {
			return
		}
		select {
		case <-changed:
		case <-limit:
			t.Fatalf("never happened: %s", what)
		}
	}
}

// stderrOf returns options that record what programs write to stderr, and a function
// that waits for a text in it.
func stderrOf(o Options) (Options, func(t *testing.T, want string)) {
	said := make(stderr, 100)
	o.Stderr = func(string) io.Writer { return said }
	return o, func(t *testing.T, want string) {
		t.Helper()
		select {
		case got := <-said:
			if got != want {
				t.Fatalf("stderr is %q, want %q", got, want)
			}
		case <-time.After(5 * time.Minute):
			t.Fatalf("stderr never had %q", want)
		}
	}
}

type stderr chan string

func (s stderr) Write(p []byte) (int, error) {
	for line := range strings.Lines(string(p)) {
		s <- strings.TrimSuffix(line, "\n")
	}
	return len(p), nil
}

func alive(t *testing.T, pid string) bool {
	t.Helper()
	n, err := strconv.Atoi(pid)
	if err != nil {
		t.Fatal(err)
	}
	return syscall.Kill(n, 0) == nil
}

// SA-67: the tools that a server lists become tools with valid names and the properties
// of their hints.
func TestToolsOfAProgram(t *testing.T) {
	t.Parallel()
	def, _ := program(t, "serve")
	def.Approval = ApproveDestructive
	m := manage(t, Options{}, def)
	listing, err := m.Tools(t.Context(), "files")
	if err != nil {
		t.Fatal(err)
	}
	specs := map[string]runtime.ToolSpec{}
	registry := runtime.NewRegistry(nil)
	for _, one := range listing.Tools {
		specs[one.(*tool).name] = one.Spec()
		if err := registry.AddTool(one); err != nil {
			t.Error(err)
		}
	}
	for name, want := range map[string]runtime.ToolSpec{
		"echo":             {Name: "files__echo", ReadOnly: true, Idempotent: true},
		"crash":            {Name: "files__crash", Manual: true},
		"crash_idempotent": {Name: "files__crash_idempotent", Idempotent: true},
		"destroy":          {Name: "files__destroy", Manual: true},
		"append":           {Name: "files__append"},
		"a_b":              {Name: "files__a_b", Manual: true},
		"a.b":              {Name: "files__a_b_2e7336dc", Manual: true},
	} {
		got := specs[name]
		if got.Name != want.Name || got.Manual != want.Manual || got.Idempotent != want.Idempotent || got.ReadOnly != want.ReadOnly {
			t.Errorf("%s: %+v", name, got)
		}
		if got.Description != "The tool "+name || string(got.Parameters) != `{"type":"object"}` || got.Timeout != time.Minute || !got.NotPortable {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if long := specs[strings.Repeat("x", 100)].Name; len(long) != 64 {
		t.Errorf("a long name became %s", long)
	}
	if len(listing.Left) != 1 || listing.Left[0].Name != "remote" || !strings.Contains(listing.Left[0].Reason, "leads out of the schema") {
		t.Errorf("left out: %+v", listing.Left)
	}
	if _, err := m.Tools(t.Context(), "none"); !errors.Is(err, &events.Error{Code: events.NotFound}) {
		t.Error(err)
	}
	if got := m.Servers(); !slices.Equal(got, []string{"files"}) {
		t.Error(got)
	}
}

// SA-66, SA-68: a server's answers, as results.
func TestResultsOfAProgram(t *testing.T) {
	t.Parallel()
	def, _ := program(t, "serve")
	def.Env = []string{"FILES_TOKEN"}
	m := manage(t, Options{Variable: variables("FILES_TOKEN=topsecret123")}, def)
	for name, want := range map[string]string{
		"echo":             `success "{\"a\":[1,2.50]}" `,
		"key":              `success "exe_1/call_1" `,
		"html":             `success "<b>&` + "\u2028" + `é" `,
		"nothing":          `success null `,
		"image":            `success [{"type":"input_text","text":"a dot"},{"type":"input_image","image_url":"data:image/png;base64,ZG90"}] `,
		"picture":          `success [{"type":"input_image","image_url":"data:image/png;base64,ZG90"}] `,
		"document":         `success [{"type":"input_text","text":"the order"},{"type":"input_file","file_data":"data:application/pdf;base64,ZG90","filename":"7.pdf"}] `,
		"resource":         `success [{"type":"resource","resource":{"uri":"file:///a.txt","mimeType":"text/plain","text":"a note"}}] `,
		"link":             `success [{"type":"resource_link","uri":"file:///a.txt","name":"a"}] `,
		"structured":       `success {"n":9007199254740993} `,
		"structured_alone": `success ["a"] `,
		"structured_image": `success [{"type":"input_image","image_url":"data:image/png;base64,ZG90"},{"type":"input_text","text":"{\"a\":1}"}] `,
		"a.b":              `success "dot" `,
		"a_b":              `success "underscore" `,
		"fail":             `error  no access with [FILES_TOKEN]`,
	} {
		result, err := call(t, offered(t, m, "files", name), `{"a":[1,2.50]}`)
		if got := fmt.Sprintf("%s %s %s", result.Status, string(result.Result), result.Error); err != nil || got != want {
			t.Errorf("%s: %s %v", name, got, err)
		}
	}
	for name, want := range map[string]string{
		"refuse": "not allowed with [FILES_TOKEN]",
		"none":   "unknown tool",
	} {
		one := &tool{m, m.links["files"], name, runtime.ToolSpec{Timeout: time.Minute}}
		result, err := call(t, one, "")
		if err != nil || result.Status != runtime.Failure || !strings.HasPrefix(result.Error, "the MCP server files refused the call: ") || !strings.Contains(result.Error, want) {
			t.Errorf("%s: %+v %v", name, result, err)
		}
	}
}

func variables(set ...string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		for _, one := range append(set, "PATH="+os.Getenv("PATH")) {
			if value, ok := strings.CutPrefix(one, name+"="); ok {
				return value, true
			}
		}
		return "", false
	}
}

// A program receives what its definition names, and nothing else.
func TestEnvironmentOfAProgram(t *testing.T) {
	t.Parallel()
	def, _ := program(t, "serve")
	def.Env = []string{"FILES_TOKEN"}
	o := Options{Variable: variables("FILES_TOKEN=topsecret123", "HOME=/home/x", "OTHER_TOKEN=other")}
	result, err := call(t, offered(t, manage(t, o, def), "files", "environment"), "")
	var got string
	if err == nil {
		got, err = strconv.Unquote(string(result.Result))
	}
	lines := strings.Split(got, "\n")
	slices.Sort(lines)
	if want := []string{"FILES_TOKEN=topsecret123", "HOME=/home/x", "PATH=" + os.Getenv("PATH")}; err != nil || !slices.Equal(lines, want) {
		t.Errorf("%q %v", lines, err)
	}
}

// SA-66: a call during a crash may have been made. Only idempotent calls may be
// repeated. The next call finds a new program.
func TestProgram_CrashDuringCall(t *testing.T) {
	t.Parallel()
	def, dir := program(t, "serve")
	m := manage(t, Options{Backoff: time.Millisecond}, def)
	crash, again, echo := offered(t, m, "files", "crash"), offered(t, m, "files", "crash_idempotent"), offered(t, m, "files", "echo")
	if fails(t, crash, "the MCP server files: its program ended (exit status 3); the call may have been made") {
		t.Error("a call that may have been made is made again")
	}
	if !fails(t, again, "the MCP server files: its program ended (exit status 3)") {
		t.Error("an idempotent call is not made again")
	}
	if result, err := call(t, echo, `{}`); err != nil || result.Status != runtime.Success {
		t.Errorf("%+v %v", result, err)
	}
	if runs, starts := noted(t, dir, "runs"), noted(t, dir, "starts"); len(runs) != 2 || len(starts) != 3 {
		t.Errorf("%d runs, %d starts", len(runs), len(starts))
	}
}

// SA-66: an answer that is too long, not MCP or not the answer to the call is an error
// in a few words.
func TestProgram_InvalidAnswers(t *testing.T) {
	t.Parallel()
	def, _ := program(t, "serve")
	m := manage(t, Options{Backoff: time.Millisecond, MaxAnswer: 1 << 20}, def)
	for name, want := range map[string]string{
		"huge":     "it answered with more than 1048576 bytes; the call may have been made",
		"garbage":  "it wrote something other than MCP on stdout; a server logs to stderr; the call may have been made",
		"nonsense": "it wrote what is not MCP on stdout; the call may have been made",
	} {
		if fails(t, offered(t, m, "files", name), want) {
			t.Errorf("%s is made again", name)
		}
	}
	if result, err := call(t, offered(t, m, "files", "echo"), `{}`); err != nil || result.Status != runtime.Success {
		t.Errorf("afterwards: %+v %v", result, err)
	}
}

// A call that hangs ends at its timeout; the program stays if it answers a ping.
func TestProgram_CallTimesOut(t *testing.T) {
	t.Parallel()
	def, dir := program(t, "serve")
	o, wait := stderrOf(Options{})
	m := manage(t, o, def)
	hang, reading, echo := offered(t, m, "files", "hang"), offered(t, m, "files", "hang_reading"), offered(t, m, "files", "echo")
	for _, one := range []runtime.Tool{hang, reading} {
		one.(*tool).spec.Timeout = 500 * time.Millisecond
	}
	if fails(t, hang, "no answer within 500ms; the call may have been made") {
		t.Error("a call that may have been made is made again")
	}
	wait(t, "hanging")
	if !fails(t, reading, "no answer within 500ms") {
		t.Error("an idempotent call is not made again")
	}
	ctx, cancel := context.WithCancel(t.Context())
	hang.(*tool).spec.Timeout = time.Minute
	go func() {
		defer cancel()
		wait(t, "hanging")
	}()
	if _, err := hang.Call(ctx, &runtime.ToolInput{}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if _, err := call(t, echo, `{}`); err != nil {
		t.Error(err)
	}
	if starts := noted(t, dir, "starts"); len(starts) != 1 {
		t.Errorf("%d starts", len(starts))
	}
}

// A program that does not react at all is killed.
func TestProgram_FrozenIsKilled(t *testing.T) {
	t.Parallel()
	def, dir := program(t, "serve")
	m := manage(t, Options{Backoff: time.Millisecond}, def)
	freeze, echo := offered(t, m, "files", "freeze"), offered(t, m, "files", "echo")
	freeze.(*tool).spec.Timeout = 500 * time.Millisecond
	fails(t, freeze, "no answer within 500ms; the call may have been made")
	until(t, m, "the frozen program ends", func() bool { return m.open == 0 })
	if result, err := call(t, echo, `{}`); err != nil || result.Status != runtime.Success {
		t.Errorf("%+v %v", result, err)
	}
	if starts := noted(t, dir, "starts"); len(starts) != 2 || alive(t, starts[0]) {
		t.Errorf("starts: %v", starts)
	}
}

// A program that does not read its stdin delays no call beyond its timeout.
func TestProgram_DoesNotRead(t *testing.T) {
	t.Parallel()
	def, _ := program(t, "serve")
	m := manage(t, Options{Backoff: time.Millisecond}, def)
	freeze, key := offered(t, m, "files", "freeze"), offered(t, m, "files", "key")
	freeze.(*tool).spec.Timeout, key.(*tool).spec.Timeout = time.Minute, time.Second
	var all sync.WaitGroup
	all.Go(func() { // keeps the program from being pinged
		_, _ = freeze.Call(t.Context(), &runtime.ToolInput{})
	})
	defer all.Wait()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	_, err := key.Call(ctx, &runtime.ToolInput{Arguments: events.JSON(`{"a":"` + strings.Repeat("x", 1<<20) + `"}`)})
	if err == nil || ctx.Err() != nil || !strings.Contains(err.Error(), "no answer within 1s") {
		t.Error(err)
	}
}

func TestProgram_StartFailures(t *testing.T) {
	for mode, want := range map[string]string{
		"dies":   "its program ended (exit status 7)",
		"noise":  "it wrote something other than MCP on stdout",
		"broken": "it wrote what is not MCP on stdout",
		"silent": "it did not complete the handshake within 3s",
	} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			def, dir := program(t, mode)
			o := Options{Backoff: time.Millisecond}
			if mode == "silent" {
				o.Start = 3 * time.Second
			}
			m := manage(t, o, def)
			_, err := m.Tools(t.Context(), "files")
			if !errors.Is(err, &events.Error{Code: events.Unavailable}) || !strings.Contains(err.Error(), "the tools of the MCP server files are not known: "+want) || strings.Contains(err.Error(), "topsecret123") {
				t.Error(err)
			}
			one := &tool{m, m.links["files"], "echo", runtime.ToolSpec{Timeout: time.Minute}}
			if _, err := call(t, one, ""); err == nil || !strings.HasSuffix(err.Error(), want+"; the call was not made") && mode != "noise" {
				t.Error(err)
			}
			until(t, m, "the program ends", func() bool { return m.open == 0 })
			for _, pid := range noted(t, dir, "starts") {
				if alive(t, pid) {
					t.Errorf("%s still runs", pid)
				}
			}
		})
	}
	m := manage(t, Options{Variable: variables()},
		Server{Name: "gone", Command: "/nowhere/skein-test-program"},
		Server{Name: "bare", Command: "true", Env: []string{"FILES_TOKEN"}})
	for server, want := range map[string]string{
		"gone": "its program cannot be started: ",
		"bare": "the variable FILES_TOKEN, which its definition names, is not set",
	} {
		if _, err := m.Tools(t.Context(), server); err == nil || !strings.Contains(err.Error(), want) {
			t.Error(err)
		}
	}
}

// A server that keeps failing is started less and less often; a waiting call ends at
// its own timeout.
func TestFailuresMakeTheNextStartWait(t *testing.T) {
	t.Parallel()
	def, dir := program(t, "dies")
	m := manage(t, Options{Backoff: time.Hour}, def)
	if _, err := m.Tools(t.Context(), "files"); err == nil {
		t.Fatal("a program that dies was greeted")
	}
	one := &tool{m, m.links["files"], "echo", runtime.ToolSpec{Timeout: 200 * time.Millisecond}}
	_, err := call(t, one, "")
	var retry *runtime.RetryError
	if !errors.As(err, &retry) || !retry.NotMade || !strings.HasSuffix(err.Error(), "no session with it in time: no answer within 200ms; the call was not made") {
		t.Error(err)
	}
	if starts := noted(t, dir, "starts"); len(starts) != 1 {
		t.Errorf("%d starts", len(starts))
	}
	l := &link{}
	for _, want := range []time.Duration{500 * time.Millisecond, time.Second, 2 * time.Second} {
		manage(t, Options{}).failed(l, errBroken)
		if wait := time.Until(l.notBefore); wait > want || wait < want-200*time.Millisecond {
			t.Errorf("a wait of %v, want %v", wait, want)
		}
	}
	l.failures = 1000
	if manage(t, Options{}).failed(l, errBroken); time.Until(l.notBefore) > maxBackoff {
		t.Error("the wait grows for ever")
	}
}

// Many calls share one program, and Close ends it and them.
func TestProgram_IsShared(t *testing.T) {
	t.Parallel()
	def, dir := program(t, "serve")
	o, wait := stderrOf(Options{})
	m := manage(t, o, def)
	echo := &tool{m, m.links["files"], "echo", runtime.ToolSpec{Timeout: time.Minute}}
	var all sync.WaitGroup
	for i := range 32 {
		all.Go(func() {
			want := fmt.Sprintf(`{"i":%d}`, i)
			if result, err := call(t, echo, want); err != nil || string(result.Result) != strconv.Quote(want) {
				t.Errorf("%s: %+v %v", want, result, err)
			}
		})
	}
	all.Wait()
	starts := noted(t, dir, "starts")
	if len(starts) != 1 {
		t.Fatalf("%d starts", len(starts))
	}
	hang := &tool{m, m.links["files"], "hang", runtime.ToolSpec{Timeout: time.Minute}}
	all.Go(func() {
		if fails(t, hang, "this process is ending; the call may have been made") {
			t.Error("it is made again")
		}
	})
	wait(t, "hanging")
	m.Close()
	all.Wait()
	if alive(t, starts[0]) {
		t.Error("the program still runs")
	}
	if !fails(t, echo, "this process is ending; the call was not made") {
		t.Error("a call that was not made cannot be made elsewhere")
	}
	m.Close()
}

// An unused program ends; it is asked to before it is killed.
func TestProgram_UnusedEnds(t *testing.T) {
	t.Parallel()
	def, dir := program(t, "serve")
	m := manage(t, Options{Idle: 50 * time.Millisecond}, def)
	echo := &tool{m, m.links["files"], "echo", runtime.ToolSpec{Timeout: time.Minute}}
	for range 2 {
		if _, err := call(t, echo, `{}`); err != nil {
			t.Fatal(err)
		}
		until(t, m, "the program ends", func() bool { return m.open == 0 })
	}
	if starts, ends := noted(t, dir, "starts"), noted(t, dir, "ends"); len(starts) != 2 || len(ends) != 2 {
		t.Errorf("%d starts, %d ends", len(starts), len(ends))
	}
}

// No more programs run than permitted: an idle one is ended, and without an idle one a
// call waits.
func TestSessionsAreBounded(t *testing.T) {
	t.Parallel()
	one, dirOne := program(t, "serve")
	two, dirTwo := program(t, "serve")
	two.Name = "other"
	o, wait := stderrOf(Options{MaxSessions: 1})
	m := manage(t, o, one, two)
	echo := func(server string) *tool {
		return &tool{m, m.links[server], "echo", runtime.ToolSpec{Timeout: time.Minute}}
	}
	for _, server := range []string{"files", "other", "files"} {
		if _, err := call(t, echo(server), `{}`); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	all.Go(func() {
		hang := &tool{m, m.links["files"], "hang", runtime.ToolSpec{Timeout: time.Minute}}
		_, _ = hang.Call(ctx, &runtime.ToolInput{})
	})
	wait(t, "hanging")
	short := echo("other")
	short.spec.Timeout = 200 * time.Millisecond
	if !fails(t, short, "no session with it in time: no answer within 200ms; the call was not made") {
		t.Error("a call that was not made is not made again")
	}
	all.Go(func() {
		if _, err := call(t, echo("other"), `{}`); err != nil {
			t.Error(err)
		}
	})
	cancel()
	all.Wait()
	if starts := len(noted(t, dirOne, "starts")) + len(noted(t, dirTwo, "starts")); starts != 4 {
		t.Errorf("%d starts", starts)
	}
	until(t, m, "one session is open, and no more", func() bool { return m.open == 1 })
}
