package audit

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"maps"
	"slices"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/skein-threads/skein/eventlog"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/files"
)

// FileContent is a line with a piece of the content of files. The pieces of a content are
// consecutive, before the commits of the first thread of the file that names it.
type FileContent struct {
	Content string `json:"content"` // its digest
	Tenant  string `json:"tenant"`
	Size    int64  `json:"size"`            // of the whole content
	Offset  int64  `json:"offset"`          // of this piece
	Piece   []byte `json:"piece,omitempty"` // in base64
	Absent  string `json:"absent,omitzero"` // why it is not in the file; its pieces before this line must then be ignored
}

// naming collects the contents that a thread's commits name. Those of a deleted thread may be
// gone.
type naming struct {
	digests map[string]struct{}
	gone    bool
}

func (n *naming) commit(c *events.Commit) {
	deleted := namedContents(c, func(_ *events.Event, digest string, _ int64) {
		if n.digests == nil {
			n.digests = map[string]struct{}{}
		}
		n.digests[digest] = struct{}{}
	})
	n.gone = n.gone || deleted
}

// namedContents calls note for each content that a commit names, and reports whether the
// commit deletes the thread: the collector may then have removed its contents.
func namedContents(c *events.Commit, note func(e *events.Event, digest string, size int64)) (deleted bool) {
	for i := range c.Events {
		e := &c.Events[i]
		for digest, size := range e.Contents() {
			note(e, digest, size)
		}
		deleted = deleted || e.Type == events.LifecycleDeletedType
	}
	return deleted
}

// all returns the digests in order, and clears them.
func (n *naming) all() []string {
	list := slices.Sorted(maps.Keys(n.digests))
	if n.gone {
		list = nil
	}
	*n = naming{}
	return list
}

// contentKey is a compact key of a tenant's content, for large sets.
func contentKey(tenant, digest string) [sha256.Size]byte {
	return sha256.Sum256([]byte(tenant + "/" + digest))
}

// contents writes what a thread names and the file does not have yet.
func (x *exporter) contents(tenant string) error {
	for _, digest := range x.naming.all() {
		key := contentKey(tenant, digest)
		if _, has := x.has[key]; has {
			continue
		}
		x.has[key] = struct{}{}
		line := FileContent{Content: digest, Tenant: tenant}
		err := x.content(&line)
		if err == nil {
			x.manifest.Contents++
			continue
		}
		if unanswered(x.ctx, err) {
			return fmt.Errorf("read contents: %w", err)
		}
		line.Piece, line.Absent = nil, err.Error()
		x.manifest.Absent++
		if x.options.Absent != nil {
			x.options.Absent(tenant, digest, err)
		}
		if err := x.out.line(line); err != nil {
			return err
		}
	}
	return nil
}

// content writes the pieces of one content.
func (x *exporter) content(line *FileContent) (err error) {
	if x.store == nil {
		return errors.New("there is no content store")
	}
	if line.Size, err = x.store.Size(x.ctx, line.Tenant, line.Content); err != nil {
		return err
	}
	for piece, err := range x.store.All(x.ctx, line.Tenant, line.Content) {
		if err != nil {
			return err
		}
		line.Piece = piece
		if err := x.out.line(line); err != nil {
			return err
		}
		line.Offset += int64(len(piece))
	}
	if line.Size == 0 {
		return x.out.line(line)
	}
	return nil
}

// openContents opens the content store; nil if there is none.
func openContents(ctx context.Context, log *eventlog.Log) (*files.Store, error) {
	store, err := files.Open(ctx, log)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return nil, nil
	}
	return store, err
}

// incoming reads the contents in an exported file.
type incoming struct {
	naming naming
	at     FileContent                    // the current one
	sum    hash.Hash                      // of its pieces; nil: there is no current one
	given  map[string]struct{}            // since the last end
	has    map[[sha256.Size]byte]struct{} // before that
}

// contentOpen reports whether pieces of a content must follow.
func (f *fileReader) contentOpen() bool { return f.bringing.sum != nil }

func (f *fileReader) content(line []byte) error {
	var c FileContent
	if err := f.decode(line, &c); err != nil {
		return err
	}
	in := &f.bringing
	switch {
	case !f.report.Header.Contents:
		return f.refuse("a content, in a file that says that it has none")
	case f.open.Commits > 0:
		return f.refuse("a content among the commits of %s: lines were reordered", f.open.End)
	case !events.ValidTenant(c.Tenant) || f.report.Header.Tenant != "" && c.Tenant != f.report.Header.Tenant:
		return f.refuse("the content is of tenant %.80q, and the file of %s", c.Tenant, f.report.Header.Tenant)
	case in.sum == nil:
		in.at, in.sum = FileContent{Content: c.Content, Tenant: c.Tenant, Size: c.Size}, sha256.New()
	}
	in.sum.Write(c.Piece)
	_, again := in.given[c.Content]
	end := in.at.Offset + int64(len(c.Piece))
	switch {
	case c.Content != in.at.Content || c.Tenant != in.at.Tenant || again:
		return f.refuse("a piece of the content %.80q where one of %s belongs: lines were reordered", c.Content, in.at.Content)
	case c.Absent != "" && len(c.Piece) == 0:
	case c.Size != in.at.Size || c.Offset != in.at.Offset || end > c.Size || end < c.Size && len(c.Piece) != events.FilePieceBytes:
		return f.refuse("it is not the next piece of the content %s: lines were left out", c.Content)
	case end == c.Size && hex.EncodeToString(in.sum.Sum(nil)) != c.Content:
		return f.refuse("the bytes of the content %.80q have the digest %x: they were altered", c.Content, in.sum.Sum(nil))
	}
	in.at.Offset = end
	if c.Absent != "" || end == c.Size {
		if in.given == nil {
			in.given = map[string]struct{}{}
		}
		in.given[c.Content], in.sum = struct{}{}, nil
		if c.Absent != "" {
			f.counted.Absent++
		} else {
			f.counted.Contents++
		}
	}
	return f.to.content(f.n, c)
}

// named compares the contents that came before a thread with those that it names: each is in
// the file once.
func (f *fileReader) named() error {
	in := &f.bringing
	if !f.report.Header.Contents {
		return nil
	}
	if in.has == nil {
		in.has = map[[sha256.Size]byte]struct{}{}
	}
	for _, digest := range in.naming.all() {
		key := contentKey(f.at.tenant, digest)
		_, has := in.has[key]
		if _, given := in.given[digest]; given == has {
			return f.refuse("the content %s, which %s/%s names, is not in the file, or is there twice", digest, f.at.tenant, f.at.id)
		}
		delete(in.given, digest)
		in.has[key] = struct{}{}
	}
	if len(in.given) > 0 {
		return f.refuse("there is a content before %s/%s that it does not name", f.at.tenant, f.at.id)
	}
	return nil
}

// content restores a content, unless it is stored already.
func (i *importer) content(_ int64, c FileContent) error {
	if i.ctx.Err() != nil {
		return context.Cause(i.ctx)
	}
	if i.store == nil {
		return errors.New("there is no content store: start skein serve on this server once, which creates it")
	}
	if c.Absent != "" {
		if i.coming != nil {
			i.coming.Drop(i.ctx)
		}
		i.coming, i.skips = nil, false
		i.count(func(s *ImportSummary) { s.Absent++ })
		return nil
	}
	if c.Offset == 0 {
		has, err := i.store.Has(i.ctx, c.Tenant, c.Content)
		if err != nil {
			return fmt.Errorf("restore content %s: %w", c.Content, err)
		}
		if i.skips = has; !has {
			i.coming = i.store.Incoming(c.Tenant)
		}
	}
	last := c.Offset+int64(len(c.Piece)) == c.Size
	if !i.skips {
		if err := i.piece(c.Piece, last); err != nil {
			return fmt.Errorf("restore content %s: %w; run the import again to continue from there", c.Content, err)
		}
		if last {
			i.count(func(s *ImportSummary) { s.Contents++ })
		}
	}
	return nil
}

func (i *importer) piece(piece []byte, last bool) error {
	if len(piece) > 0 {
		if err := i.coming.Add(i.ctx, piece); err != nil {
			i.coming.Drop(i.ctx)
			return err
		}
	}
	if !last {
		return nil
	}
	_, err := i.coming.End(i.ctx)
	i.coming = nil
	return err
}
