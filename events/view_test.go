package events

import (
	"reflect"
	"strings"
	"testing"
)

// An edit changes the fields that it names, and no others.
func TestItem_Edit(t *testing.T) {
	message := Item{Type: Message, Content: raw(`[{"type":"x"}]`), Metadata: raw(`{"a":1,"b":2}`)}
	result := Item{Type: ActionResult, Content: raw(`{"callId":"c","output":1,"name":"n"}`)}
	with := func(i Item, change func(*Item)) Item {
		change(&i)
		return i
	}
	for name, c := range map[string]struct {
		item Item
		edit MessageEdited
		want Item
	}{
		"nothing":                     {message, MessageEdited{}, message},
		"content":                     {message, MessageEdited{Content: raw(`[]`)}, with(message, func(i *Item) { i.Content, i.Edited = raw(`[]`), true })},
		"parts":                       {message, MessageEdited{Parts: []PlacedPart{{Place: 1, Part: raw(`2`)}}}, with(message, func(i *Item) { i.Content = raw(`[{"type":"x"},2]`) })},
		"metadata":                    {message, MessageEdited{Metadata: raw(`{"b":3,"c":null}`)}, with(message, func(i *Item) { i.Metadata = raw(`{"a":1,"b":3,"c":null}`) })},
		"metadata of none":            {result, MessageEdited{Metadata: raw(`{"b":3}`)}, with(result, func(i *Item) { i.Metadata = raw(`{"b":3}`) })},
		"metadata that is no object":  {message, MessageEdited{Metadata: raw(`7`)}, message},
		"metadata of what is none":    {with(message, func(i *Item) { i.Metadata = raw(`7`) }), MessageEdited{Metadata: raw(`{"b":3}`)}, with(message, func(i *Item) { i.Metadata = raw(`{"b":3}`) })},
		"silent":                      {message, MessageEdited{Silent: to(true)}, with(message, func(i *Item) { i.Silent = true })},
		"failed":                      {message, MessageEdited{Failed: to(true)}, with(message, func(i *Item) { i.Failed = true })},
		"not silent":                  {with(message, func(i *Item) { i.Silent, i.Failed = true, true }), MessageEdited{Silent: to(false), Failed: to(false)}, message},
		"an output":                   {result, MessageEdited{Output: raw(`"y"`)}, with(result, func(i *Item) { i.Content, i.Edited = raw(`{"callId":"c","output":"y","name":"n"}`), true })},
		"an outcome":                  {result, MessageEdited{IsError: to(true)}, with(result, func(i *Item) { i.Content = raw(`{"callId":"c","output":1,"isError":true,"name":"n"}`) })},
		"an output of a message":      {message, MessageEdited{Output: raw(`"y"`), IsError: to(true)}, message},
		"an output of broken content": {with(result, func(i *Item) { i.Content = raw(`[]`) }), MessageEdited{Output: raw(`1`)}, with(result, func(i *Item) { i.Content = raw(`[]`) })},
	} {
		got := c.item
		got.Edit(c.edit)
		if !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s:\n%+v, want\n%+v", name, got, c.want)
		}
	}
}

func TestPlaceParts(t *testing.T) {
	at := func(place int64, part string) PlacedPart { return PlacedPart{Place: place, Part: raw(part)} }
	for _, c := range []struct {
		content string
		parts   []PlacedPart
		want    string
	}{
		{``, nil, `[]`}, {`[]`, nil, `[]`}, {`[1,2]`, nil, `[1,2]`},
		{``, []PlacedPart{at(0, `1`)}, `[1]`}, {`[1]`, []PlacedPart{at(0, `2`)}, `[2]`}, {`[1]`, []PlacedPart{at(1, `2`)}, `[1,2]`},
		{`[1,2]`, []PlacedPart{at(1, `3`), at(9, `4`), at(2, `5`)}, `[1,3,5]`}, {`{"a":1}`, []PlacedPart{at(3, `1`)}, `[1]`}, {`"x"`, nil, `[]`},
	} {
		got := PlaceParts(raw(c.content), c.parts)
		if string(got) != c.want {
			t.Errorf("%s with %+v is %s, want %s", c.content, c.parts, got, c.want)
		}
		if len(got) > cap(got) || cap(got) > len(got)+16 {
			t.Errorf("%d bytes take %d", len(got), cap(got))
		}
	}
}

func TestLogOf(t *testing.T) {
	id := func(s string) *string { return &s }
	for name, c := range map[string]struct {
		trace TraceEvent
		want  *Log
	}{
		"a span":     {TraceEvent{Kind: string(TraceSpanKind)}, nil},
		"a line":     {TraceEvent{ID: "i", Kind: "log", Text: "x", AtMicros: 7}, &Log{ID: "i", Level: LogInfo, Message: "x", Data: raw(`null`), CreatedAt: 7}},
		"a full one": {TraceEvent{Kind: "log", Level: "warn", Data: raw(`1`), RunID: "r", SpanID: "s"}, &Log{Level: LogWarn, Data: raw(`1`), FlowID: id("r"), Step: id("s")}},
	} {
		if got := LogOf(&c.trace); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

func TestFileRecords(t *testing.T) {
	for size, chunks := range map[int64]int64{0: 1, 1: 1, FileChunkBytes - 1: 1, FileChunkBytes: 1, FileChunkBytes + 1: 2, 3 * FileChunkBytes: 3} {
		if got := (&FileRecord{ThreadFile: ThreadFile{Size: size}}).Chunks(); got != chunks {
			t.Errorf("%d bytes come in %d chunks, not %d", size, got, chunks)
		}
	}
	for _, c := range []struct {
		file FileRecord
		has  bool
	}{{FileRecord{}, true}, {FileRecord{ThreadFile: ThreadFile{IsDirectory: true}}, false}, {FileRecord{External: true}, false}} {
		if c.file.HasContent() != c.has {
			t.Errorf("%+v has content: %v", c.file, !c.has)
		}
	}
	d := FileWritten{Path: "/a/b.txt", Digest: "dd", Size: 3, MimeType: "text/plain", Width: 1, Height: 2, Metadata: raw(`{}`)}
	want := FileRecord{ThreadFile: ThreadFile{
		Path: "/a/b.txt", Name: "b.txt", MimeType: "text/plain", Storage: "sha256:dd", Size: 3, Metadata: raw(`{}`), Width: 1, Height: 2,
		CreatedAt: 9, UpdatedAt: 9,
	}, ThreadID: "T-1", Digest: "dd"}
	if got := d.Record("T-1", 9); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
	d.Since, d.External = 4, "s3://x"
	want.CreatedAt, want.External, want.Storage, want.Digest = 4, true, "s3://x", ""
	if got := d.Record("T-1", 9); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}

func TestScheduledEffect_Pending(t *testing.T) {
	for _, c := range []struct {
		effect            ScheduledEffect
		repeated, pending bool
	}{
		{ScheduledEffect{}, false, true}, {ScheduledEffect{Running: true}, false, false}, {ScheduledEffect{EveryMs: 1, Running: true}, true, true},
		{ScheduledEffect{Cron: "@hourly", Running: true}, true, true}, {ScheduledEffect{EveryMs: 1, Running: true, Ending: true}, true, false}, {ScheduledEffect{Ending: true}, false, false},
	} {
		if c.effect.Repeated() != c.repeated || c.effect.Pending() != c.pending {
			t.Errorf("%+v: repeated %v, pending %v", c.effect, c.effect.Repeated(), c.effect.Pending())
		}
	}
}

func TestUsageAndOmitted_Add(t *testing.T) {
	a := Usage{Model: "a", InputTokens: 1, CachedTokens: 2, OutputTokens: 3, ReasoningTokens: 4, TotalTokens: 5, LatencyMs: 6}
	b := Usage{Model: "b", InputTokens: 10, CachedTokens: 20, OutputTokens: 30, ReasoningTokens: 40, TotalTokens: 50, LatencyMs: 60}
	if got := a.Add(b); got != (Usage{Model: "b", InputTokens: 11, CachedTokens: 22, OutputTokens: 33, ReasoningTokens: 44, TotalTokens: 55, LatencyMs: 66}) {
		t.Errorf("%+v", got)
	}
	o, before := &Omitted{Outputs: 1, Items: 2, Bytes: 3}, &Omitted{Outputs: 10, Items: 20, Bytes: 30}
	if got := o.And(before); *got != (Omitted{Outputs: 11, Items: 22, Bytes: 33}) {
		t.Errorf("%+v", got)
	}
	if o.And(nil) != o || (*Omitted)(nil).And(before) != before || (*Omitted)(nil).And(nil) != nil {
		t.Error("what is not there is added")
	}
	if SideA.Other() != SideB || SideB.Other() != SideA {
		t.Error("a side is its own other")
	}
}

// How a run ended, as the data of its last chunk.
func TestFinishOf_Reasons(t *testing.T) {
	if got := FinishOf(ExecutionFailed, "no"); got != (Finish{Reason: FinishError, ErrorText: "no"}) {
		t.Errorf("%+v", got)
	}
	if got := FinishOf(ExecutionCompleted, "no"); got != (Finish{Reason: FinishStop}) {
		t.Errorf("%+v", got)
	}
	for _, word := range []string{"stop", "error", "length", "content-filter", "tool-calls"} {
		if FinishReason(word) != word {
			t.Errorf("%s is %s", word, FinishReason(word))
		}
	}
	for _, word := range []string{"", "end_turn", "other"} {
		if FinishReason(word) != FinishOther {
			t.Errorf("%s is %s", word, FinishReason(word))
		}
	}
}

func TestDefinitions_DefaultsAndDocuments(t *testing.T) {
	if got := (ModelDefinition{}).WithDefaults().Reactor; got != DefaultReactor {
		t.Errorf("a model's reactor is %q", got)
	}
	if got := (ModelDefinition{Reactor: "r"}).WithDefaults().Reactor; got != "r" {
		t.Errorf("a model's reactor is %q", got)
	}
	value, err := DecodeDefinition(ToolKind, raw(`{"name":"t","description":"x","type":"go"}`))
	if d, ok := value.(ToolDefinition); err != nil || !ok || d.Name != "t" || DefinitionName(d) != "t" {
		t.Errorf("%+v, %v", value, err)
	}
	if _, err := DecodeDefinition("wish", raw(`{}`)); err == nil {
		t.Error("there is a kind of definition that is called wish")
	}
	canonical, err := EncodeDefinition(ToolDefinition{Name: "t", Description: "x", Type: GoTool, Parameters: raw(`{"b":1,"a":2}`)})
	if err != nil || string(canonical) != `{"description":"x","name":"t","parameters":{"a":2,"b":1},"type":"go"}` {
		t.Errorf("%s, %v", canonical, err)
	}
	if _, err := EncodeDefinition(ToolDefinition{Parameters: raw(`{`)}); err == nil {
		t.Error("a definition that is no JSON was written")
	}
	changed := DefinitionChanged{Kind: ToolKind, Name: "t", Version: 2, Definition: canonical}
	doc := changed.Document(0, 7)
	if doc == nil || doc.Digest != DefinitionDigest(canonical) || doc.Seq != 7 || doc.Version != 2 || doc.Name != "t" {
		t.Errorf("%+v", doc)
	}
	changed.Digest = "d"
	if got := changed.Document(0, 7).Digest; got != "d" {
		t.Errorf("the digest is %s", got)
	}
	changed.Definition = nil
	if changed.Document(0, 7) != nil {
		t.Error("what was removed has a document")
	}
}

// Whether another step follows: as the loop says, and never after a tool that ends it.
func TestAgentLoop_Goes(t *testing.T) {
	for _, c := range []struct {
		loop  AgentLoop
		calls string
		goes  bool
	}{
		{AgentLoop{}, "", false}, {AgentLoop{}, "a", true}, {AgentLoop{Continue: ContinueAfterCalls}, "a", true},
		{AgentLoop{Continue: ContinueAlways}, "", true}, {AgentLoop{Continue: ContinueNever}, "a", false},
		{AgentLoop{StopAfter: []string{"z", "a"}}, "b a", false}, {AgentLoop{Continue: ContinueAlways, StopAfter: []string{"a"}}, "a", false},
		{AgentLoop{Continue: ContinueAlways, StopAfter: []string{"a"}}, "b", true},
	} {
		if got := c.loop.Goes(strings.Fields(c.calls)); got != c.goes {
			t.Errorf("%+v after %q goes on: %v", c.loop, c.calls, got)
		}
	}
}

// The tools of a whole server that a definition covers.
func TestToolServer_Takes(t *testing.T) {
	for _, c := range []struct {
		include, exclude, name string
		takes                  bool
	}{
		{"", "", "find", false}, {"find", "", "find", true}, {"find", "", "finder", false}, {"*", "", "find", true}, {"*", "", "", true},
		{"fi*", "", "find", true}, {"fi*", "", "fi", true}, {"fi*", "", "f", false}, {"*nd", "", "find", true}, {"*nd", "", "finder", false},
		{"f*d", "", "find", true}, {"f*d", "", "fd", true}, {"f*d", "", "fin", false}, {"a*b*c", "", "aXbYc", true}, {"a*b*c", "", "abc", true}, {"a*b*c", "", "acb", false},
		{"a*b*b", "", "ab", false}, {"aa*aa", "", "aaa", false}, {"a*", "ab*", "abc", false}, {"a*", "ab*", "acb", true}, {"x a*", "", "abc", true}, {"**", "", "x", true},
	} {
		s := ToolServer{Include: strings.Fields(c.include), Exclude: strings.Fields(c.exclude)}
		if got := s.Takes(c.name); got != c.takes {
			t.Errorf("%q without %q takes %q: %v", c.include, c.exclude, c.name, got)
		}
		if s.Whole() != (c.include != "") {
			t.Errorf("%q is of a whole server: %v", c.include, s.Whole())
		}
	}
}

// Each Enum lists all constants of its type, each once, for the schemas.
func TestEnum_ListsEveryConstant(t *testing.T) {
	for _, list := range []interface{ Enum() []string }{
		ApprovalReason(""), AgentType(""), Continuation(""), ToolType(""), DefinitionKind(""), LogLevel(""), Settlement(""), TraceKind(""), WorkerKind(""),
		RelationshipKind(""), RelationshipRole(""), ThreadStatus(""), ContextStatus(""), ExecutionStatus(""), StepStatus(""), ItemStatus(""), Policy(""), Order(""), DefinitionOutcome(""),
	} {
		seen := map[string]bool{}
		for _, word := range list.Enum() {
			if word == "" || seen[word] {
				t.Errorf("%T lists %q", list, word)
			}
			seen[word] = true
		}
		if len(seen) < 2 {
			t.Errorf("%T lists %d words", list, len(seen))
		}
	}
}
