package client_test

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
)

// SA-80 to SA-83, SA-96 to SA-106, SA-174: what a thread state returns has the fields that Standard
// Agents defines, and nothing of how Skein stores it.
func TestThreadState_RecordsHaveTheSourcesFields(t *testing.T) {
	t.Parallel()
	ctx, c := t.Context(), connect(t, start(t))
	state, err := c.Thread(ctx, newThread(t, c))
	if err != nil {
		t.Fatal(err)
	}
	file, err := state.WriteFile(ctx, "/a/b.txt", []byte("hello"), "text/plain", client.WriteFileOptions{Metadata: events.JSON(`{"own":1}`)})
	if err != nil {
		t.Fatal(err)
	}
	list, err := state.ReaddirFile(ctx, "/a")
	if err != nil || len(list.Entries) != 1 {
		t.Fatalf("%+v, %v", list, err)
	}
	id, err := state.ScheduleEffect(ctx, "remind", map[string]any{"n": 1}, time.Hour, events.Attempts(2))
	if err != nil {
		t.Fatal(err)
	}
	effects, err := state.GetScheduledEffects(ctx, "")
	if err != nil || len(effects) != 1 || effects[0].ID != id {
		t.Fatalf("%+v, %v", effects, err)
	}
	const ofFile = "createdAt isDirectory metadata mimeType name path size storage updatedAt"
	for _, tt := range []struct {
		name   string
		record any
		fields string
	}{
		{"file", file, ofFile}, {"entry", list.Entries[0], ofFile}, {"effect", effects[0], "args createdAt id name scheduledAt"},
	} {
		raw, err := json.Marshal(tt.record)
		if err != nil {
			t.Fatal(err)
		}
		var fields map[string]any
		if err := json.Unmarshal(raw, &fields); err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(slices.Sorted(maps.Keys(fields)), " "); got != tt.fields {
			t.Errorf("%s: has %s, want %s", tt.name, got, tt.fields)
		}
	}
	all, err := c.ScheduledEffects(ctx, state.ThreadID(), "remind")
	if err != nil || len(all) != 1 || all[0].Retries != 1 {
		t.Errorf("two attempts are scheduled as %+v, %v", all, err)
	}
	if _, err := state.ScheduleEffect(ctx, "remind", nil, 0, events.Attempts(0)); events.AsError(err).Code != events.InvalidRequest {
		t.Errorf("no attempt at all: %v", err)
	}
}

// SA-176, C-53: an absent directory has no entries, and a directory has no content, without an error;
// the handle for files tells the caller.
func TestThreadState_AbsentIsEmpty(t *testing.T) {
	t.Parallel()
	ctx, c := t.Context(), connect(t, start(t))
	state, err := c.Thread(ctx, newThread(t, c))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := state.MkdirFile(ctx, "/dir"); err != nil {
		t.Fatal(err)
	}
	if list, err := state.ReaddirFile(ctx, "/none"); err != nil || list.Entries == nil || len(list.Entries) != 0 {
		t.Errorf("an absent directory: %+v, %v", list, err)
	}
	if data, err := state.ReadFile(ctx, "/dir"); err != nil || data != nil {
		t.Errorf("the content of a directory: %v, %v", data, err)
	}
	if chunks, err := state.ReadFileStream(ctx, "/dir"); err != nil || chunks != nil {
		t.Errorf("the stream of a directory: %v", err)
	}
	files := c.Files(state.ThreadID())
	if _, err := files.ReaddirFile(ctx, "/none"); events.AsError(err).Code != events.NotFound {
		t.Errorf("an absent directory of files: %v", err)
	}
	if _, err := files.ReadFile(ctx, "/dir"); events.AsError(err).Code != events.IllegalTransition {
		t.Errorf("the content of a directory of files: %v", err)
	}
}

// A definition is not decoded into a type that has none of its fields: every field would be zero.
func TestLoadModel_TypeWithoutItsFields(t *testing.T) {
	t.Parallel()
	ctx, c := t.Context(), connect(t, start(t))
	reply, err := c.Send(ctx, "", events.ApplyDefinitions{Definitions: []events.NewDefinition{
		{Kind: events.ModelKind, Definition: events.JSON(`{"name":"quick","model":"m-1","reactor":"openai"}`)},
	}})
	if err != nil {
		t.Fatal(err)
	}
	c = c.WithMinSeq(reply.Seq)
	type other struct {
		Model string `json:"modelName"`
	}
	if got, err := client.LoadModel[other](ctx, c, "quick"); events.AsError(err).Code != events.InvalidRequest || !strings.Contains(err.Error(), "none of its fields") {
		t.Errorf("a type with other fields: %+v, %v", got, err)
	}
	type some struct {
		Model string `json:"model"`
	}
	if got, err := client.LoadModel[some](ctx, c, "quick"); err != nil || got.Model != "m-1" {
		t.Errorf("a type with one field: %+v, %v", got, err)
	}
	if got, err := client.LoadModel[map[string]any](ctx, c, "quick"); err != nil || got["model"] != "m-1" {
		t.Errorf("a map: %+v, %v", got, err)
	}
}
