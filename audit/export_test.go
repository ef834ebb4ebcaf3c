package audit

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/nats-io/nkeys"

	"github.com/skein-threads/skein/eventlog/assets"
	"github.com/skein-threads/skein/events"
)

const threadTwo = "T-0190a000-0000-7000-8000-000000000002"

// signer makes a key of its own.
func signer(t *testing.T) *Signer {
	t.Helper()
	pair, err := nkeys.CreateUser()
	if err != nil {
		t.Fatal(err)
	}
	seed, err := pair.Seed()
	if err != nil {
		t.Fatal(err)
	}
	s, err := NewSigner(append([]byte("\n"), seed...))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func (h *house) export(o ExportOptions) string {
	h.t.Helper()
	var out bytes.Buffer
	manifest, err := Export(h.ctx, h.log, &out, o)
	if err != nil {
		h.t.Fatal(err)
	}
	if int64(bytes.Count(out.Bytes(), []byte("\n"))) != manifest.Lines+1 {
		h.t.Errorf("%d lines, and the manifest says %d before it", bytes.Count(out.Bytes(), []byte("\n")), manifest.Lines)
	}
	return out.String()
}

func (h *house) importFile(file string, o ReadOptions) (ImportSummary, []Difference, error) {
	h.t.Helper()
	var differ []Difference
	sum, err := Import(h.ctx, h.log, h.validator, strings.NewReader(file), ImportOptions{
		ReadOptions: o, Differs: func(d Difference) { differ = append(differ, d) },
	})
	return sum, differ, err
}

// commits returns the chains of a thread.
func (h *house) chains(id string) []string {
	h.t.Helper()
	var out []string
	for c, err := range h.log.Thread(h.ctx, "acme", id, 1) {
		if err != nil {
			h.t.Fatal(err)
		}
		out = append(out, c.Chain)
	}
	return out
}

func (h *house) end() uint64 {
	h.t.Helper()
	seq, err := h.log.LastSeq(h.ctx)
	if err != nil {
		h.t.Fatal(err)
	}
	return seq
}

// keyed makes a thread that holds a key.
func (h *house) keyed(id, key string) {
	h.t.Helper()
	h.settle(h.do("thread.create", `{"threadId":"`+id+`","data":{"key":"`+key+`"}}`).Seq)
}

// What is exported comes out of another Skein byte for byte, verifies there, and
// shows the same documents; a second import adds nothing.
func TestExportImport(t *testing.T) {
	t.Parallel()
	from, to := newHouse(t), newHouse(t)
	from.fill(threadOne)
	from.keyed(threadTwo, "orders/7")
	key := signer(t)
	file := from.export(ExportOptions{Signer: key, Program: "test"})
	if again := from.export(ExportOptions{Signer: key, Program: "test"}); len(again) != len(file) {
		t.Errorf("two exports of one log: %d and %d bytes", len(file), len(again))
	}

	sum, differ, err := to.importFile(file, ReadOptions{Key: key.Public()})
	if err != nil || len(differ) > 0 || sum.Imported != 3 || sum.Commits != 11 || sum.Key != key.Public() {
		t.Fatalf("%+v, %v, %v", sum, differ, err)
	}
	to.settle(int64(to.end()))
	if found, _ := to.verify(Options{}); len(found) != 0 {
		t.Errorf("after the import: %v", found)
	}
	for _, id := range []string{threadOne, threadTwo, events.KeyAggregate("orders/7")} {
		if a, b := from.chains(id), to.chains(id); len(a) == 0 || strings.Join(a, " ") != strings.Join(b, " ") {
			t.Errorf("%s: %v became %v", id, a, b)
		}
	}
	if reply := to.do("thread.resolve", `{"data":{"key":"orders/7"}}`); reply.ThreadID != threadTwo {
		t.Errorf("the key leads to %s", reply.ThreadID)
	}

	before := to.end()
	sum, differ, err = to.importFile(file, ReadOptions{Tenant: ""})
	if err != nil || len(differ) > 0 || sum.Unchanged != 3 || sum.Commits != 0 || to.end() != before {
		t.Errorf("a second import: %+v, %v, %v", sum, differ, err)
	}
}

// An import continues a thread of which the log has the beginning. It leaves a thread that is
// longer in the log, and reports and leaves one that differs.
func TestImport_IntoAnExistingThread(t *testing.T) {
	t.Parallel()
	from, to := newHouse(t), newHouse(t)
	from.do("thread.create", `{"threadId":"`+threadOne+`"}`)
	early := from.export(ExportOptions{Tenant: "acme"})
	from.do("thread.update", `{"threadId":"`+threadOne+`","data":{"title":"later"}}`)
	late := from.export(ExportOptions{Tenant: "acme"})

	if sum, _, err := to.importFile(early, ReadOptions{Tenant: "acme"}); err != nil || sum.Imported != 1 {
		t.Fatal(sum, err)
	}
	if sum, _, err := to.importFile(late, ReadOptions{Tenant: "acme"}); err != nil || sum.Continued != 1 || sum.Commits != 1 {
		t.Error(sum, err)
	}
	if sum, _, err := to.importFile(early, ReadOptions{Tenant: "acme"}); err != nil || sum.Unchanged != 1 || sum.Commits != 0 {
		t.Error(sum, err)
	}
	to.settle(to.do("thread.update", `{"threadId":"`+threadOne+`","data":{"title":"its own way"}}`).Seq)
	from.do("thread.update", `{"threadId":"`+threadOne+`","data":{"title":"another way"}}`)
	before := to.end()
	sum, differ, err := to.importFile(from.export(ExportOptions{Tenant: "acme"}), ReadOptions{Tenant: "acme"})
	if err != nil || sum.Different != 1 || to.end() != before || len(differ) != 1 || differ[0].Thread != threadOne || differ[0].Seq != before || differ[0].Line != 4 {
		t.Errorf("%+v, %+v, %v", sum, differ, err)
	}
	if found, _ := to.verify(Options{}); len(found) != 0 {
		t.Error(found)
	}
}

// A thread whose key another one holds is left alone, and a thread that was
// purged does not come back.
func TestImportKeysAndPurges(t *testing.T) {
	t.Parallel()
	from, to := newHouse(t), newHouse(t)
	from.keyed(threadOne, "taken")
	from.fill(threadTwo)
	file := from.export(ExportOptions{Tenant: "acme"})
	to.keyed("T-0190a000-0000-7000-8000-000000000009", "taken")
	to.fill(threadTwo)
	last := to.do("thread.delete", `{"threadId":"`+threadTwo+`","data":{"purge":true}}`)
	to.settle(last.Seq)
	to.await("the purge", func() bool { return len(to.chains(threadTwo)) == 1 })

	sum, differ, err := to.importFile(file, ReadOptions{Tenant: "acme"})
	if err != nil || sum.Different != 3 || sum.Commits != 0 || int64(to.end()) != last.Seq {
		t.Fatalf("%+v, %+v, %v", sum, differ, err)
	}
	for _, d := range differ {
		if d.Thread == threadOne && !strings.Contains(d.Detail, `key "taken"`) || d.Thread == threadTwo && d.Detail != "it was purged here" {
			t.Error(d)
		}
	}
	// What is left of a purged thread is exported and imported as it is.
	third := newHouse(t)
	if sum, _, err := third.importFile(to.export(ExportOptions{Tenant: "acme"}), ReadOptions{}); err != nil || sum.Imported != 3 {
		t.Fatal(sum, err)
	}
	third.settle(int64(third.end()))
	if found, _ := third.verify(Options{}); len(found) != 0 {
		t.Error(found)
	}
}

// Some threads can be exported alone, with the claims of their keys.
func TestExportOfOneThread(t *testing.T) {
	t.Parallel()
	from, to := newHouse(t), newHouse(t)
	from.fill(threadOne)
	from.keyed(threadTwo, "orders/7")
	file := from.export(ExportOptions{Tenant: "acme", Threads: []string{threadTwo}})
	if strings.Contains(file, threadOne) {
		t.Error("the file holds another thread")
	}
	if sum, _, err := to.importFile(file, ReadOptions{Tenant: "acme"}); err != nil || sum.Imported != 2 {
		t.Fatal(sum, err)
	}
	to.settle(int64(to.end()))
	if found, _ := to.verify(Options{}); len(found) != 0 {
		t.Error(found)
	}
	_, err := Export(t.Context(), from.log, &bytes.Buffer{}, ExportOptions{Tenant: "acme", Threads: []string{"T-0190a000-0000-7000-8000-00000000dead"}})
	if !errors.Is(err, &events.Error{Code: events.NotFound}) {
		t.Errorf("a thread that is not there: %v", err)
	}
	for _, id := range []string{"*", ">", "a.b", ""} {
		_, err := Export(t.Context(), from.log, &bytes.Buffer{}, ExportOptions{Tenant: "acme", Threads: []string{id}})
		if !errors.Is(err, &events.Error{Code: events.InvalidRequest}) {
			t.Errorf("thread %q: %v", id, err)
		}
	}
}

// A file that is not as it was written is refused with the line at fault, and
// nothing of it is written.
func TestImportRefuses(t *testing.T) {
	t.Parallel()
	from, to := newHouse(t), newHouse(t)
	from.keyed(threadTwo, "orders/7")
	from.fill(threadOne)
	key, other := signer(t), signer(t)
	signed := from.export(ExportOptions{Tenant: "acme", Signer: key})
	resigned := from.export(ExportOptions{Tenant: "acme", Signer: other})
	plain := from.export(ExportOptions{Tenant: "acme"})
	lines := slices.Collect(strings.Lines(signed))
	last := lines[len(lines)-1]
	edit := func(change func(l []string) []string) string {
		return strings.Join(change(append([]string(nil), lines...)), "")
	}
	for name, c := range map[string]struct {
		file string
		o    ReadOptions
		line int64
		want string
	}{
		"nothing":           {"", ReadOptions{}, 1, "cut off"},
		"not an export":     {"{}\n", ReadOptions{}, 1, "first line"},
		"a newer format":    {strings.Replace(signed, `"format":1`, `"format":2`, 1), ReadOptions{}, 1, "format is 2"},
		"cut in a line":     {signed[:len(signed)/2], ReadOptions{}, int64(strings.Count(signed[:len(signed)/2], "\n")) + 1, "cut off"},
		"cut after a line":  {edit(func(l []string) []string { return l[:9] }), ReadOptions{}, 10, "cut off"},
		"no manifest":       {edit(func(l []string) []string { return l[:len(l)-1] }), ReadOptions{}, int64(len(lines)), "cut off"},
		"a letter":          {strings.Replace(signed, "hello", "hullo", 1), ReadOptions{}, 7, "chain"},
		"a header":          {strings.Replace(signed, `"created":"2`, `"created":"3`, 1), ReadOptions{}, int64(len(lines)), "altered"},
		"a line left out":   {edit(func(l []string) []string { return append(l[:7:7], l[8:]...) }), ReadOptions{}, 8, "chain"},
		"an end left out":   {edit(func(l []string) []string { return append(l[:2:2], l[3:]...) }), ReadOptions{}, 3, "end of"},
		"a thread left out": {edit(func(l []string) []string { return append(l[:1:1], l[3:]...) }), ReadOptions{}, int64(len(lines)) - 2, "altered"},
		"a line twice":      {edit(func(l []string) []string { return append(l[:7:7], l[6:]...) }), ReadOptions{}, 8, "reordered"},
		"two lines changed places": {edit(func(l []string) []string {
			l[7], l[8] = l[8], l[7]
			return l
		}), ReadOptions{}, 8, "chain"},
		"threads before keys": {edit(func(l []string) []string { return append(append(l[:1:1], l[3:5]...), l[1:3]...) }), ReadOptions{}, 4, "reordered"},
		"more after it":       {signed + "{}\n", ReadOptions{}, int64(len(lines)), "follows the manifest"},
		"a manifest's count":  {strings.Replace(signed, `"threads":2,"others"`, `"threads":3,"others"`, 1), ReadOptions{}, int64(len(lines)), "counts"},
		"a manifest altered":  {strings.Replace(signed, `{"manifest":{"lines"`, `{"manifest":{ "lines"`, 1), ReadOptions{}, int64(len(lines)), "signature"},
		"another's signature": {edit(func(l []string) []string {
			return append(l[:len(l)-1], strings.Replace(last, key.Public(), other.Public(), 1))
		}), ReadOptions{}, int64(len(lines)), "signature"},
		"no signature": {edit(func(l []string) []string {
			return append(l[:len(l)-1], last[:strings.Index(last, `,"signature"`)]+"}\n")
		}), ReadOptions{}, int64(len(lines)), "signature"},
		"signed by another":    {resigned, ReadOptions{Key: key.Public()}, int64(len(lines)), "is signed by"},
		"signed by nobody":     {plain, ReadOptions{Key: key.Public()}, int64(len(lines)), "not signed"},
		"of another tenant":    {signed, ReadOptions{Tenant: "globex"}, 1, "of tenant"},
		"of all tenants":       {from.export(ExportOptions{}), ReadOptions{Tenant: "acme"}, 1, "all tenants"},
		"an unknown member":    {strings.Replace(signed, `{"seq":1,`, `{"seq":1,"x":1,`, 1), ReadOptions{}, 4, "cannot be read"},
		"a subject for all":    {strings.Replace(signed, threadTwo+`","contentType"`, `*","contentType"`, 1), ReadOptions{}, 4, "not a subject"},
		"only ends of threads": {from.export(ExportOptions{Tenant: "acme", Chains: true}), ReadOptions{}, 1, "nothing to import"},
	} {
		_, _, err := to.importFile(c.file, c.o)
		var refused *FileError
		if !errors.As(err, &refused) || !strings.Contains(refused.Problem, c.want) || refused.Line != c.line {
			t.Errorf("%s: %v, want %q at line %d", name, err, c.want, c.line)
		}
		if seq := to.end(); seq != 0 {
			t.Fatalf("%s: %d commits were written", name, seq)
		}
	}
	if _, _, err := to.importFile(resigned, ReadOptions{Key: other.Public()}); err != nil {
		t.Error(err)
	}
}

// A file whose chains are right and whose events are not is refused: a chain can
// be made by anybody.
func TestImportRefusesWhatVerifyWouldFind(t *testing.T) {
	t.Parallel()
	from, to := newHouse(t), newHouse(t)
	from.fill(threadOne)
	from.forge(threadOne, events.ThreadStatusChangedType, threadOne, events.ThreadStatusChanged{From: "open", To: "closed"})
	_, _, err := to.importFile(from.export(ExportOptions{}), ReadOptions{})
	var refused *FileError
	if !errors.As(err, &refused) || refused.Line != 11 || !strings.Contains(refused.Problem, "transition") || to.end() != 0 {
		t.Error(err)
	}
}

// breaking is a file that cannot be read to its end the second time.
type breaking struct {
	*strings.Reader
	begun, left int
}

func (b *breaking) Seek(offset int64, whence int) (int64, error) {
	if whence == io.SeekStart {
		b.begun++
	}
	return b.Reader.Seek(offset, whence)
}

func (b *breaking) Read(p []byte) (int, error) {
	if b.begun < 2 {
		return b.Reader.Read(p)
	}
	if b.left == 0 {
		return 0, errors.New("the disk is gone")
	}
	n, err := b.Reader.Read(p[:min(len(p), b.left)])
	b.left -= n
	return n, err
}

// An import that was broken off is taken up by running it again.
func TestImportBrokenOff(t *testing.T) {
	t.Parallel()
	from, to := newHouse(t), newHouse(t)
	from.fill(threadOne)
	from.fill(threadTwo)
	file := from.export(ExportOptions{})
	_, err := Import(t.Context(), to.log, to.validator, &breaking{strings.NewReader(file), 0, len(file) * 3 / 4}, ImportOptions{})
	written := int64(to.end())
	if err == nil || !strings.Contains(err.Error(), "the disk is gone") || written == 0 || written == 18 {
		t.Fatal(err, written)
	}
	sum, _, err := to.importFile(file, ReadOptions{})
	if err != nil || sum.Commits != 18-written || sum.Continued+sum.Imported != 1 {
		t.Errorf("%+v after %d, %v", sum, written, err)
	}
	to.settle(int64(to.end()))
	if found, _ := to.verify(Options{}); len(found) != 0 {
		t.Error(found)
	}
}

// A seed that is none is refused without being told.
func TestSignerRefuses(t *testing.T) {
	t.Parallel()
	_, err := NewSigner([]byte("SUAverysecret"))
	if err == nil || strings.Contains(err.Error(), "secret") {
		t.Error(err)
	}
}

// onFirst calls a function before the first write.
type onFirst struct {
	bytes.Buffer
	do func()
}

func (w *onFirst) Write(b []byte) (int, error) {
	if w.do != nil {
		w.do()
		w.do = nil
	}
	return w.Buffer.Write(b)
}

// An export has all of a thread or nothing of it, also if the thread is purged, and
// half erased, while the export is made.
func TestExport_NoHalfOfAThreadThatIsBeingErased(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.fill(threadOne)
	h.fill(threadTwo)
	h.stopRelay() // nothing is erased before the timeline has shown the tombstone
	var first []uint64
	for c, err := range h.log.Thread(h.ctx, "acme", threadTwo, 1) {
		if err != nil {
			t.Fatal(err)
		}
		first = append(first, c.Seq)
	}
	var out onFirst
	out.do = func() { // the export has begun: where it ends is fixed
		h.do("thread.delete", `{"threadId":"`+threadTwo+`","data":{"purge":true}}`)
		if err := h.log.EraseCommits(h.ctx, "acme", threadTwo, first[len(first)/2]); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := Export(h.ctx, h.log, &out, ExportOptions{}); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(out.String(), `"subject":"skein.log.acme.`+threadTwo) || !strings.Contains(out.String(), `"subject":"skein.log.acme.`+threadOne) {
		t.Error("the file has some of the thread that was purged, or nothing of the other")
	}
	if _, err := ReadFile(strings.NewReader(out.String()), h.validator, ReadOptions{}); err != nil {
		t.Error(err)
	}
	// One that was purged before it began is there as its tombstone.
	if got := h.export(ExportOptions{Tenant: "acme", Threads: []string{threadTwo}}); strings.Count(got, `{"seq":`) != 1 || !strings.Contains(got, "lifecycle.deleted") {
		t.Errorf("of a purged thread the file has %s", got)
	}
}

// swapped is a file that is another one when it is read again.
type swapped struct {
	io.ReadSeeker
	then string
	read bool
}

func (s *swapped) Read(into []byte) (int, error) {
	s.read = true
	return s.ReadSeeker.Read(into)
}

func (s *swapped) Seek(offset int64, whence int) (int64, error) {
	if s.read {
		s.ReadSeeker = strings.NewReader(s.then)
	}
	return s.ReadSeeker.Seek(offset, whence)
}

// A file that is changed between its check and its import is told, also where each of
// the two is right.
func TestImport_FileChangedMeanwhile(t *testing.T) {
	t.Parallel()
	from, to := newHouse(t), newHouse(t)
	from.fill(threadOne)
	checked := from.export(ExportOptions{Tenant: "acme"})
	from.fill(threadTwo)
	later := from.export(ExportOptions{Tenant: "acme"})
	_, err := Import(t.Context(), to.log, to.validator, &swapped{ReadSeeker: strings.NewReader(checked), then: later}, ImportOptions{})
	var refused *FileError
	if !errors.As(err, &refused) || !strings.Contains(refused.Problem, "changed while it was imported") {
		t.Errorf("%v", err)
	}
}

// A commit of any client holds a large value once. The audit reads it whole, and an export has
// it in another log byte for byte.
func TestVerify_SharedValues(t *testing.T) {
	t.Parallel()
	from, to := newHouse(t), newHouse(t)
	from.fill(threadOne)
	output := strings.Repeat("x", 50<<10)
	part := `{"type":"tool-f","toolCallId":"c1","state":"output-available","input":{},"output":"` + output + `"}`
	reply := from.do("thread.commit", `{"threadId":"`+threadOne+`","data":{"commands":[
		{"command":"execution.create","data":{"id":"exe_2","triggerItemId":"itm_u1","reactionItemId":"itm_a2"}},
		{"command":"step.create","data":{"id":"stp_2","executionId":"exe_2"}},
		{"command":"item.create","data":{"item":{"id":"itm_a2","type":"message","role":"assistant","content":[]}}},
		{"command":"item.create","data":{"item":{"id":"itm_r2","type":"action_result","content":{"callId":"c1","output":"`+output+`"}}}},
		{"command":"part.put","data":{"stepId":"stp_2","idx":0,"type":"tool-f","part":`+part+`}},
		{"command":"message.edit","data":{"itemId":"itm_a2","content":[`+part+`]}},
		{"command":"step.status","data":{"stepId":"stp_2","to":"completed","toolExecutionResults":[{"callId":"c1","output":"`+output+`"}]}}]}}`)
	from.settle(reply.Seq)
	stored := from.raw(uint64(reply.Seq))
	if n := bytes.Count(stored, []byte(output)); n != 1 {
		t.Errorf("the log holds the output %d times", n)
	}
	if found, _ := from.verify(Options{}); len(found) != 0 {
		t.Errorf("%v", found)
	}
	if _, differ, err := to.importFile(from.export(ExportOptions{}), ReadOptions{}); err != nil || len(differ) > 0 {
		t.Fatalf("%v, %v", differ, err)
	}
	to.settle(int64(to.end()))
	if got := to.raw(to.end()); !bytes.Equal(got, stored) {
		t.Errorf("the other log holds %d bytes, not %d", len(got), len(stored))
	}
	if found, _ := to.verify(Options{}); len(found) != 0 {
		t.Errorf("after the import: %v", found)
	}
}

// raw returns the body of a commit as the log has it.
func (h *house) raw(seq uint64) []byte {
	h.t.Helper()
	m, err := h.stream(h.log.Config().Names.Stream(assets.LogStream)).GetMsg(h.ctx, seq)
	if err != nil {
		h.t.Fatal(err)
	}
	return m.Data
}
