package openaifiles

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/google/uuid"

	"github.com/skein-threads/skein/api/edge"
	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
)

// abandoned is after what time the log purges the thread of a file that never arrived whole: longer
// than an upload may take.
const abandoned = 6 * time.Hour

// upload answers POST /v1/files.
func upload(w http.ResponseWriter, r *http.Request, c *edge.Caller) error {
	switch {
	case !c.May(edge.Write):
		return events.Errorf(events.Forbidden, "the credential does not permit to write, as an upload does")
	case len(c.Threads) > 0:
		return events.Errorf(events.Forbidden, "the credential is limited to threads that it names, and a file is a thread of its own; put files into a thread with PUT /api/threads/{threadId}/files/{path}")
	}
	in, err := newForm(w, r)
	if err != nil {
		return err
	}
	part, err := in.next()
	if err != nil {
		return err
	}
	if part == nil {
		return events.Invalid("/file", "the form has no part file with a filename")
	}
	filename, err := filenameOf(part)
	if err != nil {
		return err
	}
	number, key := uuid.Must(uuid.NewV7()), r.Header.Get(edge.HeaderKey)
	if key != "" {
		number = c.Keyed(edge.FilesPath + "\x00" + key)
	}
	u := &incoming{client: c.Client, form: in, filename: filename, kind: typeOf(part, filename), id: idOf(number), thread: "T-" + number.String(), purge: uuid.NewSHA1(number, []byte("abandoned")).String(), repeats: key != ""}
	begin, whole, err := head(part)
	if err != nil {
		return in.broken(err)
	}
	if whole {
		err = u.small(r.Context(), begin)
	} else {
		err = u.large(r.Context(), io.MultiReader(bytes.NewReader(begin), part))
	}
	if err != nil {
		return err
	}
	now, err := c.Client.UpToDate(r.Context())
	if err != nil {
		return err
	}
	f, err := find(r.Context(), now, u.id)
	if err != nil {
		return err
	}
	edge.WriteJSON(w, http.StatusOK, f)
	return nil
}

// incoming is a file that is being uploaded.
type incoming struct {
	client   *client.Client
	form     *form
	filename string
	kind     string // media type; empty: its first bytes decide
	id       string
	thread   string
	purge    string // the effect that purges what did not arrive whole
	repeats  bool   // the request has an Idempotency-Key
}

// describe reads what follows the file in the form, and returns what all of it says.
func (u *incoming) describe() (description, error) {
	another, err := u.form.next()
	if err != nil {
		return description{}, err
	}
	if another != nil {
		return description{}, events.Invalid("/file", "the form has two files; send each with a request of its own")
	}
	return u.form.describe(u.filename)
}

// commands are the commands of one commit.
type commands struct {
	list []events.SubCommand
	err  error
}

func (l *commands) add(name string, data any) {
	one, err := client.Sub(name, data)
	l.list, l.err = append(l.list, one), errors.Join(l.err, err)
}

// expires has the log purge a file's thread when its time is over.
func (l *commands) expires(d description) {
	if d.ExpiresAfter > 0 {
		l.add("effect.schedule", events.ScheduleEffect{Name: events.PurgeEffect, DelayMs: new(d.ExpiresAfter * 1000)})
	}
}

// small stores a file that has arrived whole, in one commit.
func (u *incoming) small(ctx context.Context, data []byte) error {
	d, err := u.describe()
	if err != nil {
		return err
	}
	sum := sha256.Sum256(data)
	d.Bytes, d.Digest = int64(len(data)), hex.EncodeToString(sum[:])
	about, err := d.metadata()
	if err != nil {
		return err
	}
	var list commands
	list.add("thread.create", events.CreateThread{Key: keyPrefix + u.id, Title: u.filename, Metadata: about})
	list.add("file.write", events.WriteFile{Path: contentPath, Content: new(base64.StdEncoding.EncodeToString(data)), MimeType: u.kind})
	list.add("thread.update", events.UpdateThread{Archived: new(true)})
	list.expires(d)
	if list.err != nil {
		return list.err
	}
	_, err = u.client.Commit(ctx, u.thread, list.list, client.CommandID("file-"+u.id))
	if u.repeats && events.HasCode(err, events.AlreadyExists) {
		return u.same(ctx, d)
	}
	return err
}

// large stores a file as it arrives. The thread exists before, and is described afterwards. An earlier
// upload with the same Idempotency-Key may have been cut off: then it is made again.
func (u *incoming) large(ctx context.Context, from io.Reader) error {
	if u.repeats {
		now, err := u.client.UpToDate(ctx)
		if err != nil {
			return err
		}
		if _, err = find(ctx, now, u.id); err == nil {
			return u.compare(ctx, from)
		}
		if !events.IsNotFound(err) {
			return err
		}
	}
	var list commands
	list.add("thread.create", events.CreateThread{Key: keyPrefix + u.id, Title: u.filename})
	list.add("thread.update", events.UpdateThread{Archived: new(true)})
	list.add("effect.schedule", events.ScheduleEffect{ID: u.purge, Name: events.PurgeEffect, DelayMs: new(abandoned.Milliseconds())})
	if list.err != nil {
		return list.err
	}
	_, err := u.client.Commit(ctx, u.thread, list.list, client.CommandID("file-"+u.id))
	switch again := u.repeats && events.HasCode(err, events.AlreadyExists); {
	case again && events.IsTakenByDeleted(err):
		return events.Missing("file", u.id)
	case err != nil && !again:
		return err
	}
	if err := u.finish(ctx, from); err != nil {
		ctx, end := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer end()
		_, _ = u.client.Send(ctx, u.thread, events.DeleteThread{Purge: true}) // otherwise the effect does
		return err
	}
	return nil
}

// finish stores the content of a large file, and then describes it.
func (u *incoming) finish(ctx context.Context, from io.Reader) error {
	bounded := &bounded{from: from, left: maxBytes}
	record, err := u.client.Files(u.thread).WriteFileFrom(ctx, contentPath, bounded, u.kind, client.WriteFileOptions{})
	switch {
	case bounded.err != nil && events.HasCode(bounded.err, events.PayloadTooLarge):
		return bounded.err
	case bounded.err != nil:
		return u.form.broken(bounded.err)
	case err != nil:
		return err
	case record == nil:
		return events.Errorf(events.Unavailable, "the reply to the command names no file")
	}
	d, err := u.describe()
	if err != nil {
		return err
	}
	d.Bytes, d.Digest = record.Size, record.Digest
	about, err := d.metadata()
	if err != nil {
		return err
	}
	var list commands
	list.add("thread.update", events.UpdateThread{Metadata: about})
	list.add("effect.cancel", events.CancelEffect{EffectID: u.purge, Reason: "the file has arrived"})
	list.expires(d)
	if list.err != nil {
		return list.err
	}
	_, err = u.client.Commit(ctx, u.thread, list.list)
	return err
}

// compare reads a large file that an earlier upload with the same Idempotency-Key has stored.
func (u *incoming) compare(ctx context.Context, from io.Reader) error {
	sum := sha256.New()
	bounded := &bounded{from: from, left: maxBytes}
	n, err := io.Copy(sum, bounded)
	switch {
	case events.HasCode(err, events.PayloadTooLarge):
		return err
	case err != nil:
		return u.form.broken(err)
	}
	d, err := u.describe()
	if err != nil {
		return err
	}
	d.Bytes, d.Digest = n, hex.EncodeToString(sum.Sum(nil))
	return u.same(ctx, d)
}

// same refuses an Idempotency-Key with which another file was uploaded.
func (u *incoming) same(ctx context.Context, d description) error {
	now, err := u.client.UpToDate(ctx)
	if err != nil {
		return err
	}
	t, err := client.Read(ctx, now, events.GetThread{ThreadID: u.thread})
	if events.IsNotFound(err) { // it was deleted since
		return events.Missing("file", u.id)
	}
	if err != nil {
		return err
	}
	about, err := d.metadata()
	if err != nil {
		return err
	}
	if string(about) != string(t.Metadata) {
		return edge.ReusedKey(edge.HeaderKey)
	}
	return nil
}

// bounded is a content of at most so many bytes, and notes why it cannot be read.
type bounded struct {
	from io.Reader
	left int64
	err  error
}

func (b *bounded) Read(p []byte) (int, error) {
	n, err := b.from.Read(p)
	if b.left -= int64(n); b.left < 0 {
		err = events.TooLarge("the file", maxBytes+1, maxBytes)
	}
	if err != nil && !errors.Is(err, io.EOF) {
		b.err = err
	}
	return n, err
}
