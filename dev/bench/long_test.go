package bench

import (
	"bytes"
	"errors"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/skein-threads/skein/events"
)

// A short run measures every operation at each length, and leaves nothing behind.
func TestLong(t *testing.T) {
	var told strings.Builder
	r, err := Long(t.Context(), LongOptions{Events: []int{240, 120}, Times: 2, Dir: t.TempDir(), Log: func(s string) { told.WriteString(s + "\n") }})
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := r.Write(&out); err != nil {
		t.Fatal(err)
	}
	t.Log(told.String() + "\n" + out.String())
	if len(r.Points) != 2 || r.Points[0].Events < 120 || r.Points[1].Events < 240 || r.Points[1].Events <= r.Points[0].Events {
		t.Fatalf("%+v", r.Points)
	}
	for i, want := range []string{
		"append a message", "first page of 50", "a page in the middle", "last page", "first page at half its length", "next page at half its length",
		"first fork in the middle", "next fork in the middle", "audit of the thread", "first command after a restart",
	} {
		for _, p := range r.Points {
			if c := p.Cases[i]; c.Name != want || c.Times == 0 || c.P50Ms <= 0 || c.MaxMs < c.P50Ms || !strings.Contains(out.String(), want) || !strings.Contains(told.String(), c.line()) {
				t.Errorf("%d events: %+v, want %s", p.Events, c, want)
			}
		}
	}
}

// An operation that is refused for good is told from one that is not done in time, and neither ends
// the run.
func TestLong_CasesThatFail(t *testing.T) {
	var told []string
	b := &longBench{o: LongOptions{Log: func(s string) { told = append(told, s) }}}
	if err := errors.Join(
		b.measure("a", 1, func(int) error { return nil }),
		b.measure("b", 1, func(int) error { return events.Errorf(events.Unavailable, "too busy") }),
		b.measure("c", 1, func(int) error { return events.Errorf(events.PayloadTooLarge, "too long") }),
	); err != nil {
		t.Fatal(err)
	}
	if err := b.measure("d", 1, func(int) error { return events.Errorf(events.Forbidden, "never") }); err == nil {
		t.Error("any refusal counts as a measurement")
	}
	var out bytes.Buffer
	if err := (&LongResult{Points: []LongPoint{{Events: 10, Cases: b.cases}}}).Write(&out); err != nil {
		t.Fatal(err)
	}
	for _, form := range []string{`b: not done in \d+ s, the last answer: unavailable: too busy`, `c: refused after \d+ s: payload_too_large: too long`} {
		want := regexp.MustCompile(form).FindString(out.String())
		if want == "" || !strings.Contains(out.String(), "10 events: "+want) || !slices.Contains(told, want) {
			t.Errorf("%q is missing: %v\n%s", form, told, out.String())
		}
	}
	if len(told) != 3 || strings.Count(out.String(), "failed") != 2 {
		t.Errorf("%v\n%s", told, out.String())
	}
}
