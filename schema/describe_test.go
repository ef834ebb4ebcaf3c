package schema

import (
	"strings"
	"testing"

	"github.com/skein-threads/skein/events"
)

// described has a field of each kind that documents and commands have.
type described struct {
	ID     string           `json:"id" schema:"required,pattern=id" doc:"The id."`
	Status events.ItemType  `json:"status,omitzero" doc:"Its type."`
	Any    events.JSON      `json:"any,omitzero" doc:"What it says."`
	Object events.JSON      `json:"object,omitzero" schema:"object" doc:"An object."`
	Names  []string         `json:"names,omitempty" schema:"items=name,maxItems=3" doc:"Names."`
	Notes  []string         `json:"notes,omitempty" doc:"Notes."`
	Number *int64           `json:"number" schema:"required,nullable,minimum=1" doc:"A number."`
	Short  string           `json:"short,omitzero" schema:"maxLength=8" doc:"A text."`
	Size   *int64           `json:"size,omitzero" schema:"minimum=1,maximum=1024" doc:"A size."`
	Inner  *describedInner  `json:"inner,omitzero" doc:"What lies in it."`
	Inners []describedInner `json:"inners,omitempty" schema:"minItems=1" doc:"And more."`
}

type describedInner struct {
	Deep []described `json:"deep,omitempty" doc:"Itself again."`
	Flag bool        `json:"flag,omitzero" doc:"Yes or no."`
}

// TestDescribe: each field in few words, those of records after their own, and a struct
// that holds itself once.
func TestDescribe(t *testing.T) {
	list, err := Describe(described{})
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, d := range list {
		line := d.Name + ": " + d.Type
		if d.Required {
			line += " (required)"
		}
		if d.Holds != nil {
			line += " " + d.Holds.Name()
		}
		lines = append(lines, line+" | "+d.Doc)
	}
	const want = `id: id (required) | The id.
status: one of message, action_execute, action_result, item_reference | Its type.
any: any JSON | What it says.
object: object | An object.
names: list ≤ 3 of name | Names.
notes: list of text | Notes.
number: integer ≥ 1 or null (required) | A number.
short: text ≤ 8 | A text.
size: integer 1-1024 | A size.
inner: object describedInner | What lies in it.
inner.deep: list of object described | Itself again.
inner.flag: boolean | Yes or no.
inners: list ≥ 1 of object describedInner | And more.
inners[].deep: list of object described | Itself again.
inners[].flag: boolean | Yes or no.`
	if got := strings.Join(lines, "\n"); got != want {
		t.Errorf("is\n%s\nwant\n%s", got, want)
	}
	for name, value := range map[string]any{
		"no struct": 1,
		"a rule that does not fit": struct {
			N int64 `json:"n" schema:"maxLength=1"`
		}{},
		"a word that is not known": struct {
			N string `json:"n" schema:"longest=1"`
		}{},
	} {
		if list, err := Describe(value); err == nil {
			t.Errorf("%s is described: %+v", name, list)
		}
	}
}
