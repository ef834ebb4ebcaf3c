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
