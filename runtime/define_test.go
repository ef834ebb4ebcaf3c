package runtime_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/runtime"
)

// A tool in ten lines.
func ExampleDefineTool() {
	type forecast struct {
		City string `json:"city" doc:"Name of a city."`
		Days int    `json:"days,omitempty" doc:"How many days, 1 if absent."`
	}
	weather, err := runtime.DefineTool(runtime.ToolSpec{Name: "weather", Description: "Says the weather.", ReadOnly: true},
		func(_ context.Context, _ *runtime.ToolInput, args forecast) (string, error) {
			return fmt.Sprintf("Sunny in %s for %d days.", args.City, max(args.Days, 1)), nil
		})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(string(weather.Spec().Parameters))
	result, _ := weather.Call(context.Background(), &runtime.ToolInput{Arguments: events.JSON(`{"city":"Lima"}`)})
	fmt.Println(result.Status, string(result.Result))
	result, _ = weather.Call(context.Background(), &runtime.ToolInput{Arguments: events.JSON(`{"town":"Lima"}`)})
	fmt.Println(result.Status, result.Error)
	// Output:
	// {"type":"object","properties":{"city":{"type":"string","description":"Name of a city."},"days":{"type":"integer","description":"How many days, 1 if absent."}},"required":["city"],"additionalProperties":false}
	// success "Sunny in Lima for 1 days."
	// error the arguments do not fit: does not know 'town'; lacks 'city'
}

type database struct{ rows map[string]string }

func lookUp(t *testing.T, db *database) runtime.Tool {
	t.Helper()
	type query struct {
		Key string `json:"key"`
	}
	tool, err := runtime.DefineTool(runtime.ToolSpec{Name: "look_up", NotPortable: true},
		func(_ context.Context, _ *runtime.ToolInput, q query) (runtime.ToolResult, error) {
			if db == nil {
				return runtime.Failed("Database not available"), nil
			}
			row, err := json.Marshal(db.rows[q.Key])
			return runtime.Done(row), err
		})
	if err != nil {
		t.Fatal(err)
	}
	return tool
}

// A ToolResult that the function of a tool returns is used unchanged.
func TestDefineTool_ReturnsToolResultUnchanged(t *testing.T) {
	t.Parallel()
	in := &runtime.ToolInput{Arguments: events.JSON(`{"key":"a"}`)}
	result, err := lookUp(t, nil).Call(t.Context(), in)
	if said, _ := json.Marshal(result); err != nil || string(said) != `{"status":"error","error":"Database not available"}` {
		t.Errorf("%s %v", said, err)
	}
	result, err = lookUp(t, &database{map[string]string{"a": "one"}}).Call(t.Context(), in)
	if said, _ := json.Marshal(result); err != nil || string(said) != `{"status":"success","result":"one"}` {
		t.Errorf("%s %v", said, err)
	}
}

// SA-151: a tool declares in its definition that it uses what this process was
// configured with.
func TestDefineTool_DeclaresNotPortable(t *testing.T) {
	t.Parallel()
	registry := runtime.NewRegistry(nil)
	if err := registry.AddTool(lookUp(t, nil)); err != nil {
		t.Fatal(err)
	}
	tool, err := registry.Tool("look_up")
	if err != nil {
		t.Fatal(err)
	}
	said, err := json.Marshal(tool.Spec())
	if err != nil || !strings.Contains(string(said), `"notPortable":true`) {
		t.Errorf("%s %v", said, err)
	}
	if portable, _ := json.Marshal(define(t, func(any) (any, error) { return nil, nil }).Spec()); strings.Contains(string(portable), "notPortable") {
		t.Errorf("%s", portable)
	}
}

// define returns a tool that takes {"v": anything}.
func define[R any](t *testing.T, fn func(v any) (R, error)) runtime.Tool {
	t.Helper()
	type input struct {
		V any `json:"v,omitempty"`
	}
	tool, err := runtime.DefineTool(runtime.ToolSpec{Name: "any"}, func(_ context.Context, _ *runtime.ToolInput, in input) (R, error) { return fn(in.V) })
	if err != nil {
		t.Fatal(err)
	}
	return tool
}

// SA-66, SA-68: what a function returns, as a result.
func TestDefineTool_EncodesResults(t *testing.T) {
	t.Parallel()
	in := &runtime.ToolInput{}
	for name, c := range map[string]struct {
		tool runtime.Tool
		want string
	}{
		"a string is a JSON string": {define(t, func(any) (string, error) { return `{"rows":2}`, nil }), `{"status":"success","result":"{\"rows\":2}"}`},
		"an object":                 {define(t, func(any) (map[string]int, error) { return map[string]int{"b": 2, "a": 1}, nil }), `{"status":"success","result":{"a":1,"b":2}}`},
		"raw JSON":                  {define(t, func(any) (events.JSON, error) { return events.JSON(`[1]`), nil }), `{"status":"success","result":[1]}`},
		"nothing":                   {define(t, func(any) (any, error) { return nil, nil }), `{"status":"success","result":null}`},
		"a failure":                 {define(t, func(any) (any, error) { return nil, errors.New("no such row") }), `{"status":"error","error":"no such row"}`},
		"a result of its own":       {define(t, func(any) (runtime.ToolResult, error) { return runtime.Failed("closed"), nil }), `{"status":"error","error":"closed"}`},
		"not JSON":                  {define(t, func(any) (any, error) { return func() {}, nil }), `{"status":"error","error":"the result of the tool any cannot be encoded as JSON"}`},
		"broken JSON":               {define(t, func(any) (events.JSON, error) { return events.JSON(`{`), nil }), `{"status":"error","error":"the result of the tool any cannot be encoded as JSON"}`},
	} {
		result, err := c.tool.Call(t.Context(), in)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if got, err := json.Marshal(result); err != nil || string(got) != c.want {
			t.Errorf("%s: %s %v", name, got, err)
		}
	}
	long := define(t, func(any) (any, error) { return nil, errors.New(strings.Repeat("é", 1<<20)) })
	if result, _ := long.Call(t.Context(), in); len(result.Error) > 5000 || !strings.HasSuffix(result.Error, "é...") {
		t.Errorf("an error of %d bytes", len(result.Error))
	}
}

// SA-66: errors for the caller, which are not results of the work.
func TestDefineTool_ErrorsForCaller(t *testing.T) {
	t.Parallel()
	busy := &runtime.RetryError{Err: errors.New("busy")}
	_, err := define(t, func(any) (any, error) { return nil, fmt.Errorf("calling: %w", busy) }).Call(t.Context(), &runtime.ToolInput{})
	if again := (*runtime.RetryError)(nil); !errors.As(err, &again) || again != busy {
		t.Errorf("%v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	_, err = define(t, func(any) (any, error) { cancel(); return nil, ctx.Err() }).Call(ctx, &runtime.ToolInput{})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	defer func() {
		if recover() == nil {
			t.Error("a panic was kept from the caller")
		}
	}()
	_, _ = define(t, func(any) (any, error) { panic("broken") }).Call(t.Context(), &runtime.ToolInput{})
}

// SA-67: fn receives no invalid arguments, and everything about the call.
func TestDefineTool_ValidatesArguments(t *testing.T) {
	t.Parallel()
	type order struct {
		Count int64 `json:"count"`
	}
	calls := 0
	tool, err := runtime.DefineTool(runtime.ToolSpec{Name: "order", ReadOnly: true}, func(_ context.Context, in *runtime.ToolInput, o order) (string, error) {
		calls++
		return fmt.Sprint(in.Key, o.Count), nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if !tool.Spec().Idempotent {
		t.Error("what only reads is not idempotent")
	}
	for given, want := range map[string]string{
		``:                      "the arguments do not fit: lacks 'count'",
		`{"count":"2"}`:         "the arguments do not fit: /count: expected integer, but got string",
		`{"count":1e30}`:        "the arguments do not fit: /count: does not fit into int64",
		`{"count":2,"extra":1}`: "the arguments do not fit: does not know 'extra'",
	} {
		if result, err := tool.Call(t.Context(), &runtime.ToolInput{Arguments: events.JSON(given)}); err != nil || result.Status != runtime.Failure || result.Error != want {
			t.Errorf("%s: %+v %v", given, result, err)
		}
	}
	result, err := tool.Call(t.Context(), &runtime.ToolInput{Key: "k", Arguments: events.JSON(`{"count":2}`)})
	if err != nil || string(result.Result) != `"k2"` || calls != 1 {
		t.Errorf("%+v %v after %d calls", result, err, calls)
	}
}

func TestDefinitionsThatAreRefused(t *testing.T) {
	t.Parallel()
	nothing := func(context.Context, *runtime.ToolInput, struct{}) (any, error) { return nil, nil }
	for want, define := range map[string]func() (runtime.Tool, error){
		"name": func() (runtime.Tool, error) { return runtime.DefineTool(runtime.ToolSpec{Name: "a b"}, nothing) },
		"has no function": func() (runtime.Tool, error) {
			return runtime.DefineTool[struct{}, any](runtime.ToolSpec{Name: "a"}, nil)
		},
		"is not a struct": func() (runtime.Tool, error) {
			return runtime.DefineTool(runtime.ToolSpec{Name: "a"}, func(context.Context, *runtime.ToolInput, int) (any, error) { return nil, nil })
		},
		"must take an object": func() (runtime.Tool, error) {
			return runtime.DefineTool(runtime.ToolSpec{Name: "a", Parameters: events.JSON(`{"type":"array"}`)}, nothing)
		},
	} {
		_, err := define()
		var refused *events.Error
		if !errors.As(err, &refused) || refused.Code != events.InvalidRequest || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
	given, err := runtime.DefineTool(runtime.ToolSpec{Name: "a", Parameters: events.JSON(`{"required":["x"]}`)},
		func(_ context.Context, _ *runtime.ToolInput, args map[string]int) (int, error) { return args["x"], nil })
	if err != nil {
		t.Fatal(err)
	}
	if result, err := given.Call(t.Context(), &runtime.ToolInput{Arguments: events.JSON(`{"x":4}`)}); err != nil || string(result.Result) != "4" {
		t.Errorf("%+v %v", result, err)
	}
}
