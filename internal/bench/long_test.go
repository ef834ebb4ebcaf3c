package bench

import (
	"bytes"
	"strings"
	"testing"
)

// A short run measures every operation at each length, and leaves nothing behind.
func TestLong(t *testing.T) {
	r, err := Long(t.Context(), LongOptions{Events: []int{240, 120}, Times: 2, Dir: t.TempDir(), Log: func(s string) { t.Log(s) }})
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := r.Write(&out); err != nil {
		t.Fatal(err)
	}
	t.Log("\n" + out.String())
	if len(r.Points) != 2 || r.Points[0].Events < 120 || r.Points[1].Events < 240 || r.Points[1].Events <= r.Points[0].Events {
		t.Fatalf("%+v", r.Points)
	}
	for i, want := range []string{
		"append a message", "first page of 50", "a page in the middle", "last page", "last page at half its length",
		"first fork in the middle", "next fork in the middle", "audit of the thread", "first command after a restart",
	} {
		for _, p := range r.Points {
			if c := p.Cases[i]; c.Name != want || c.Times == 0 || c.P50Ms <= 0 || c.MaxMs < c.P50Ms || !strings.Contains(out.String(), want) {
				t.Errorf("%d events: %+v, want %s", p.Events, c, want)
			}
		}
	}
}

// An operation that a client has no answer to within its timeout is said to have none.
func TestLongResult_NoAnswer(t *testing.T) {
	r := &LongResult{Points: []LongPoint{{Events: 10, Cases: []ThreadsCase{{Name: "a", Times: 1, P50Ms: 2, MaxMs: 3, ProcessorMs: 1}}}, {Events: 20, Cases: []ThreadsCase{{Name: "a"}}}}}
	var out bytes.Buffer
	if err := r.Write(&out); err != nil || !strings.Contains(out.String(), "2.00 (3.00; 1.00)  no answer") {
		t.Errorf("%v\n%s", err, out.String())
	}
}
