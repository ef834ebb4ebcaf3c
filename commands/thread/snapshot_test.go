package thread

import (
	"bytes"
	"errors"
	"runtime"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/skein-threads/skein/events"
)

// A state that was encoded and read decides as the first one does, and is
// encoded to the same bytes.
func TestSnapshot_RoundTrip(t *testing.T) {
	k := begun(t)
	k.do(events.CreateContext{ID: "ctx_a", Key: "a", Content: raw(`{"ü":[1.50,"\u0000"]}`)})
	k.do(events.PutPart{StepID: "stp_1", Idx: to(int64(7))})
	k.do(message("itm_gone", "x"))
	k.do(events.DeleteMessage{ItemID: "itm_gone"})
	bytesOf := encoded(t, k.state)
	read, err := DecodeState(bytesOf)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(bytesOf, encoded(t, read)) {
		t.Errorf("it was read as\n%s, and written as\n%s", encoded(t, read), bytesOf)
	}
	if read.Bytes() != k.state.Bytes() {
		t.Errorf("it takes %d bytes, and took %d", read.Bytes(), k.state.Bytes())
	}
	k.state = read
	k.do(turn()...)
	wantRefusal(t, k.refuse(events.CreateContext{Key: "a"}), events.AlreadyExists, events.ErrorDetails{Entity: "context key", ID: "a"})
	wantRefusal(t, k.refuse(events.DeleteMessage{ItemID: "itm_gone"}), events.NotFound, events.ErrorDetails{Entity: "item", ID: "itm_gone"})
	made := k.do(events.PutPart{StepID: "stp_1", Idx: to(int64(7))})
	if made[0].Type != events.PartUpdatedType {
		t.Errorf("a part that was there is made again: %s", made[0].Type)
	}
}

// The seal is put around a state without reading it again, and is the JSON that the library would
// write. What the buffer had stays.
func TestEncodeTo_IsTheLibrarysEncoding(t *testing.T) {
	k := begun(t)
	k.do(events.CreateContext{ID: "ctx_a", Key: "a", Content: raw(`{"ü":[1.50,"\u0000"]}`)})
	var to bytes.Buffer
	for _, before := range []string{"", "what was there"} {
		to.Reset()
		to.WriteString(before)
		if err := k.state.EncodeTo(&to); err != nil {
			t.Fatal(err)
		}
		got, had := bytes.CutPrefix(to.Bytes(), []byte(before))
		var whole sealed
		if err := json.Unmarshal(got, &whole); err != nil || !had || whole.Form != snapshotVersion || whole.Digest != sealOf(whole.State) {
			t.Fatalf("%q: %v, %s", before, err, to.Bytes())
		}
		want, err := json.Marshal(whole)
		if err != nil || !bytes.Equal(got, want) || !bytes.Equal(got, encoded(t, k.state)) {
			t.Errorf("%q: it is\n%s, not\n%s, %v", before, got, want, err)
		}
	}
}

// A long thread is encoded again and again while it grows: into a buffer with room it takes no
// memory but the list by which items are put in order.
func TestEncodeTo_TakesTheRoomOfItsBuffer(t *testing.T) {
	k := begun(t)
	k.addItems(10_000)
	var to bytes.Buffer
	each := func(encode func()) uint64 {
		const times = 10
		var before, after runtime.MemStats
		encode()
		runtime.ReadMemStats(&before)
		for range times {
			encode()
		}
		runtime.ReadMemStats(&after)
		return (after.TotalAlloc - before.TotalAlloc) / times
	}
	size := uint64(len(encoded(t, k.state)))
	reused := each(func() {
		to.Reset()
		if err := k.state.EncodeTo(&to); err != nil {
			t.Error(err)
		}
	})
	if fresh := each(func() { encoded(t, k.state) }); reused > size || reused > fresh/2 {
		t.Errorf("a state of %d bytes takes %d, and %d without a buffer", size, reused, fresh)
	}
	t.Logf("%d bytes: %d with a buffer", size, reused)
}

// A thread of many items is encoded again and again while it grows: no item costs an allocation.
func TestEncode_AllocatesLittle(t *testing.T) {
	const items = 1000
	k := begun(t)
	k.addItems(items)
	got := testing.AllocsPerRun(10, func() {
		if _, err := k.state.Encode(); err != nil {
			t.Error(err)
		}
	})
	if got > items/10 {
		t.Errorf("%v allocations for %d items", got, items)
	}
}

func TestDecodeState_RefusesDamaged(t *testing.T) {
	k := begun(t)
	good := string(encoded(t, k.state))
	for name, text := range map[string]string{
		"nothing": "", "half": good[:len(good)/2], "other form": strings.Replace(good, `"form":`, `"form":9`, 1),
		"no form": `{}`, "a list": `[]`, "null": `null`, "wrong type": strings.Replace(good, `"version":`, `"version":"x","v":`, 1),
	} {
		if s, err := DecodeState([]byte(text)); err == nil {
			t.Errorf("%s: read as %+v", name, s.head)
		}
	}
}

// A snapshot of form 5, with the one-letter names that it had, is refused whole: read
// by the names of this form, its item would have no context, type or status.
func TestDecodeState_OlderForm(t *testing.T) {
	state := []byte(`{"head":{"version":2,"seq":7,"chain":"c0","time":1,"created":true,"status":"open","nextItem":1},` +
		`"items":{"itm_1":{"c":"ctx_1","t":"message","s":"completed","i":0}},"receipts":{"list":[{"i":"cmd_1","q":7,"t":1}]}}`)
	older, err := json.Marshal(sealed{Form: 5, Digest: sealOf(state), State: state})
	if err != nil {
		t.Fatal(err)
	}
	s, err := DecodeState(older)
	var form *FormError
	if !errors.As(err, &form) || form.Form != 5 {
		t.Errorf("it was read as %+v (%v)", s, err)
	}
}
