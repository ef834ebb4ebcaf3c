package webhooks

import (
	"context"
	"fmt"
	"net/url"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/skein-threads/skein/eventlog"
	"github.com/skein-threads/skein/eventlog/assets"
	"github.com/skein-threads/skein/eventlog/streams"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/runtime/egress"
)

// PushBucket holds the pushes of runs that have not ended, without its prefix, at
// {tenant}.{thread}.{id}. Commands write them; the process with the lease stores how far they are, and
// removes them. They hold credentials, so they are not in the log, no backup has them, and no auditor
// reads them.
const PushBucket = assets.PushBucket

// storedPush is a push as it is stored.
type storedPush struct {
	events.SetPush
	Next     uint64 `json:"next,omitzero"` // the sequence in the log from which updates are sent
	Failures int    `json:"failures,omitzero"`
	thread   string // of its key
}

// Pushes stores pushes. It is safe for concurrent use.
type Pushes struct {
	log    *eventlog.Log
	egress egress.Policy
}

// NewPushes returns the pushes of a log, to addresses that a policy allows.
func NewPushes(log *eventlog.Log, allowed egress.Policy) *Pushes { return &Pushes{log, allowed} }

// Set stores a push, in place of one with the same id.
func (p *Pushes) Set(ctx context.Context, tenant, thread string, d events.SetPush) (*events.Reply, error) {
	if err := p.check(d); err != nil {
		return nil, err
	}
	if err := p.admit(ctx, tenant, thread, d); err != nil {
		return nil, err
	}
	end, err := p.log.End(ctx)
	if err != nil {
		return nil, err
	}
	doc := storedPush{SetPush: d, Next: end.Seq + 1}
	if d.FromSeq > 0 {
		doc.Next = min(doc.Next, uint64(d.FromSeq))
	}
	raw, err := json.Marshal(&doc, json.Deterministic(true))
	if err != nil {
		return nil, err
	}
	kv, err := openPushes(ctx, p.log)
	if err != nil {
		return nil, err
	}
	revision, err := kv.Put(ctx, pushKey(tenant, thread, d.ID), raw)
	if err != nil {
		return nil, notStored(err)
	}
	return &events.Reply{ThreadID: thread, Version: int64(revision), Events: []events.EventRef{}}, nil
}

// Delete removes a push, if there is one.
func (p *Pushes) Delete(ctx context.Context, tenant, thread string, d events.DeletePush) (*events.Reply, error) {
	kv, err := openPushes(ctx, p.log)
	if err != nil {
		return nil, err
	}
	if err := kv.Purge(ctx, pushKey(tenant, thread, d.ID)); err != nil {
		return nil, notStored(err)
	}
	return &events.Reply{ThreadID: thread, Events: []events.EventRef{}}, nil
}

// List answers a push.list.
func (p *Pushes) List(ctx context.Context, tenant string, d events.ListPushes) (*events.PushList, error) {
	docs, err := p.of(ctx, pushKey(tenant, d.ThreadID, "*"))
	if err != nil {
		return nil, err
	}
	list := &events.PushList{Pushes: []events.Push{}}
	for _, doc := range docs {
		if d.ExecutionID == "" || doc.ExecutionID == d.ExecutionID {
			list.Pushes = append(list.Pushes, events.Push{
				ID: doc.ID, ExecutionID: doc.ExecutionID, Form: doc.Form, Name: doc.Name, Owner: doc.Owner, URL: doc.URL, Scheme: doc.Scheme, Failures: int64(doc.Failures),
			})
		}
	}
	return list, nil
}

// of returns the pushes under a pattern, also those that were set a moment ago.
func (p *Pushes) of(ctx context.Context, pattern string) (list []storedPush, err error) {
	bucket := p.log.Bucket(PushBucket)
	if err := bucket.ShowsAll(ctx); err != nil {
		return nil, err
	}
	docs, err := bucket.All(ctx, pattern)
	if err != nil {
		return nil, err
	}
	for _, m := range docs {
		var doc storedPush
		if err := json.Unmarshal(m.Data, &doc); err != nil {
			return nil, fmt.Errorf("the push %.200s: %w", m.Subject, err)
		}
		list = append(list, doc)
	}
	return list, nil
}

// check refuses a push that cannot be sent.
func (p *Pushes) check(d events.SetPush) error {
	u, err := url.Parse(d.URL)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return events.Invalid("/url", "updates are sent to an http or https address")
	case u.User != nil:
		return events.Invalid("/url", "the address holds a user or a password; give them as scheme and credentials")
	case p.egress.CheckURL(u) != nil:
		return events.Errorf(events.Forbidden, "the url of a push names an address that this server does not connect to (--egress-allow)")
	case d.Scheme == "" && d.Credentials != "":
		return events.Invalid("/scheme", "credentials need a scheme, such as Bearer")
	}
	for field, text := range map[string]string{"/scheme": d.Scheme, "/credentials": d.Credentials, "/token": d.Token} {
		if strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r > '~' || r == ' ' && field == "/scheme" }) {
			return events.Invalid(field, "it is sent as a header, so it has visible ASCII characters alone")
		}
	}
	return nil
}

// admit refuses a push beyond the limits.
func (p *Pushes) admit(ctx context.Context, tenant, thread string, d events.SetPush) error {
	docs, err := p.of(ctx, pushKey(tenant, thread, "*"))
	if err != nil {
		return err
	}
	ofRun := 0
	for _, doc := range docs {
		if doc.ID == d.ID {
			return nil
		}
		if doc.ExecutionID == d.ExecutionID {
			ofRun++
		}
	}
	if ofRun >= events.MaxPushesOfRun {
		return events.Errorf(events.QueueFull, "the updates of a run are sent to at most %d places; delete another one first", events.MaxPushesOfRun)
	}
	stream, err := p.log.JetStream().Stream(ctx, p.log.Bucket(PushBucket).Stream())
	if err != nil {
		return notStored(err)
	}
	info, err := stream.Info(ctx, jetstream.WithSubjectFilter(p.log.Bucket(PushBucket).Subject(tenant+".>")))
	if err != nil {
		return notStored(err)
	}
	if len(info.State.Subjects) >= events.MaxPushes {
		return events.Errorf(events.QueueFull, "the tenant has %d pushes of runs that have not ended, and may have no more", events.MaxPushes)
	}
	return nil
}

func openPushes(ctx context.Context, log *eventlog.Log) (jetstream.KeyValue, error) {
	kv, err := log.JetStream().KeyValue(ctx, log.Config().Names.Bucket(PushBucket))
	if err != nil {
		return nil, notStored(err)
	}
	return kv, nil
}

// notStored returns the error of a push that may not have been written.
func notStored(err error) error {
	if streams.MayPass(err) {
		return events.Errorf(events.Unavailable, "the pushes cannot be read or written now; try again: %w", err)
	}
	return fmt.Errorf("the pushes: %w", err)
}

func pushKey(tenant, thread, id string) string { return tenant + "." + thread + "." + id }
