package audit

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/skein-threads/skein/events"
)

// Content that the log names is missed if it is not there, if it is damaged, and
// if it is another's; that of a deleted thread is not.
func TestContentsAreChecked(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		harm func(h *house, bucket jetstream.ObjectStore, chunks jetstream.Stream)
		want string
	}{
		"nothing is wrong": {func(*house, jetstream.ObjectStore, jetstream.Stream) {}, ""},
		"gone": {func(h *house, bucket jetstream.ObjectStore, _ jetstream.Stream) {
			list, err := bucket.List(h.ctx)
			if err == nil {
				err = bucket.Delete(h.ctx, list[0].Name)
			}
			if err != nil {
				t.Fatal(err)
			}
		}, "is not in the store"},
		"without its pieces": {func(h *house, _ jetstream.ObjectStore, chunks jetstream.Stream) {
			if err := chunks.Purge(h.ctx, jetstream.WithPurgeSubject("$O.thread_files.C.>")); err != nil {
				t.Fatal(err)
			}
		}, "is missing"},
		"with other bytes": {func(h *house, bucket jetstream.ObjectStore, chunks jetstream.Stream) {
			list, err := bucket.List(h.ctx)
			if err != nil {
				t.Fatal(err)
			}
			ack, err := h.log.JetStream().Publish(h.ctx, "$O.thread_files.C."+list[0].NUID, []byte("HELLO"))
			if err != nil {
				t.Fatal(err)
			}
			m, err := chunks.GetLastMsgForSubject(h.ctx, "$O.thread_files.M."+base64.URLEncoding.EncodeToString([]byte(list[0].Name)))
			if err != nil {
				t.Fatal(err)
			}
			other := strings.Replace(string(m.Data), `"pieces":"1"`, fmt.Sprintf(`"pieces":"%d"`, ack.Sequence), 1)
			if other == string(m.Data) {
				t.Fatalf("no pieces in %s", m.Data)
			}
			if _, err := h.log.JetStream().Publish(h.ctx, m.Subject, []byte(other)); err != nil {
				t.Fatal(err)
			}
		}, "its bytes have the digest"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHouse(t)
			for _, id := range []string{threadOne, strings.Replace(threadOne, "0001", "0002", 1)} {
				h.do("thread.create", fmt.Sprintf(`{"threadId":%q,"data":{}}`, id))
			}
			h.do("file.write", fmt.Sprintf(`{"threadId":%q,"data":{"path":"/a","content":"aGVsbG8="}}`, threadOne))
			last := h.do("file.write", fmt.Sprintf(`{"threadId":%q,"data":{"path":"/b","external":"s3://b/k"}}`, threadOne))
			bucket, err := h.log.JetStream().ObjectStore(h.ctx, "thread_files")
			if err != nil {
				t.Fatal(err)
			}
			chunks, err := h.log.JetStream().Stream(h.ctx, "OBJ_thread_files")
			if err != nil {
				t.Fatal(err)
			}
			c.harm(h, bucket, chunks)
			h.settle(last.Seq)
			found, sum := h.verify(Options{Tenant: "acme"})
			switch {
			case sum.Contents != 1:
				t.Errorf("%+v", sum)
			case c.want == "" && len(found) > 0:
				t.Errorf("%+v", found)
			case c.want != "" && (len(found) != 1 || found[0].Kind != KindContent || found[0].Thread != threadOne || !strings.Contains(found[0].Detail, c.want)):
				t.Errorf("%+v", found)
			}
			if c.want == "" {
				return
			}
			last = h.do("thread.delete", fmt.Sprintf(`{"threadId":%q,"data":{}}`, threadOne))
			h.settle(last.Seq)
			if found, sum := h.verify(Options{Tenant: "acme"}); len(found) > 0 || sum.Contents != 0 {
				t.Errorf("after its end: %+v %+v", found, sum)
			}
		})
	}
}

// A size that the log says of a content is compared with the content, also where another thread has
// named it with its own size.
func TestContents_OtherSizeInAnotherThread(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	for _, id := range []string{threadOne, threadTwo} {
		h.do("thread.create", fmt.Sprintf(`{"threadId":%q,"data":{}}`, id))
	}
	h.do("file.write", fmt.Sprintf(`{"threadId":%q,"data":{"path":"/a","content":"aGVsbG8="}}`, threadOne))
	digest := fmt.Sprintf("%x", sha256.Sum256([]byte("hello")))
	h.forge(threadTwo, events.FileWrittenType, threadTwo, events.FileWritten{Path: "/b", MimeType: "text/plain", Size: 6, Digest: digest})
	contents, err := NewContents(h.ctx, h.log)
	if err != nil {
		t.Fatal(err)
	}
	found, _ := h.verify(Options{LogOnly: true, Checks: []Check{contents}})
	if len(found) != 1 || found[0].Kind != KindContent || found[0].Thread != threadTwo || !strings.Contains(found[0].Detail, "has 5 bytes; the log says 6") {
		t.Errorf("%+v", found)
	}
}
