package skein_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/skein-threads/skein"
	"github.com/skein-threads/skein/api"
	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/cmd/skein/user"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/server"
	"github.com/skein-threads/skein/skeintest"
)

// Every option reaches the server: changing it changes the server's configuration.
func TestOptions_EachReachesTheServer(t *testing.T) {
	elsewhere := []string{"Logger", "Setup"} // of Start itself
	typ := reflect.TypeFor[skein.Options]()
	for i := range typ.NumField() {
		field := typ.Field(i)
		if strings.Contains(" "+strings.Join(elsewhere, " ")+" ", " "+field.Name+" ") {
			continue
		}
		var o skein.Options
		fill(t, reflect.ValueOf(&o).Elem().Field(i))
		got := reflect.ValueOf(skein.ConfigOf(o)).FieldByName(field.Name)
		if !got.IsValid() || got.IsZero() {
			t.Errorf("Options.%s does not reach the server's configuration", field.Name)
		}
	}
	// Every setting of the server is an option.
	for i := range reflect.TypeFor[server.Config]().NumField() {
		name := reflect.TypeFor[server.Config]().Field(i).Name
		if _, ok := typ.FieldByName(name); !ok && name != "Register" && name != "Endpoints" { // which Start itself uses
			t.Errorf("the server's %s is no option", name)
		}
	}
}

// fill sets a value other than zero.
func fill(t *testing.T, v reflect.Value) {
	t.Helper()
	switch v.Kind() {
	case reflect.String:
		v.SetString("x")
	case reflect.Int, reflect.Int64:
		v.SetInt(7)
	case reflect.Float64:
		v.SetFloat(7)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
	case reflect.Func:
		v.Set(reflect.MakeFunc(v.Type(), func([]reflect.Value) []reflect.Value { return nil }))
	case reflect.Struct:
		fill(t, v.Field(0))
	default:
		t.Fatalf("no value of %s", v.Type())
	}
}

// Registered functions work in runs: reactors by Setup and later, a tool, hooks by
// name, a loop policy, an effect.
func TestServer_RegistrationsWorkInRuns(t *testing.T) {
	type order struct {
		Number string `json:"number"`
	}
	reactor := func(_ context.Context, in *skein.StepInput, _ skein.Stream) (*skein.Reaction, error) {
		if in.Iteration > 0 {
			return skein.Answer("it is on its way"), nil
		}
		r := skein.Answer("let me look")
		r.ToolCalls = []skein.ToolCall{{CallID: "c1", Name: "find_order", Arguments: []byte(`{"number":"42"}`)}}
		return r, nil
	}
	s := skeintest.Start(t, func(o *skein.Options) {
		o.Setup = func(s *skein.Server) error { return s.Reactor("clerk", reactor) }
	})
	found, hooked, paid := make(chan string, 9), make(chan string, 9), make(chan string, 9)
	s.Must(s.Tool(skein.NewThreadTool("find_order", func(_ context.Context, in *skein.ToolInput, o order) (string, error) {
		found <- in.ThreadID + " " + o.Number
		return "sent yesterday", nil
	}, skein.Description("Finds an order."), skein.ReadOnly())))
	s.Must(s.Hook("log", skein.Hooks{AfterTool: func(_ context.Context, _ skein.ThreadState, in *skein.ToolInput, out *skein.ToolResult) error {
		hooked <- in.Name + " " + string(out.Result)
		return nil
	}}))
	s.Must(s.Continue("hasty", func(skein.Outcome) bool { return false }))
	s.Must(s.Effect("pay", func(_ context.Context, in *skein.EffectInput) error { paid <- in.ThreadID; return nil }))

	c := s.Client("acme")
	var apply events.ApplyDefinitions
	for _, d := range []struct {
		kind events.DefinitionKind
		text string
	}{
		{events.AgentKind, `{"name":"patient","type":"ai_human","reactor":"clerk","tools":["find_order"],"hooks":["log"]}`},
		{events.AgentKind, `{"name":"hasty","type":"ai_human","reactor":"clerk","tools":["find_order"]}`},
	} {
		apply.Definitions = append(apply.Definitions, events.NewDefinition{Kind: d.kind, Definition: []byte(d.text)})
	}
	if _, err := c.Send(t.Context(), "", apply); err != nil {
		t.Fatal(err)
	}
	steps := map[string]int64{"patient": 2, "hasty": 1}
	for agent, want := range steps {
		made, err := c.Send(t.Context(), "", events.CreateThread{AgentID: agent})
		if err != nil {
			t.Fatal(err)
		}
		answer, err := c.Ask(t.Context(), made.ThreadID, "where is order 42?")
		if err != nil || answer.Execution.StepCount != want {
			t.Errorf("%s: %+v, %v; want %d steps", agent, answer, err, want)
		}
		if got := <-found; got != made.ThreadID+" 42" {
			t.Errorf("%s: the tool was called with %s", agent, got)
		}
		if _, err := c.Send(t.Context(), made.ThreadID, events.ScheduleEffect{Name: "pay"}); err != nil {
			t.Fatal(err)
		}
		if got := <-paid; got != made.ThreadID {
			t.Errorf("%s: the effect got %s", agent, got)
		}
	}
	packed, err := user.PackDefinitions(t.Context(), c, []string{"patient"})
	if err != nil || len(packed) != 1 {
		t.Errorf("an agent with a Go tool without a definition is packed as %s, %v", packed, err)
	}
	if got := <-hooked; got != `find_order "sent yesterday"` || len(hooked) > 0 {
		t.Errorf("the hook got %s, and %d more", got, len(hooked))
	}
}

// A Go tool is known by its registration: an agent may list it, a definition of it may come and go
// while agents list it, and an agent with one that is not portable cannot be packed, whatever the
// definition says. A name that is neither defined nor registered is refused.
func TestServer_ToolsNeedNoDefinition(t *testing.T) {
	s := skeintest.Start(t)
	nothing := func(context.Context, struct{}) (string, error) { return "", nil }
	s.Must(s.Tool(skein.NewTool("local", nothing, skein.Spec(func(spec *skein.ToolSpec) { spec.NotPortable = true }))))
	c := s.Client("acme")
	apply := func(kind events.DefinitionKind, text string) error {
		reply, err := c.Send(t.Context(), "", events.ApplyDefinitions{Definitions: []events.NewDefinition{{Kind: kind, Definition: []byte(text)}}})
		if err == nil {
			c = c.WithMinSeq(reply.Seq)
		}
		return err
	}
	agent := `{"name":"clerk","type":"ai_human","reactor":"script","tools":["local"]}`
	s.Must(apply(events.AgentKind, agent))
	if err := apply(events.AgentKind, `{"name":"other","type":"ai_human","reactor":"script","tools":["nowhere"]}`); events.AsError(err).Code != events.InvalidRequest {
		t.Errorf("a tool that is neither defined nor registered: %v", err)
	}
	for _, defined := range []bool{false, true} {
		if defined {
			s.Must(apply(events.ToolKind, `{"name":"local","description":"Does nothing.","type":"go"}`))
		}
		_, err := user.PackDefinitions(t.Context(), c, []string{"clerk"})
		if e := events.AsError(err); e.Code != events.InvalidRequest || !strings.Contains(e.Message, "not portable") {
			t.Errorf("defined %v: packing returns %v", defined, err)
		}
	}
	if _, err := c.Send(t.Context(), "", events.ApplyDefinitions{Remove: []events.DefinitionRef{{Kind: events.ToolKind, Name: "local"}}}); err != nil {
		t.Errorf("the definition of a registered tool stays: %v", err)
	}
}

// An invalid registration is refused by the registering method, with the reason.
func TestServer_RefusesInvalidRegistrations(t *testing.T) {
	s := skeintest.Start(t)
	type odd struct{ C chan int }
	for name, err := range map[string]error{
		"a tool of what is no JSON": s.Tool(skein.NewTool("odd", func(context.Context, odd) (string, error) { return "", nil })),
		"a name with a dot":         s.Reactor("a.b", func(context.Context, *skein.StepInput, skein.Stream) (*skein.Reaction, error) { return nil, nil }),
		"a nil reactor":             s.Reactor("a", nil),
		"a nil effect":              s.Effect("a", nil),
		"hooks without a function":  s.Hook("a", skein.Hooks{}),
		"a nil loop policy":         s.Continue("a", nil),
		"no tenant's name":          func() error { _, err := s.Server.Client("a.b"); return err }(),
	} {
		if events.AsError(err) == nil || events.AsError(err).Code != events.InvalidRequest {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Handler serves what the HTTP listener serves.
func TestServer_Handler(t *testing.T) {
	s := skeintest.Start(t)
	w := httptest.NewRecorder()
	s.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/readyz", nil))
	if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), `"ok":true`) {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// What was acknowledged is there after a restart.
func TestStart_KeepsDataAfterRestart(t *testing.T) {
	o := skein.Options{Store: t.TempDir(), NATSListen: skein.None, HTTPListen: skein.None, Logger: zerolog.Nop()}
	var id string
	for i := range 2 {
		s, err := skein.Start(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		c, err := s.Client("acme")
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			reply, err := c.Send(t.Context(), "", events.CreateThread{})
			if err != nil {
				t.Fatal(err)
			}
			id = reply.ThreadID
		} else if _, err := client.Read(t.Context(), c, events.GetThread{ThreadID: id}); err != nil {
			t.Error(err)
		}
		stop, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
		if err := s.Stop(stop); err != nil {
			t.Error(err)
		}
		cancel()
	}
}

// SA-157: a program's endpoints answer from Setup on, and later ones from their registration.
func TestServer_EndpointsAreServed(t *testing.T) {
	named := func(name string) http.Handler {
		return api.DefineThreadEndpoint(func(w http.ResponseWriter, _ *http.Request, state *client.ThreadState) error {
			_, err := io.WriteString(w, name+" of "+state.ThreadID())
			return err
		})
	}
	s := skeintest.Start(t, func(o *skein.Options) {
		o.Tenant = "acme"
		o.Setup = func(s *skein.Server) error { return s.Endpoint("early", named("early")) }
	})
	made, err := s.Client("acme").Send(t.Context(), "", events.CreateThread{})
	s.Must(err)
	s.Must(s.Endpoint("late", named("late")))
	if err := s.Endpoint("export", named("another")); !errors.Is(err, &events.Error{Code: events.AlreadyExists}) {
		t.Errorf("a name in use: %v", err)
	}
	for path, want := range map[string]string{
		"/threads/" + made.ThreadID + "/early":   "early of " + made.ThreadID,
		"/threads/" + made.ThreadID + "/late":    "late of " + made.ThreadID,
		"/threads/" + made.ThreadID + "/summary": `{"threadId":"` + made.ThreadID + `","messageCount":0}`,
		"/threads//summary":                      `{"error":"Thread ID required"}`,
	} {
		w := httptest.NewRecorder()
		s.Handler().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
		if w.Body.String() != want {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
}

// The AI SDK's protocol is served by every server.
func TestServer_ChatIsServed(t *testing.T) {
	s := skeintest.Start(t, func(o *skein.Options) { o.Tenant = "acme" })
	s.Must(s.Reactor("shout", func(context.Context, *skein.StepInput, skein.Stream) (*skein.Reaction, error) {
		return skein.Answer("HELLO"), nil
	}))
	w := httptest.NewRecorder()
	s.Handler().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/chat", strings.NewReader(
		`{"id":"c1","agent":"shout","messages":[{"id":"m1","role":"user","parts":[{"type":"text","text":"hello"}]}]}`)))
	if body := w.Body.String(); !strings.Contains(body, `"delta":"HELLO"`) || !strings.HasSuffix(body, "data: [DONE]\n\n") {
		t.Errorf("%d %s", w.Code, body)
	}
}
