package commands

import (
	"errors"
	"strings"
	"testing"

	"github.com/skein-threads/skein/events"
)

// Once the store takes no write, every command is refused, also one that would write nothing, such
// as the repeat of one that was done or one about no thread. What is malformed stays so.
func TestDispatcher_OutageRefusesEveryCommand(t *testing.T) {
	t.Parallel()
	w := newWorld(t, Config{})
	id := create(t, w.d)
	rename := `{"commandId":"c-1","threadId":"` + id + `","data":{"title":"x"}}`
	if _, err := ask(t, w.d, "thread.update", rename); err != nil {
		t.Fatal(err)
	}
	w.log.Config().Outage.Begin(errors.New("write /secret/store/1.blk: no space left on device"))
	for name, body := range map[string]string{
		"a repeat":  rename,
		"no thread": `{"threadId":"T-01a2199f-6e89-75fa-a230-4b1e7813e51b","data":{"title":"x"}}`,
		"a write":   `{"threadId":"` + id + `","data":{"title":"y"}}`,
	} {
		e := refused(t, w.d, events.Unavailable, "thread.update", body)
		if !strings.Contains(e.Message, "the store takes no writes") || strings.Contains(e.Message, "secret") {
			t.Errorf("%s: %v", name, e)
		}
	}
	refused(t, w.d, events.InvalidRequest, "thread.update", `{"threadId":"`+id+`","data":{"title":7}}`)
}
