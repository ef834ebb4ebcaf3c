package audit

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json"

	"github.com/skein-threads/skein/eventlog"
	"github.com/skein-threads/skein/eventlog/assets"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/files"
)

// ExportOptions says what to export.
type ExportOptions struct {
	Tenant   string   // only this tenant; all if empty
	Threads  []string // only these threads of the tenant, with the claims of their keys; all if empty
	Chains   bool     // only the end of each thread, for Witness
	Contents bool     // the contents of files too
	Program  string   // recorded as the writer of the file
	Signer   *Signer  // nil: the file is not signed
	Progress func(Progress)
	Absent   func(tenant, digest string, why error) // called for each content that cannot be read; may be nil
}

// Export writes the commits of the log, as they are stored, as JSON Lines: a FileHeader; for
// each key's claim and tenant's own aggregate, and then for each thread, its commits and a
// FileEnd; and a FileLast. It holds one batch of commits in memory. It omits what is written
// to the log after it started. A content that cannot be read is named in the file, and
// omitted.
func Export(ctx context.Context, log *eventlog.Log, w io.Writer, o ExportOptions) (Manifest, error) {
	if err := (Options{Tenant: o.Tenant, Threads: o.Threads}).validate(); err != nil {
		return Manifest{}, err
	}
	if o.Chains && o.Contents {
		return Manifest{}, events.Invalid("/contents", "a file of chains has no contents")
	}
	stream, err := log.JetStream().Stream(ctx, log.Config().Names.Stream(assets.LogStream))
	if err != nil {
		return Manifest{}, fmt.Errorf("export: read log: %w", err)
	}
	state := stream.CachedInfo().State
	x := &exporter{ctx: ctx, log: log, options: o, to: state.LastSeq, out: newLineWriter(w), has: map[[sha256.Size]byte]struct{}{}}
	if o.Contents {
		if x.store, err = openContents(ctx, log); err != nil {
			return Manifest{}, err
		}
	}
	err = x.out.line(FileHeader{
		File: fileName, Format: FileFormat, Program: o.Program, Created: events.TimeOf(time.Now()).String(), Prefix: log.Config().Names.Prefix,
		Tenant: o.Tenant, Threads: o.Threads, From: state.FirstSeq, To: state.LastSeq, Chains: o.Chains, Contents: o.Contents,
	})
	if err != nil {
		return x.manifest, err
	}
	if len(o.Threads) > 0 {
		err = x.named()
	} else {
		err = x.everything()
	}
	if err != nil {
		return x.manifest, err
	}
	x.manifest.Lines, x.manifest.Bytes, x.manifest.Digest = x.out.lines, x.out.bytes, x.out.digest()
	return x.manifest, x.last()
}

type exporter struct {
	ctx      context.Context
	log      *eventlog.Log
	options  ExportOptions
	to       uint64
	out      *lineWriter
	manifest Manifest
	done, of int64 // threads
	stage    stage

	store  *files.Store
	naming naming                         // the contents that the current thread names
	has    map[[sha256.Size]byte]struct{} // contents already handled
}

// everything writes aggregates other than threads first, so that a reader of the file knows
// the keys before the threads that hold them.
func (x *exporter) everything() error {
	for _, threads := range []bool{false, true} {
		done := int64(0)
		for a, err := range list(x.ctx, x.log, anyTenant(x.options.Tenant)) {
			if err != nil {
				return err
			}
			done++
			if events.IsThread(a.id) != threads {
				continue
			}
			if _, err := x.aggregate(a.aggregate, a.last); err != nil {
				return err
			}
			if threads {
				x.done, x.of = done, done+a.left
				x.progress()
			}
		}
	}
	return nil
}

// named writes some threads, after the claims of their keys.
func (x *exporter) named() error {
	written := map[string]bool{}
	var threads []string // other aggregates come first
	for _, thread := range []bool{false, true} {
		for _, id := range x.options.Threads {
			if events.IsThread(id) == thread {
				threads = append(threads, id)
			}
		}
	}
	for _, id := range threads {
		key, err := firstKey(x.ctx, x.log, aggregate{x.options.Tenant, id})
		if err != nil {
			return err
		}
		claim := events.KeyAggregate(key)
		if key == "" || written[claim] {
			continue
		}
		written[claim] = true
		if _, err := x.aggregate(aggregate{x.options.Tenant, claim}, 0); err != nil {
			return err
		}
	}
	for i, id := range threads {
		if written[id] {
			continue
		}
		written[id] = true
		there, err := x.aggregate(aggregate{x.options.Tenant, id}, 0)
		if err != nil {
			return err
		}
		if !there {
			return events.Missing("thread", id)
		}
		x.done, x.of = int64(i)+1, int64(len(threads))
		x.progress()
	}
	return nil
}

// firstKey returns the key with which a thread was created, or "".
func firstKey(ctx context.Context, log *eventlog.Log, a aggregate) (string, error) {
	for c, err := range log.Thread(ctx, a.tenant, a.id, 1) {
		var broken *events.BrokenError
		switch {
		case errors.As(err, &broken):
			return "", nil
		case err != nil:
			return "", fmt.Errorf("read %s/%s: %w", a.tenant, a.id, err)
		}
		return keyOf(c), nil
	}
	return "", nil
}

// keyOf returns the key that a thread's first commit claims, or "".
func keyOf(c *events.Commit) string {
	if d, ok := c.Events[0].Data.(events.ThreadCreated); ok && d.Key != nil {
		return *d.Key
	}
	return ""
}

// aggregate writes the commits of one subject, and reports whether there are any. last is the
// sequence of its last commit, as far as known. The commits are written once all of them were
// read: those of a thread that is being erased may be partly gone. A thread that was purged
// after the export started is omitted, and of one that was purged before, there is the
// tombstone.
func (x *exporter) aggregate(a aggregate, last uint64) (bool, error) {
	defer x.stage.clear()
	end, whole, err := x.read(a, 1)
	if err != nil {
		return false, err
	}
	if !whole || end.Seq != last {
		newest, err := x.log.Last(x.ctx, a.tenant, a.id)
		var broken *events.BrokenError
		switch {
		case err != nil && !errors.As(err, &broken):
			return false, fmt.Errorf("read %s/%s: %w", a.tenant, a.id, err)
		case err != nil || newest == nil || !tombstone(newest): // nothing is erased before there is one
		case newest.Seq > x.to:
			return false, nil
		default:
			x.stage.clear()
			if end, _, err = x.read(a, newest.Seq); err != nil {
				return false, err
			}
		}
	}
	if end.Commits == 0 {
		return false, nil
	}
	if err := x.contents(a.tenant); err != nil {
		return false, err
	}
	if err := x.stage.writeTo(x.out); err != nil {
		return false, err
	}
	x.manifest.Commits += end.Commits
	x.manifest.LastSeq = max(x.manifest.LastSeq, end.Seq)
	if events.IsThread(a.id) {
		x.manifest.Threads++
	} else {
		x.manifest.Others++
	}
	return true, x.out.line(end)
}

// read reads the commits of one subject from a sequence on into the stage, and reports whether
// their chain is complete from the start.
func (x *exporter) read(a aggregate, from uint64) (end FileEnd, whole bool, err error) {
	whole, x.naming = true, naming{}
	for m, err := range x.log.Raw(x.ctx, x.log.Config().Names.Log(a.tenant, a.id), from) {
		if err != nil {
			return end, false, fmt.Errorf("read %s/%s: %w", a.tenant, a.id, err)
		}
		if m.Seq > x.to {
			break
		}
		line := FileCommit{
			Seq: m.Seq, Subject: m.Subject, Type: m.Header.Get(events.HeaderType),
			Version: m.Header.Get(events.HeaderVersion), Chain: m.Header.Get(events.HeaderChain),
		}
		whole = whole && line.Chain == events.Chain(end.Chain, m.Data)
		if utf8.Valid(m.Data) {
			line.Body = string(m.Data)
		} else {
			line.Base64 = m.Data
		}
		if x.options.Contents {
			if c, err := x.log.Decode(m); err == nil {
				x.naming.commit(c)
			}
		}
		if !x.options.Chains {
			if err := x.stage.line(line); err != nil {
				return end, false, err
			}
		}
		end = FileEnd{End: m.Subject, Commits: end.Commits + 1, Version: line.Version, Seq: m.Seq, Chain: line.Chain}
		if (x.manifest.Commits+end.Commits)%tellEvery == 0 {
			x.progress()
		}
	}
	return end, whole, nil
}

func (x *exporter) progress() {
	if x.options.Progress != nil {
		x.options.Progress(Progress{Done: x.done, Of: x.of, Commits: int(x.manifest.Commits)})
	}
}

// last writes the manifest.
func (x *exporter) last() error {
	raw, err := json.Marshal(x.manifest)
	if err != nil {
		return err
	}
	last := FileLast{Manifest: raw}
	if x.options.Signer != nil {
		last.Key = x.options.Signer.Public()
		signature, err := x.options.Signer.sign(raw)
		if err != nil {
			return fmt.Errorf("sign manifest: %w", err)
		}
		last.Signature = base64.StdEncoding.EncodeToString(signature)
	}
	return x.out.line(last)
}
