package thread

import (
	"reflect"
	"testing"

	"github.com/skein-threads/skein/events"
)

// Every command of the catalog is decided, but for thread.commit, whose parts are.
func TestTable_EveryCommandIsDecided(t *testing.T) {
	table := indexed(decisions())
	for _, row := range events.Commands() {
		of := reflect.TypeOf(row.Example)
		if _, ok := table[of]; !ok && row.Name != "thread.commit" && !row.Unlogged {
			t.Errorf("%s is not decided; add the function that takes %s to decisions()", row.Name, of)
		}
	}
}

func TestTable_RefusesTwoRowsOfOneType(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("two rows of one type were taken")
		}
	}()
	indexed([]decision{decides((*decider).createItem), decides((*decider).createItem)})
}
