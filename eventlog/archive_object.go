package eventlog

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"iter"
	"strconv"

	"github.com/klauspost/compress/s2"

	"github.com/skein-threads/skein/eventlog/objects"
	"github.com/skein-threads/skein/eventlog/streams"
	"github.com/skein-threads/skein/events"
)

// Sizes of an object's parts. They bound what a reader holds of it.
const (
	archivePiece = 128 << 10 // a message of the store
	archiveBlock = 256 << 10 // is compressed as one
)

// ErrCommitsGone means that the log no longer holds all commits that were to be archived.
// Another archiver has recorded and erased them, or they were lost.
var ErrCommitsGone = errors.New("the log no longer holds all commits that were to be archived; try again, and if that fails too, run skein audit verify")

// PutArchive writes the object of a record, which lacks only name and digest, and
// returns the completed record. The commits are read from the log, from FirstSeq to
// LastSeq. An object that exists and matches the record is left as it is.
//
// Archivers may write the same object at the same time, and one may erase the commits while the
// other still reads them. What then replaces an object is equal to it: with [ErrCommitsGone]
// nothing was written. The record has its object's name with any error.
func (l *Log) PutArchive(ctx context.Context, tenant, thread string, d events.LifecycleArchived) (events.LifecycleArchived, error) {
	d.Object = archiveObject(tenant, thread, uint64(d.LastSeq))
	sum := sha256.New()
	if err := l.writeArchive(ctx, tenant, thread, d, sum); err != nil {
		return d, fmt.Errorf("reading %s/%s: %w", tenant, thread, err)
	}
	d.Digest = hex.EncodeToString(sum.Sum(nil))
	if err := l.CheckArchive(ctx, tenant, thread, d); err == nil {
		return d, nil
	}
	return d, l.putArchive(ctx, tenant, thread, d)
}

// writeArchive writes what an object holds before it is compressed.
func (l *Log) writeArchive(ctx context.Context, tenant, thread string, d events.LifecycleArchived, to io.Writer) error {
	b, n, last := archiveHead(tenant, thread), int64(0), uint64(0)
	for m, err := range l.Stored(ctx, l.cfg.Names.Log(tenant, thread), uint64(d.FirstSeq)) {
		if err != nil {
			return err
		}
		if m.Seq > uint64(d.LastSeq) {
			break
		}
		if b, err = appendFrame(b, m); err != nil {
			return err
		}
		if _, err := to.Write(b); err != nil {
			return err
		}
		b, last = b[:0], m.Seq
		n++
	}
	if n != d.Commits || last != uint64(d.LastSeq) {
		return ErrCommitsGone
	}
	return nil
}

// putArchive writes the object of a complete record, if the log still holds its commits. It is no
// error if another archiver has written it meanwhile, which wrote the same.
func (l *Log) putArchive(ctx context.Context, tenant, thread string, d events.LifecycleArchived) error {
	from, to := io.Pipe()
	go func() {
		packed := s2.NewWriter(to, s2.WriterBlockSize(archiveBlock), s2.WriterConcurrency(1))
		sum := sha256.New()
		err := l.writeArchive(ctx, tenant, thread, d, io.MultiWriter(packed, sum))
		if err == nil && hex.EncodeToString(sum.Sum(nil)) != d.Digest {
			err = ErrCommitsGone
		}
		to.CloseWithError(errors.Join(err, packed.Close()))
	}()
	first := map[string]string{archiveFirst: strconv.FormatUint(uint64(d.FirstSeq), 10)}
	err := l.archiveStore().Put(ctx, d.Object, first, archivePiece, from)
	_ = from.CloseWithError(errAbandoned) // so that the writer is not blocked
	if errors.Is(err, objects.ErrReplaced) {
		return l.CheckArchive(ctx, tenant, thread, d)
	}
	return err
}

var errAbandoned = errors.New("its reader has ended")

// CheckArchive reads an object to its end, and checks that it matches its record: its
// digest, the number of its commits and which they are, each chain, and each version.
// The error is an *ArchiveError, or says why the object could not be read.
func (l *Log) CheckArchive(ctx context.Context, tenant, thread string, d events.LifecycleArchived) error {
	chain, version, begun := "", int64(0), false
	for m, err := range l.archivedCommits(ctx, tenant, thread, d) {
		if err != nil {
			return err
		}
		c, err := l.Decode(m)
		switch {
		case err != nil:
		case begun && (events.Chain(chain, c.Body) != c.Chain || c.First() != version):
			err = fmt.Errorf("commit %d does not follow the one before it", m.Seq)
		}
		if err != nil {
			return &ArchiveError{Tenant: tenant, Thread: thread, Object: d.Object, Cause: err}
		}
		chain, version, begun = c.Chain, c.Version, true
	}
	return nil
}

// archivedCommits reads the commits of a record's object, in order. If the object does not
// match the record, an *ArchiveError comes last.
func (l *Log) archivedCommits(ctx context.Context, tenant, thread string, d events.LifecycleArchived) iter.Seq2[streams.Message, error] {
	return func(yield func(streams.Message, error) bool) {
		bad := func(cause error) {
			yield(streams.Message{}, &ArchiveError{Tenant: tenant, Thread: thread, Object: d.Object, Cause: cause})
		}
		if d.Object != archiveObject(tenant, thread, uint64(d.LastSeq)) {
			bad(errors.New("the record names an object that is not its own"))
			return
		}
		sum := sha256.New()
		n, first, last := int64(0), uint64(0), streams.Message{}
		for m, err := range l.frames(ctx, tenant, thread, d.Object, sum) {
			if err != nil {
				yield(streams.Message{}, err)
				return
			}
			if n++; n == 1 {
				first = m.Seq
			}
			last = m
			if n <= d.Commits && !yield(m, nil) {
				return
			}
		}
		switch got := hex.EncodeToString(sum.Sum(nil)); {
		case got != d.Digest:
			bad(fmt.Errorf("its digest is %s, and the record says %.80q", got, d.Digest))
		case n != d.Commits || first != uint64(d.FirstSeq) || last.Seq != uint64(d.LastSeq) || last.Header.Get(events.HeaderChain) != d.Chain:
			bad(fmt.Errorf("it holds %d commits from %d to %d, and the record says otherwise", n, first, last.Seq))
		}
	}
}

// frames reads the commits in an object, in order, and writes everything that it reads to
// sum. An *ArchiveError says that there is no such object, or that it is damaged; another
// error, that the store did not answer. If the object is rewritten meanwhile, with the same
// commits, the read continues in the new one.
func (l *Log) frames(ctx context.Context, tenant, thread, object string, sum hash.Hash) iter.Seq2[streams.Message, error] {
	return func(yield func(streams.Message, error) bool) {
		o := &objectReader{log: l, ctx: ctx, tenant: tenant, thread: thread, object: object, sum: sum}
		for {
			again, err := o.readObject(yield)
			if err != nil {
				yield(streams.Message{}, err)
			}
			if !again {
				return
			}
		}
	}
}

// objectReader is one read of an object.
type objectReader struct {
	log                    *Log
	ctx                    context.Context //nolint:containedctx // it lives as long as the read
	tenant, thread, object string
	sum                    hash.Hash
	before                 uint64 // the last commit that was yielded
}

// readObject reads the object as it is now. again reports that it was rewritten meanwhile.
func (o *objectReader) readObject(yield func(streams.Message, error) bool) (again bool, err error) {
	failed := &ArchiveError{Tenant: o.tenant, Thread: o.thread, Object: o.object}
	entry, err := o.log.archiveEntry(o.ctx, o.object)
	if err != nil {
		return false, err
	}
	if entry == nil {
		failed.Missing = true
		return false, failed
	}
	o.sum.Reset()
	pieces := o.log.archiveStore().Read(o.ctx, entry)
	packed := s2.NewReader(pieces, s2.ReaderMaxBlockSize(archiveBlock), s2.ReaderAllocBlock(archiveBlock))
	r := bufio.NewReader(io.TeeReader(packed, o.sum))
	subject, last := o.log.cfg.Names.Log(o.tenant, o.thread), uint64(0)
	for err = readHead(r, o.tenant, o.thread); err == nil; {
		var m streams.Message
		if m, err = readFrame(r, subject); err == nil && m.Seq <= last {
			err = fmt.Errorf("commit %d comes after %d", m.Seq, last)
		}
		if err != nil {
			break
		}
		if last = m.Seq; last <= o.before {
			continue
		}
		o.before = last
		if !yield(m, nil) {
			return false, nil
		}
	}
	var damaged *objects.DamagedError
	switch unread := pieces.Err(); {
	case errors.Is(err, io.EOF):
		return false, nil
	case unread != nil && !errors.As(unread, &damaged): // the store did not answer
		return false, fmt.Errorf("reading the archive %s: %w", o.object, unread)
	}
	if now, lookErr := o.log.archiveEntry(o.ctx, o.object); lookErr != nil || now != nil && now.NUID != pieces.Object().NUID {
		return lookErr == nil, lookErr
	}
	failed.Cause = err
	return false, failed
}
