package query

import (
	"reflect"
	"testing"

	"github.com/skein-threads/skein/events"
)

// Every query of the catalog is answered, with the document that its row names.
func TestAnswers_EveryQueryIsAnswered(t *testing.T) {
	t.Parallel()
	left := answers()
	for _, row := range events.Queries() {
		of := reflect.TypeOf(row.Example)
		a, ok := left[of]
		if !ok {
			t.Errorf("%s is not answered; add the function that takes %s to answers()", row.Name, of)
			continue
		}
		if want := reflect.TypeOf(row.Answer); a.with != want {
			t.Errorf("%s is answered with %s; its row says %s", row.Name, a.with, want)
		}
		delete(left, of)
	}
	for of := range left {
		t.Errorf("%s is answered, and no query takes it", of)
	}
}
