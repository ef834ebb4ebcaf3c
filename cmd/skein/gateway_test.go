package main_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/skein-threads/skein"
	"github.com/skein-threads/skein/api/keys"
	"github.com/skein-threads/skein/operator/access"
	"github.com/skein-threads/skein/skeintest"
)

// gates is a Skein with accounts and a key, and processes of `skein gateway` in front of it.
type gates struct {
	*skeintest.Server
	t      *testing.T
	folder *access.Folder
	creds  string
	made   keys.Key
	key    string
}

func newGates(t *testing.T, serves ...string) *gates {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "access")
	folder, err := access.Init(dir, access.InitOptions{})
	if err != nil {
		t.Fatal(err)
	}
	g := &gates{t: t, folder: folder}
	if g.creds, _, err = folder.Add(access.User{Name: "edge", Roles: []access.Role{access.Gateway}, Serves: serves}); err != nil {
		t.Fatal(err)
	}
	g.made, g.key = g.newKey("acme")
	g.Server = skeintest.Start(t, func(o *skein.Options) { o.Access, o.NATSListen, o.HTTPListen = dir, "127.0.0.1:0", "127.0.0.1:0" })
	return g
}

func (g *gates) newKey(tenant string) (made keys.Key, text string) {
	g.t.Helper()
	g.change(func() (err error) {
		made, text, err = g.folder.AddKey(keys.Key{Tenant: tenant, Roles: []string{"publisher", "subscriber"}})
		return err
	})
	return made, text
}

// change changes the folder, once no server writes there when keys were used.
func (g *gates) change(do func() error) {
	g.t.Helper()
	for {
		var busy *access.BusyError
		if err := do(); !errors.As(err, &busy) {
			if err != nil {
				g.t.Fatal(err)
			}
			return
		}
	}
}

// gate is a process of `skein gateway`.
type gate struct {
	g   *gates
	cmd *exec.Cmd
	url string
}

// gateway starts a process, and waits until it is ready.
func (g *gates) gateway(flags ...string) *gate {
	g.t.Helper()
	return g.gatewayOf(g.Addresses().NATS, append(flags, "--creds", g.creds)...)
}

// gatewayOf starts a process for a server, and waits until it is ready.
func (g *gates) gatewayOf(nats string, flags ...string) *gate {
	g.t.Helper()
	cmd := exec.Command(binary, append([]string{"gateway", "--json", "--nats", nats, "--http-listen", "127.0.0.1:0", "--log-level", "warn"}, flags...)...)
	cmd.Env, cmd.Stderr = environment(), os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		g.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		g.t.Fatal(err)
	}
	g.t.Cleanup(func() { _ = cmd.Process.Kill(); _, _ = cmd.Process.Wait() })
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		g.t.Fatalf("no ready line: %v", err)
	}
	var ready struct{ HTTP string }
	decode(g.t, line, &ready)
	one := &gate{g, cmd, ready.HTTP}
	for { // until it knows that somebody answers for keys
		if r := one.do("GET", "/readyz", "", ""); r.StatusCode == http.StatusOK {
			return one
		}
	}
}

// open sends a request with a key, unless it is empty.
func (p *gate) open(ctx context.Context, method, path, body, key string, headers ...string) (*http.Response, error) {
	p.g.t.Helper()
	r, err := http.NewRequestWithContext(ctx, method, p.url+path, strings.NewReader(body))
	if err != nil {
		p.g.t.Fatal(err)
	}
	if key != "" {
		r.Header.Set("Authorization", "Bearer "+key)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	return http.DefaultTransport.RoundTrip(r)
}

// httpReply is an answer that was read.
type httpReply struct {
	*http.Response
	text string
}

func (p *gate) do(method, path, body, key string, headers ...string) httpReply {
	p.g.t.Helper()
	r, err := p.open(p.g.t.Context(), method, path, body, key, headers...)
	if err != nil {
		p.g.t.Fatal(err)
	}
	defer r.Body.Close()
	raw, err := io.ReadAll(r.Body)
	if err != nil {
		p.g.t.Fatal(err)
	}
	return httpReply{r, string(raw)}
}

// want is do with the status that is expected.
func (p *gate) want(status int, method, path, body string, headers ...string) httpReply {
	p.g.t.Helper()
	r := p.do(method, path, body, p.g.key, headers...)
	if r.StatusCode != status {
		p.g.t.Fatalf("%s %s: %d %.300s, want %d", method, path, r.StatusCode, r.text, status)
	}
	return r
}

// reading is a stream of server-sent events.
type reading struct {
	t     *testing.T
	lines *bufio.Scanner
}

func (p *gate) stream(path string, headers ...string) *reading {
	p.g.t.Helper()
	r, err := p.open(p.g.t.Context(), "GET", path, "", p.g.key, append(headers, "Accept", "text/event-stream")...)
	if err != nil || r.StatusCode != http.StatusOK {
		p.g.t.Fatalf("%s: %v, %v", path, r, err)
	}
	p.g.t.Cleanup(func() { _ = r.Body.Close() })
	lines := bufio.NewScanner(r.Body)
	lines.Buffer(nil, 1<<20)
	return &reading{p.g.t, lines}
}

// next returns the id and the data of the next event, and false at the end.
func (r *reading) next() (id, data string, more bool) {
	for r.lines.Scan() {
		line := r.lines.Text()
		if v, ok := strings.CutPrefix(line, "id: "); ok {
			id = v
		}
		if v, ok := strings.CutPrefix(line, "data: "); ok {
			data = v
		}
		if line == "" && data != "" {
			return id, data, true
		}
	}
	return "", "", false
}

// A gateway that is killed in the middle of an answer loses nothing: another one continues the
// stream of its chunks, and that of the thread's events, without a gap or a repeat.
func TestGateway_StreamsContinueElsewhere(t *testing.T) {
	t.Parallel()
	g := newGates(t)
	words := make(chan string)
	g.Must(g.Reactor("teller", func(ctx context.Context, _ *skein.StepInput, out skein.Stream) (*skein.Reaction, error) {
		said := ""
		for word := range words {
			said += word
			data, err := json.Marshal(map[string]string{"id": "t", "delta": word})
			if err != nil {
				return nil, err
			}
			out.Chunk(skein.Chunk{Type: "text-delta", Data: data})
		}
		return skein.Answer(said), ctx.Err()
	}))
	first, second := g.gateway(), g.gateway()
	first.want(http.StatusOK, "PUT", "/api/definitions/agent/teller", `{"type":"ai_human","reactor":"teller"}`)
	var made struct{ ThreadID, ExecutionID string }
	decode(t, first.want(http.StatusCreated, "POST", "/api/threads", `{}`).text, &made)
	thread := "/api/threads/" + made.ThreadID
	events := first.stream(thread + "/events")
	decode(t, first.want(http.StatusAccepted, "POST", thread+"/react", `{"agentId":"teller","text":"go"}`).text, &made)
	chunks := first.stream(thread + "/chunks?execution=" + made.ExecutionID)
	var seen []string
	var last string
	told := func(r *reading) bool {
		id, data, more := r.next()
		if !more {
			return false
		}
		last = id
		var c struct {
			Type string
			Data struct{ Delta string }
		}
		decode(t, data, &c)
		if c.Type == "text-delta" {
			seen = append(seen, c.Data.Delta)
		}
		return true
	}
	say := func(list ...string) {
		for _, w := range list {
			select {
			case words <- w:
			case <-t.Context().Done():
			}
		}
	}
	go say("once ", "upon ")
	for strings.Join(seen, "") != "once upon " {
		if !told(chunks) {
			t.Fatal("the first stream ended")
		}
	}
	var versions []string
	version, _, more := events.next()
	for versions = append(versions, version); more && len(versions) < 2; versions = append(versions, version) {
		version, _, more = events.next()
	}
	if err := first.cmd.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	for told(chunks) { // what was on its way
	}
	go func() { say("a ", "time"); close(words) }()
	chunks = second.stream(thread+"/chunks?execution="+made.ExecutionID, "Last-Event-ID", last)
	for told(chunks) {
	}
	if got := strings.Join(seen, ""); got != "once upon a time" {
		t.Errorf("the two streams told %q", got)
	}
	g.WaitIdle()
	events = second.stream(thread+"/events", "Last-Event-ID", version)
	want := second.want(http.StatusOK, "GET", thread+"/events", "", "Accept", "application/json")
	var all struct {
		Events []struct{ Threadversion json.Number }
	}
	decode(t, want.text, &all)
	for len(versions) < len(all.Events) {
		version, _, more = events.next()
		if !more {
			t.Fatal("the stream of events ended")
		}
		versions = append(versions, version)
	}
	var have []string
	for _, e := range all.Events {
		have = append(have, e.Threadversion.String())
	}
	if len(have) < 5 || !slices.Equal(versions, have) {
		t.Errorf("the streams had %v, the thread has %v", versions, have)
	}
}

// A revoked key ends its streams at every gateway, and no gateway takes it any more. A new one
// is taken at once, and its use is listed.
func TestGateway_KeysEndEverywhere(t *testing.T) {
	t.Parallel()
	g := newGates(t)
	gateways := []*gate{g.gateway(), g.gateway()}
	var streams []*reading
	for _, p := range gateways {
		streams = append(streams, p.stream("/api/events"))
	}
	g.change(func() error { return g.folder.RevokeKey(g.made.ID) })
	for _, s := range streams {
		if _, _, more := s.next(); more {
			t.Error("a stream of a revoked key went on")
		}
	}
	for _, p := range gateways {
		p.want(http.StatusUnauthorized, "GET", "/api/threads", "")
	}
	_, other := g.newKey("acme")
	id := strings.Split(other, "_")[1]
	for _, p := range gateways {
		for p.do("GET", "/api/threads", "", other).StatusCode != http.StatusOK { // until Skein has read it
		}
		for _, wrong := range []string{other + "0", "skein_" + id + "_x", "skein_x_y", "x"} {
			if r := p.do("GET", "/api/threads", "", wrong); r.StatusCode != http.StatusUnauthorized {
				t.Errorf("%.20s: %d", wrong, r.StatusCode)
			}
		}
	}
	for {
		if _, used, err := g.folder.Keys(); err == nil && !used[id].IsZero() {
			return
		}
	}
}

// A ticket is for one use, and a session until it is signed out, at every gateway.
func TestGateway_TicketsAndSessionsElsewhere(t *testing.T) {
	t.Parallel()
	g := newGates(t)
	first, second := g.gateway(), g.gateway()
	var made struct{ Ticket string }
	decode(t, first.want(http.StatusCreated, "POST", "/api/tickets", "").text, &made)
	target := "/api/threads?ticket=" + made.Ticket
	if r := second.do("GET", target, "", ""); r.StatusCode != http.StatusOK {
		t.Errorf("the ticket elsewhere: %d %s", r.StatusCode, r.text)
	}
	for _, p := range []*gate{first, second} {
		if r := p.do("GET", target, "", ""); r.StatusCode != http.StatusUnauthorized {
			t.Errorf("a used ticket: %d", r.StatusCode)
		}
	}
	signIn := first.do("POST", "/console/session", `{"key":"`+g.key+`"}`, "", "Origin", first.url)
	if len(signIn.Cookies()) != 1 {
		t.Fatalf("%d %s", signIn.StatusCode, signIn.text)
	}
	session := signIn.Cookies()[0].Name + "=" + signIn.Cookies()[0].Value
	for _, p := range []*gate{first, second} {
		if r := p.do("GET", "/api/threads", "", "", "Cookie", session); r.StatusCode != http.StatusOK {
			t.Errorf("the session: %d %s", r.StatusCode, r.text)
		}
	}
	if r := second.do("DELETE", "/console/session", "", "", "Cookie", session, "Origin", second.url); r.StatusCode != http.StatusNoContent {
		t.Errorf("signing out: %d %s", r.StatusCode, r.text)
	}
	for _, p := range []*gate{first, second} {
		if r := p.do("GET", "/api/threads", "", "", "Cookie", session); r.StatusCode != http.StatusUnauthorized {
			t.Errorf("after signing out: %d", r.StatusCode)
		}
	}
	sign := func(p *gate, key string) string {
		t.Helper()
		r := p.do("POST", "/console/session", `{"key":"`+key+`"}`, "", "Origin", p.url)
		if len(r.Cookies()) != 1 {
			t.Fatalf("%d %s", r.StatusCode, r.text)
		}
		return r.Cookies()[0].Name + "=" + r.Cookies()[0].Value
	}
	revoked, other := g.newKey("acme")
	for _, p := range []*gate{first, second} {
		for p.do("GET", "/api/threads", "", other).StatusCode != http.StatusOK { // until Skein has read it
		}
	}
	session = sign(first, other)
	if r := second.do("GET", "/api/threads", "", "", "Cookie", session); r.StatusCode != http.StatusOK {
		t.Errorf("the session of another key: %d %s", r.StatusCode, r.text)
	}
	g.change(func() error { return g.folder.RevokeKey(revoked.ID) })
	for _, p := range []*gate{second, first} {
		for p.do("GET", "/api/threads", "", "", "Cookie", session).StatusCode != http.StatusUnauthorized { // until it is told
		}
	}
	session = sign(first, g.key)
	g.Must(first.cmd.Process.Kill())
	_ = first.cmd.Wait() // it was killed
	if r := second.do("GET", "/api/threads", "", "", "Cookie", session); r.StatusCode != http.StatusOK {
		t.Errorf("the session of a process that has gone: %d %s", r.StatusCode, r.text)
	}
	tail := "." + strings.Repeat("0", 64)
	for _, foreign := range []string{"acme.1" + tail, "acme.>" + tail, "*.1" + tail, "acme.10000" + tail, "acme.-1" + tail, "acme.01" + tail, "..x", "acme.a b" + tail, strings.Repeat("a.", 300)} {
		if r := second.do("GET", "/api/threads?ticket="+strings.ReplaceAll(foreign, " ", "%20"), "", ""); r.StatusCode != http.StatusUnauthorized {
			t.Errorf("the ticket %.20q: %d", foreign, r.StatusCode)
		}
	}
}

// A gateway whose credentials name its tenants takes no key of another, and no session or ticket that
// a gateway of all tenants has given to one.
func TestGateway_ServesItsTenantsOnly(t *testing.T) {
	t.Parallel()
	g := newGates(t, "acme")
	_, other := g.newKey("globex")
	p, all := g.gateway(), &gate{g, nil, g.Addresses().HTTP}
	for all.do("GET", "/api/threads", "", other).StatusCode != http.StatusOK { // until Skein has read it
	}
	p.want(http.StatusOK, "GET", "/api/threads", "")
	if r := p.do("GET", "/api/threads", "", other); r.StatusCode != http.StatusUnauthorized {
		t.Errorf("a key of another tenant: %d %s", r.StatusCode, r.text)
	}
	var creds string
	g.change(func() (err error) {
		creds, _, err = g.folder.Add(access.User{Name: "wide", Roles: []access.Role{access.Gateway}})
		return err
	})
	wide := g.gatewayOf(g.Addresses().NATS, "--creds", creds)
	for key, want := range map[string]int{g.key: http.StatusOK, other: http.StatusUnauthorized} {
		in := wide.do("POST", "/console/session", `{"key":"`+key+`"}`, "", "Origin", wide.url)
		var made struct{ Ticket string }
		decode(t, wide.do("POST", "/api/tickets", "", key).text, &made)
		if len(in.Cookies()) != 1 || made.Ticket == "" {
			t.Fatalf("%d %s, the ticket %q", in.StatusCode, in.text, made.Ticket)
		}
		session := in.Cookies()[0].Name + "=" + in.Cookies()[0].Value
		if r := wide.do("GET", "/api/threads", "", "", "Cookie", session); r.StatusCode != http.StatusOK {
			t.Errorf("where it was signed in: %d %s", r.StatusCode, r.text)
		}
		if r := p.do("GET", "/api/threads", "", "", "Cookie", session); r.StatusCode != want {
			t.Errorf("the session at the gateway of one tenant: %d %s, want %d", r.StatusCode, r.text, want)
		}
		if r := p.do("GET", "/api/threads?ticket="+made.Ticket, "", ""); r.StatusCode != want {
			t.Errorf("the ticket at the gateway of one tenant: %d %s, want %d", r.StatusCode, r.text, want)
		}
	}
}

// A gateway stops as a server does, and says what is wrong with its flags.
func TestGateway_StopsAndRefuses(t *testing.T) {
	t.Parallel()
	g := newGates(t)
	p := g.gateway("--ops-listen", "127.0.0.1:0")
	stream := p.stream("/api/events")
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Wait(); err != nil {
		t.Errorf("it ended with %v", err)
	}
	if _, _, more := stream.next(); more {
		t.Error("its stream went on")
	}
	for _, c := range []struct {
		code int
		args []string
	}{
		{2, nil}, {2, []string{"--nats", g.Addresses().NATS, "--http-listen", "0.0.0.0:0"}},
		{2, []string{"--nats", g.Addresses().NATS, "--tenant", "a.b"}}, {1, []string{"--nats", "nats://127.0.0.1:1", "--http-listen", "127.0.0.1:0"}},
		{2, []string{"--nats", g.Addresses().NATS, "--creds", g.creds, "--http-listen", "0.0.0.0:0"}},
		{1, []string{"--nats", g.Addresses().NATS, "--http-listen", "127.0.0.1:0"}},
	} {
		if o := run(t, nil, "", append([]string{"gateway"}, c.args...)...); o.code != c.code || o.err == "" {
			t.Errorf("%v: exit %d, %s", c.args, o.code, o.err)
		}
	}
}

// A gateway, and the HTTP of the server itself, count what they are asked, what they refuse, and
// the streams that are open.
func TestGateway_Metrics(t *testing.T) {
	t.Parallel()
	g := newGates(t)
	own := &gate{g, nil, g.Addresses().HTTP}
	for what, p := range map[string]*gate{"gateway": g.gateway("--http-key-limits", "streams=1"), "serve": own} {
		shows := func(line string) bool {
			return strings.Contains(p.do("GET", "/metrics", "", "").text, "\n"+line+"\n")
		}
		wait := func(line string) {
			t.Helper()
			for !shows(line) {
				if t.Context().Err() != nil {
					t.Fatalf("%s: no %s", what, line)
				}
			}
		}
		p.want(http.StatusOK, "GET", "/api/threads", "")
		p.do("GET", "/api/threads", "", "skein_x_y")
		p.do("GET", "/nowhere", "", "")
		ctx, cancel := context.WithCancel(t.Context())
		r, err := p.open(ctx, "GET", "/api/events", "", g.key, "Accept", "text/event-stream")
		if err != nil || r.StatusCode != http.StatusOK {
			t.Fatalf("%v, %v", r, err)
		}
		for _, line := range []string{
			`skein_http_requests_total{status="200",surface="api"} 2`, `skein_http_requests_total{status="401",surface="api"} 1`,
			`skein_http_requests_total{status="404",surface="other"} 1`, `skein_http_seconds_count{surface="api"} 3`, `skein_http_streams 1`,
		} {
			if !shows(line) {
				t.Errorf("%s: no %s", what, line)
			}
		}
		if what == "gateway" {
			if r := p.do("GET", "/api/events", "", g.key, "Accept", "text/event-stream"); r.StatusCode != http.StatusTooManyRequests {
				t.Errorf("a second stream: %d", r.StatusCode)
			}
			wait(`skein_limited_total{limit="streams",service="http"} 1`)
		}
		cancel()
		_ = r.Body.Close()
		wait(`skein_http_streams 0`)
	}
}
