package rest

import "testing"

// The state that is sent next is at least of the last version that changed it, however many
// changes came before it was sent.
func TestLatest_HoldsTheLast(t *testing.T) {
	l := make(latest, 1)
	for version := range int64(5) {
		l.note(version)
	}
	if got := <-l; got != 4 {
		t.Errorf("version %d, of 4", got)
	}
	l.note(7)
	if got := <-l; got != 7 || len(l) != 0 {
		t.Errorf("version %d, of 7", got)
	}
}
