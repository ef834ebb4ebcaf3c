package files_test

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/files"
	"github.com/skein-threads/skein/internal/natstest"
	"github.com/skein-threads/skein/quota"
)

// A tenant that begins all the uploads that it can, and lets them lie, leaves
// places to others.
func TestUpload_OneTenantLeavesPlaces(t *testing.T) {
	w := newWorld(t, files.ServiceConfig{Uploads: quota.NewPool("uploads", quota.Places{Total: 6}, nil)})
	hog, other := w.client("hog"), w.client("acme")
	nc := natstest.Connect(t, w.server)
	id, body := w.thread(hog), ""
	refused := false
	for i := 0; i < 6 && !refused; i++ {
		body = `{"threadId":"` + id + `","data":{"path":"/f` + strconv.Itoa(i) + `"}}`
		m, err := nc.Request("skein.file.hog.content.put", []byte(body), time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		refused = m.Header.Get(events.HeaderError) == string(events.Unavailable)
	}
	if !refused {
		t.Error("one tenant got all places")
	}
	w.raw(nc, "acme", w.thread(other), "/f")
	w.raw(nc, "acme", w.thread(other), "/g")
}

// An upload that is kept up by signs that more will come ends all the same.
func TestUpload_SignsDoNotKeepItForEver(t *testing.T) {
	w := newWorld(t, files.ServiceConfig{Longest: 300 * time.Millisecond})
	nc := natstest.Connect(t, w.server)
	subject := w.raw(nc, "acme", w.thread(w.client("acme")), "/f")
	w.until("the upload has ended", func() bool {
		m := nats.NewMsg(subject)
		m.Header.Set(events.HeaderUpload, events.UploadWait)
		answer, err := nc.RequestMsg(m, time.Second)
		return errors.Is(err, nats.ErrNoResponders) || err == nil && answer.Header.Get(events.HeaderErrorCode) != ""
	})
}

// Searches of one tenant that hold all the places that it can get do not keep
// another tenant's waiting; its own wait.
func TestGrep_OneTenantLeavesPlaces(t *testing.T) {
	w := newWorld(t, files.ServiceConfig{})
	for {
		leave, err := w.searches.Try("hog")
		if err != nil {
			break
		}
		t.Cleanup(leave)
	}
	viewer := files.NewViewer(w.store, w.images, w.searches)
	if _, err := viewer.Grep(t.Context(), "acme", nil, "x", 1); err != nil {
		t.Errorf("the search of another tenant: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := viewer.Grep(ctx, "hog", nil, "x", 1); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("one more of the same tenant: %v", err)
	}
}
