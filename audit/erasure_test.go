package audit

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/s2"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"

	"github.com/skein-threads/skein/commands"
	"github.com/skein-threads/skein/commands/thread"
	"github.com/skein-threads/skein/eventlog"
	"github.com/skein-threads/skein/eventlog/chunks"
	"github.com/skein-threads/skein/eventlog/queues"
	"github.com/skein-threads/skein/eventlog/timeline"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/files"
	"github.com/skein-threads/skein/internal/natstest"
	"github.com/skein-threads/skein/projections"
	"github.com/skein-threads/skein/projections/rebuild"
	"github.com/skein-threads/skein/schema"
)

// erasing is a house with all that a purge must reach, on a folder that is known.
func erasing(t *testing.T) (*house, string) {
	t.Helper()
	dir := t.TempDir()
	log, err := eventlog.Open(natstest.Connect(t, natstest.Start(t, natstest.StoreDir(dir))), eventlog.Config{Patience: natstest.Patience}, zerolog.Nop(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(log.Close)
	h := &house{t: t, ctx: t.Context(), log: log}
	if err := log.Ensure(h.ctx); err != nil {
		t.Fatal(err)
	}
	if h.validator, err = schema.New(); err != nil {
		t.Fatal(err)
	}
	contents, err := files.Open(h.ctx, log)
	if err != nil {
		t.Fatal(err)
	}
	h.dispatch = commands.NewDispatcher(log, h.validator, commands.Config{Contents: contents, SnapshotEvery: 20}, zerolog.New(zerolog.NewTestWriter(t)).Level(zerolog.WarnLevel), nil)
	later := func() time.Time { return time.Now().Add(time.Hour) }
	h.runner = projections.New(log, projections.Config{Contents: files.NewEraser(contents, log, later)},
		zerolog.New(zerolog.NewTestWriter(t)).Level(zerolog.WarnLevel), nil)
	if err := h.runner.Ensure(h.ctx); err != nil {
		t.Fatal(err)
	}
	h.background(h.runner.Run)
	h.background(timeline.Of(h.log).Relay)
	return h, dir
}

// found returns the files below a folder that contain a text, in the clear, in a compressed
// block of the server, or in an archive.
func found(t *testing.T, dir, text string) []string {
	t.Helper()
	needles := [][]byte{[]byte(text), []byte(base64.StdEncoding.EncodeToString([]byte(text)))[:20]}
	var in []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return nil // the server has just removed it
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			return nil
		}
		views := append(unpacked(raw), raw)
		for _, view := range views {
			for _, needle := range needles {
				if bytes.Contains(view, needle) {
					name, _ := filepath.Rel(dir, path)
					in = append(in, name)
					return nil
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return in
}

// unpacked returns the contents of the compressed streams in a file: the server's blocks and
// archives, even if nested. Data after a stream is not one, so an error only ends it.
func unpacked(raw []byte) (views [][]byte) {
	magic := []byte("\xff\x06\x00\x00S2sTwO")
	for {
		at := bytes.Index(raw, magic)
		if at < 0 {
			return views
		}
		plain, _ := io.ReadAll(s2.NewReader(bytes.NewReader(raw[at:])))
		views = append(append(views, plain), unpacked(plain)...)
		raw = raw[at+len(magic):]
	}
}

// fillAll writes a text wherever a thread can hold one.
func (h *house) fillAll(id, text string) {
	h.t.Helper()
	in := func(data string) string { return fmt.Sprintf(`{"threadId":%q,"data":%s}`, id, data) }
	h.do("thread.create", in(fmt.Sprintf(`{"title":%[1]q,"context":{"a":%[1]q},"metadata":{"m":%[1]q}}`, text)))
	for n := range 15 { // over several snapshots, each in place of the one before
		h.do("item.create", in(fmt.Sprintf(`{"item":{"id":"itm_u%[2]d","type":"message","role":"user","content":[{"type":"input_text","text":"%[1]s %[2]d"}]}}`, text, n)))
		h.do("context.set", in(fmt.Sprintf(`{"content":{"a":"%s %d"}}`, text, n)))
		h.do("message.edit", in(fmt.Sprintf(`{"itemId":"itm_u%[2]d","content":[{"type":"input_text","text":"%[1]s edited"}]}`, text, n)))
	}
	h.do("state.merge", in(fmt.Sprintf(`{"operations":[{"op":"set","key":"k","value":%[1]q},{"op":"push","key":%[1]q,"value":1}]}`, text)))
	h.do("file.write", in(fmt.Sprintf(`{"path":"/f","content":%q}`, base64.StdEncoding.EncodeToString([]byte("file "+text)))))
	h.do("file.write", in(fmt.Sprintf(`{"path":"/f","content":%q}`, base64.StdEncoding.EncodeToString([]byte("again "+text)))))
	h.do("effect.schedule", in(fmt.Sprintf(`{"name":"remind","args":{"a":%q},"delayMs":3600000}`, text)))
	if err := queues.TimersOf(h.log).Put(h.ctx, queues.Timer{Tenant: "acme", Thread: id, ID: "e1", At: time.Now().Add(time.Hour), Data: []byte(text)}); err != nil {
		h.t.Fatal(err)
	}
	h.do("thread.react", in(fmt.Sprintf(`{"text":%q,"agentId":"triage"}`, text)))
	var run string
	if err := h.dispatch.Look(h.ctx, "acme", id, func(s *thread.State) { run = s.Active() }); err != nil {
		h.t.Fatal(err)
	}
	if err := queues.RunsOf(h.log).Put("acme", id, 1, run, text); err != nil {
		h.t.Fatal(err)
	}
	w, err := chunks.NewWriter(h.log, chunks.Run{Tenant: "acme", Thread: id, Execution: run, Token: 1, Version: 1})
	if err == nil {
		err = w.Emit(h.ctx, "stp_1", "data-note", fmt.Appendf(nil, "{\"t\":%q}", text))
	}
	if err == nil {
		err = w.Finish(h.ctx, events.Finish{Reason: events.FinishStop})
	}
	if err != nil {
		h.t.Fatal(err)
	}
}

// What a purged thread held is nowhere in the files of the server: streams and stores are
// overwritten at once, and read models once they are rewritten. Another thread keeps all of
// its own, and the audit accepts the tombstone (C-6, AM-86).
func TestPurgedContentIsNowhereOnDisk(t *testing.T) {
	if raceDetector {
		t.Skip("the server rewrites blocks of 8 MB: make test-long runs it")
	}
	t.Parallel()
	h, dir := erasing(t)
	const gone, kept = "marker-7f3a9c51e0b24d68-gone", "marker-2b8e4d07c6f19a35-kept"
	one, two := threadOne, strings.Replace(threadOne, "0001", "0002", 1)
	h.fillAll(two, kept)
	h.fillAll(one, gone)
	// A long one, of which a fork has taken the beginning alone.
	three := strings.Replace(threadOne, "0001", "0003", 1)
	h.do("thread.create", fmt.Sprintf(`{"threadId":%q,"data":{}}`, three))
	for n := range 14 {
		text := gone + strings.Repeat(" x", 30<<10)
		if n == 0 {
			text = "the beginning"
		}
		h.do("item.create", fmt.Sprintf(`{"threadId":%q,"data":{"item":{"type":"message","role":"user","content":[{"type":"input_text","text":%q}]}}}`, three, text))
	}
	pages := h.held("OBJ_thread_files", "$O.thread_files.M.*")
	h.do("thread.fork", fmt.Sprintf(`{"threadId":%q,"data":{"messageIndex":0}}`, three))
	if h.held("OBJ_thread_files", "$O.thread_files.M.*") <= pages {
		t.Error("the fork has made no pages")
	}
	// One that was submitted and done, one that waits.
	submit := func(text string) uint64 {
		t.Helper()
		body := fmt.Sprintf(`{"threadId":%q,"data":{"title":%q}}`, one, text)
		ack, err := h.log.JetStream().PublishMsg(h.ctx, &nats.Msg{Subject: "skein.submit.acme.thread.update", Data: []byte(body)})
		if err != nil {
			t.Fatal(err)
		}
		return ack.Sequence
	}
	submit(gone + " submitted")
	stop := h.background(h.dispatch.Submitted)
	h.until("the submitted command is not done", func() bool { return h.held("SKEIN_COMMANDS", "skein.submit.>") == 0 })
	stop()
	submit(gone + " waits")
	// So much that the server ends the log's first block, and compresses it.
	for n := range 24 {
		h.do("item.create", fmt.Sprintf(`{"threadId":%q,"data":{"item":{"type":"message","role":"user","content":[{"type":"input_text","text":%q}]}}}`, two, noise(n)))
	}
	last := h.do("thread.update", fmt.Sprintf(`{"threadId":%q,"data":{"title":%q}}`, two, kept))
	h.settle(last.Seq)
	block := filepath.Join(dir, "jetstream", "$G", "streams", "SKEIN_LOG", "msgs", "1.blk")
	h.until("the log's first block is not compressed", func() bool {
		raw, err := os.ReadFile(block)
		return err == nil && bytes.HasPrefix(raw, []byte("cmp"))
	})
	if raw, err := os.ReadFile(block); err != nil || !bytes.Contains(bytes.Join(unpacked(raw), nil), []byte("skein.log.acme."+two)) {
		t.Errorf("the search does not look into a compressed block (%v)", err)
	}
	h.until("the thread has no snapshot", func() bool {
		h.do("thread.update", fmt.Sprintf(`{"threadId":%q,"data":{"title":%q}}`, one, gone)) // it is tried with every command
		raw, err := eventlog.SnapshotsOn(h.log.Streams()).Load(h.ctx, "acme", one)
		return err == nil && raw != nil
	})
	for _, stream := range []string{
		"SKEIN_LOG", "SKEIN_TIMELINE", "SKEIN_CHUNKS", "SKEIN_COMMANDS", "SKEIN_RUNS", "SKEIN_TIMERS", "OBJ_thread_files", "KV_thread_items",
		"KV_thread_contexts", "KV_thread_threads", "KV_thread_effects", "OBJ_thread_snapshots",
	} {
		// A snapshot that another one replaces is erased first, and the server writes when it can.
		h.until("the text is not in "+stream+", so that this test shows nothing of it", func() bool {
			return strings.Contains(strings.Join(found(t, dir, gone), " "), stream)
		})
	}
	h.do("thread.delete", fmt.Sprintf(`{"threadId":%q,"data":{"purge":true}}`, three))
	end := h.do("thread.delete", fmt.Sprintf(`{"threadId":%q,"data":{"purge":true}}`, one))
	h.settle(end.Seq)
	h.until("the purge is not finished", func() bool { return h.held("KV_thread_threads", "$KV.thread_threads._.deletion.>") == 0 })
	for _, name := range found(t, dir, gone) {
		if !strings.Contains(name, "KV_") {
			t.Errorf("after the purge the text is in %s", name)
		}
	}
	if _, err := rebuild.Progress(nil).Rewrite(h.ctx, h.log); err != nil {
		t.Fatal(err)
	}
	h.until("after the rewriting the text is there", func() bool {
		return len(found(t, dir, gone)) == 0
	})
	if raw, err := os.ReadFile(block); err != nil || !bytes.HasPrefix(raw, []byte("cmp")) {
		t.Errorf("the block with the erased commits is not there: %v", err)
	}
	after := strings.Join(found(t, dir, kept), " ")
	for _, stream := range []string{"SKEIN_LOG", "SKEIN_TIMELINE", "OBJ_thread_files", "KV_thread_items", "KV_thread_threads"} {
		if !strings.Contains(after, stream) {
			t.Errorf("the other thread's text is not in %s", stream)
		}
	}
	h.settle(end.Seq)
	if findings, summary := h.verify(Options{}); len(findings) > 0 || summary.Contents != 2 {
		t.Errorf("the audit says %v, %+v", findings, summary)
	}
	if left, err := h.log.Last(h.ctx, "acme", one); err != nil || int64(left.Seq) != end.Seq {
		t.Errorf("the tombstone is not what is left: %+v, %v", left, err)
	}
}

// noise returns text that cannot be compressed.
func noise(n int) string {
	raw := make([]byte, 300_000)
	r := rand.New(rand.NewPCG(uint64(n), 7))
	for i := range raw {
		raw[i] = byte(r.Uint32())
	}
	return base64.StdEncoding.EncodeToString(raw)
}

// until waits for a condition. The server rewrites a block of 8 MB for each commit that it
// overwrites, which takes long on a busy disk.
func (h *house) until(problem string, ok func() bool) {
	h.t.Helper()
	for deadline := time.Now().Add(4 * time.Minute); !ok(); {
		if time.Now().After(deadline) {
			h.t.Fatal(problem)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// held counts the messages of a stream under a subject.
func (h *house) held(stream, subject string) (n uint64) {
	h.t.Helper()
	s, err := h.log.JetStream().Stream(h.ctx, stream)
	if err != nil {
		h.t.Fatal(err)
	}
	info, err := s.Info(context.WithoutCancel(h.ctx), jetstream.WithSubjectFilter(subject))
	if err != nil {
		h.t.Fatal(err)
	}
	for _, count := range info.State.Subjects {
		n += count
	}
	return n
}
