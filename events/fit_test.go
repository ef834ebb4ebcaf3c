package events

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
)

func spoken(id, role, content string) Item {
	return Item{ID: id, ThreadID: "T-1", Type: Message, Role: Role(role), Content: JSON(content)}
}

// For any conversation, the result fits and includes the newest item.
func TestFit_AnyConversation(t *testing.T) {
	kinds := []func(n, size int) Item{
		func(n, size int) Item {
			return spoken(fmt.Sprint("itm_", n), "user", `[{"type":"input_text","text":"`+strings.Repeat("q", size)+`"}]`)
		},
		func(n, size int) Item {
			return spoken(fmt.Sprint("itm_", n), "assistant", `[{"type":"tool-a","toolCallId":"c","input":{"x":"`+strings.Repeat("i", size/2)+`"},"output":{"y":"`+strings.Repeat("o", size)+`"}},{"type":"output_text","text":"done"}]`)
		},
		func(n, size int) Item {
			return Item{ID: fmt.Sprint("itm_", n), Type: ActionResult, Content: JSON(`{"callId":"c","output":"` + strings.Repeat("r", size) + `"}`)}
		},
		func(n, size int) Item {
			return spoken(fmt.Sprint("itm_", n), "assistant", `[{"type":"acme.own","value":[`+strings.Repeat("1,", size/2)+`1]}]`)
		},
		func(n, _ int) Item { return spoken(fmt.Sprint("itm_", n), "user", `[]`) },
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for round := range 200 {
		var items []Item
		for n := range 1 + rng.IntN(30) {
			items = append(items, kinds[rng.IntN(len(kinds))](n, rng.IntN(20_000)))
		}
		before := slices.Clone(items)
		most := 4096 + rng.IntN(100_000)
		got, omitted := FitItems(items, most)
		total := 0
		for _, i := range got {
			total += jsonSize(i) + 1
			if !jsontext.Value(i.Content).IsValid() {
				t.Fatalf("round %d: item %s is no JSON: %.200s", round, i.ID, i.Content)
			}
		}
		if total > most {
			t.Fatalf("round %d: %d bytes, of at most %d", round, total, most)
		}
		if got[len(got)-1].ID != items[len(items)-1].ID {
			t.Fatalf("round %d: the newest item is gone", round)
		}
		if told := omitted; told != nil && ItemsBytes(items)-ItemsBytes(got) != int(told.Bytes)+told.Items {
			t.Fatalf("round %d: from %d to %d bytes, told %+v", round, ItemsBytes(items), ItemsBytes(got), told)
		}
		if again, _ := FitItems(items, total); ItemsBytes(again) != total || len(again) != len(got) {
			t.Fatalf("round %d: what has %d bytes has %d if it may have as many", round, total, ItemsBytes(again))
		}
		if left := len(items) - len(got); omitted == nil && left != 0 || omitted != nil && omitted.Items != left {
			t.Fatalf("round %d: %d items are gone, told %+v", round, left, omitted)
		}
		for i := range before {
			if string(before[i].Content) != string(items[i].Content) {
				t.Fatalf("round %d: Fit changed what it was given", round)
			}
		}
	}
}

// Results are dropped before messages, and the oldest first.
func TestFit_OldestResultsFirst(t *testing.T) {
	result := func(id string) Item {
		return spoken(id, "assistant", `[{"type":"tool-a","toolCallId":"c","input":{},"output":"`+strings.Repeat("o", 10_000)+`"}]`)
	}
	question := spoken("itm_q", "user", `[{"type":"input_text","text":"`+strings.Repeat("q", 5_000)+`"}]`)
	got, omitted := FitItems([]Item{question, result("itm_1"), result("itm_2")}, 17_000)
	if len(got) != 3 || omitted == nil || omitted.Outputs != 1 || omitted.Items != 0 || omitted.Bytes < 9_000 {
		t.Fatalf("%d items, %+v", len(got), omitted)
	}
	if len(got[0].Content) != len(question.Content) || !strings.Contains(string(got[1].Content), "left out: 10002 bytes") || strings.Contains(string(got[2].Content), "left out") {
		t.Errorf("%.100s\n%.300s\n%.100s", got[0].Content, got[1].Content, got[2].Content)
	}
}

// A value of a kibibyte is replaced if it is an output, or any other if that does not suffice.
func TestFit_SmallestValues(t *testing.T) {
	value := func(size int) string { return `"` + strings.Repeat("v", size-2) + `"` }
	part := func(kind, field string, size int) Item {
		return spoken("itm_1", "assistant", `[{"type":"`+kind+`","`+field+`":`+value(size)+`}]`)
	}
	item := func(typ ItemType, content string) Item {
		return Item{ID: "itm_1", ThreadID: "T-1", Type: typ, Content: JSON(content)}
	}
	for name, c := range map[string]struct {
		item Item
		want string // in the place of the value; empty: it stays
	}{
		"an output":                {part("tool-a", "output", omitBytes), `"output":"left out: 1024 bytes`},
		"a smaller output":         {part("tool-a", "output", omitBytes-1), ""},
		"an input":                 {part("tool-a", "input", omitBytes), `"input":{"omitted":"left out: 1024 bytes`},
		"a smaller input":          {part("tool-a", "input", omitBytes-1), ""},
		"arguments":                {item(ActionExecute, `{"callId":"c","arguments":{"x":`+value(omitBytes)+`}}`), `"arguments":{"omitted":"left out: 1030 bytes`},
		"a text":                   {part("output_text", "text", omitBytes), `"text":"left out: 1024 bytes`},
		"a smaller text":           {part("output_text", "text", omitBytes-1), ""},
		"a result":                 {item(ActionResult, `{"callId":"c","output":`+value(omitBytes)+`}`), `"output":"left out: 1024 bytes`},
		"what repeats an output":   {item(ActionResult, `{"callId":"c","errorText":`+value(omitBytes)+`,"output":`+value(2000)+`}`), `"errorText":"left out: 2000 bytes`},
		"a smaller error's text":   {item(ActionResult, `{"callId":"c","errorText":`+value(omitBytes-1)+`,"output":`+value(2000)+`}`), `"errorText":"vvv`},
		"an output of another":     {part("acme.own", "output", omitBytes), `"output":"left out: 1024 bytes`},
		"a list that is no JSON":   {spoken("itm_1", "assistant", strings.Repeat("[", omitBytes)), ""},
		"a text with a bad letter": {Item{ID: "itm_\xff", ThreadID: "T-1", Type: ActionResult, Content: JSON(`{"callId":"c","output":` + value(omitBytes) + `}`)}, `"output":"left out: 1024 bytes`},
	} {
		got, omitted := FitItems([]Item{c.item}, 1)
		if c.want == "" && (string(got[0].Content) != string(c.item.Content) || omitted.Outputs != 0) || !strings.Contains(string(got[0].Content), c.want) {
			t.Errorf("%s: %.200s, %+v", name, got[0].Content, omitted)
		}
	}
	// What fits is as it was.
	whole := []Item{part("output_text", "text", 4000)}
	if got, omitted := FitItems(whole, ItemsBytes(whole)); omitted != nil || len(got) != 1 {
		t.Errorf("%d items that fit, %+v", len(got), omitted)
	}
	// No more is replaced than has to be, of the parts of one item either, and what it is stays.
	two := spoken("itm_1", "assistant", `[{"output":`+value(4000)+`,"type":"tool-a"},{"output":`+value(4000)+`,"type":"tool-b"}]`)
	one, _ := FitItems([]Item{two}, ItemsBytes([]Item{two})-1)
	if again, omitted := FitItems([]Item{two}, ItemsBytes(one)); omitted.Outputs != 1 || ItemsBytes(again) != ItemsBytes(one) || again[0].Content[0] != '[' {
		t.Errorf("of two outputs %+v: %.300s", omitted, again[0].Content)
	}
	result := item(ActionResult, `{"callId":"c","output":`+value(omitBytes)+`}`)
	if got, _ := FitItems([]Item{result}, 1); got[0].Content[0] != '{' {
		t.Errorf("a result became %.100s", got[0].Content)
	}
	// No more items are dropped than have to be.
	var small []Item
	for range 5 {
		small = append(small, part("output_text", "text", 500))
	}
	if got, omitted := FitItems(small, ItemsBytes(small[:3])); len(got) != 3 || omitted.Items != 2 {
		t.Errorf("%d of five items fit where three do, %+v", len(got), omitted)
	}
	// An output is left out before an older text is, and a newer one stays if that suffices.
	text, output := part("output_text", "text", 4000), part("tool-a", "output", 4000)
	least := part("tool-a", "output", omitBytes)
	if got, _ := FitItems([]Item{text, least}, ItemsBytes([]Item{text, least})-1); len(got) != 2 || len(got[0].Content) != len(text.Content) {
		t.Errorf("%d items: %.100s", len(got), got[0].Content)
	}
	if got, _ := FitItems([]Item{text, output}, 5000); len(got) != 2 || len(got[0].Content) != len(text.Content) {
		t.Errorf("%d items: %.100s", len(got), got[0].Content)
	}
	own := part("acme.own", "output", 4000) // no call's
	if got, _ := FitItems([]Item{own, output}, 5000); len(got) != 2 || len(got[0].Content) != len(own.Content) {
		t.Errorf("%d items: %.100s", len(got), got[0].Content)
	}
}
