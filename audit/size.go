package audit

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/skein-threads/skein/eventlog"
	"github.com/skein-threads/skein/eventlog/assets"
	"github.com/skein-threads/skein/eventlog/objects"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/projections/documents"
)

// Count is a number of messages or objects, and the bytes of their bodies before the server
// compresses them.
type Count struct {
	Number int64 `json:"number"`
	Bytes  int64 `json:"bytes"`
}

func (c *Count) add(bytes int64) { c.Number, c.Bytes = c.Number+1, c.Bytes+bytes }

// Size is the size of a thread or, without a thread, of its tenant or, without either, of
// everything.
type Size struct {
	Tenant    string `json:"tenant,omitzero"`
	Thread    string `json:"thread,omitzero"`
	Threads   int64  `json:"threads"` // that exist
	Log       Count  `json:"log"`
	Archive   Count  `json:"archive"` // objects of archived commits, compressed
	Timeline  Count  `json:"timeline"`
	Chunks    Count  `json:"chunks"`
	Documents Count  `json:"documents"`
	Snapshots Count  `json:"snapshots"`
	Files     Count  `json:"files"` // of a thread its current files; of a tenant the contents that it stores, each once
	Bytes     int64  `json:"bytes"` // the total
}

func (s *Size) sum() {
	s.Bytes = s.Log.Bytes + s.Archive.Bytes + s.Timeline.Bytes + s.Chunks.Bytes + s.Documents.Bytes + s.Snapshots.Bytes + s.Files.Bytes
}

// Sizes is the result of Measure.
type Sizes struct {
	Threads []Size // of the requested tenant, the largest first; or the requested threads
	Tenants []Size // the largest first
	All     Size
}

// SizeOptions says what to measure.
type SizeOptions struct {
	Tenant  string   // only this tenant, thread by thread; all tenants if empty
	Threads []string // only these threads of the tenant

	// Progress receives what is counted and how many messages were, from one goroutine; may be nil.
	Progress func(stream string, messages int64)
}

// Measure counts what is stored. It reads the sizes of messages rather than the messages,
// except entries of files and objects.
func Measure(ctx context.Context, log *eventlog.Log, o SizeOptions) (Sizes, error) {
	s := sizing{ctx: ctx, log: log, options: o, threads: map[string]*Size{}, tenants: map[string]*Size{}}
	n := log.Config().Names
	steps := []func() error{
		func() error {
			return s.stream(n.Stream(assets.LogStream), n.Prefix+".log.", "", func(z *Size) *Count { return &z.Log })
		},
		func() error {
			return s.stream(n.Stream(assets.TimelineStream), n.Prefix+".timeline.", ".>", func(z *Size) *Count { return &z.Timeline })
		},
		func() error {
			return s.stream(n.Stream(assets.ChunkStream), n.Prefix+".chunk.", ".>", func(z *Size) *Count { return &z.Chunks })
		},
		s.archives, s.documents, s.snapshots, s.contents,
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return Sizes{}, fmt.Errorf("measure: %w", err)
		}
	}
	return s.result(), nil
}

type sizing struct {
	ctx     context.Context //nolint:containedctx // it lives as long as the measurement
	log     *eventlog.Log
	options SizeOptions
	threads map[string]*Size // of the requested tenant, by id
	tenants map[string]*Size
}

// of returns the counters for a thread: its own, if requested, and its tenant's. None if its
// tenant is not requested.
func (s *sizing) of(tenant, thread string) []*Size {
	o := s.options
	if o.Tenant != "" && o.Tenant != tenant || len(o.Threads) > 0 && !slices.Contains(o.Threads, thread) || !events.ValidTenant(tenant) {
		return nil
	}
	out := []*Size{entry(s.tenants, tenant, Size{Tenant: tenant})}
	if o.Tenant != "" && events.IsThread(thread) && thread != "" {
		out = append(out, entry(s.threads, thread, Size{Tenant: tenant, Thread: thread}))
	}
	return out
}

func entry(in map[string]*Size, key string, fresh Size) *Size {
	if in[key] == nil {
		in[key] = &fresh
	}
	return in[key]
}

// stream counts the messages of a stream whose subjects continue with tenant and thread.
func (s *sizing) stream(name, prefix, suffix string, place func(*Size) *Count) error {
	return s.walk(name, s.filters(prefix, suffix), true, func(m jetstream.Msg) error {
		tenant, thread := owner(m.Subject(), prefix)
		for _, z := range s.of(tenant, thread) {
			place(z).add(size(m))
		}
		return nil
	})
}

// filters returns the subjects of what is requested.
func (s *sizing) filters(prefix, suffix string) []string {
	tenant := cmp.Or(s.options.Tenant, "*")
	if len(s.options.Threads) == 0 {
		return []string{prefix + tenant + ".*" + suffix}
	}
	var out []string
	for _, id := range s.options.Threads {
		out = append(out, prefix+tenant+"."+id+suffix)
	}
	return out
}

// owner returns tenant and thread of a subject.
func owner(subject, prefix string) (tenant, thread string) {
	tenant, rest, _ := strings.Cut(strings.TrimPrefix(subject, prefix), ".")
	thread, _, _ = strings.Cut(rest, ".")
	return tenant, thread
}

// headerSize is the header with the size of a body that the server does not send.
const headerSize = "Nats-Msg-Size"

// size returns the size of a message of which only the headers were sent.
func size(m jetstream.Msg) int64 {
	n, err := strconv.ParseInt(m.Headers().Get(headerSize), 10, 64)
	if err != nil {
		return int64(len(m.Data()))
	}
	return n
}

// walk passes on the messages of a stream that exist when it starts.
func (s *sizing) walk(name string, filters []string, headers bool, take func(jetstream.Msg) error) error {
	from := jetstream.OrderedConsumerConfig{FilterSubjects: filters, HeadersOnly: headers}
	counted := int64(0)
	for m, err := range s.log.Streams().List(s.ctx, name, from) {
		if err == nil {
			err = take(m)
		}
		if err != nil {
			return err
		}
		if counted++; s.options.Progress != nil {
			s.options.Progress(name, counted)
		}
	}
	return nil
}

// documents counts the documents of read models, and the files of threads.
func (s *sizing) documents() error {
	for _, p := range documents.NewModels().List() {
		bucket := s.log.Config().Names.Bucket(p.Bucket)
		prefix, suffix := "$KV."+bucket+".", ".>"
		if p.Kind == documents.Threads {
			suffix = ""
		}
		isFile := p.Kind == documents.Files
		err := s.walk("KV_"+bucket, s.filters(prefix, suffix), !isFile, func(m jetstream.Msg) error {
			place, ok := documents.ParsePlace(p.Kind, strings.TrimPrefix(m.Subject(), prefix))
			name, piece := documents.ParsePiece(strings.TrimPrefix(m.Subject(), prefix))
			if !ok && !piece || m.Headers().Get("KV-Operation") != "" {
				return nil
			}
			if !piece {
				name = place.Thread
			}
			tenant, thread, _ := strings.Cut(name, ".")
			for _, z := range s.of(tenant, thread) {
				if piece {
					z.Documents.Bytes += size(m) // its document is counted
					continue
				}
				z.Documents.add(size(m))
				if p.Kind == documents.Threads {
					z.Threads++
				}
				if isFile && z.Thread != "" {
					if doc, _, err := p.Decode(m.Data()); err == nil {
						if f, ok := doc.(*events.FileRecord); ok && f.Digest != "" {
							z.Files.add(f.Size)
						}
					}
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// objects passes on the objects of a store, named tenant/name.
func (s *sizing) objects(bucket string, take func(tenant, name string, bytes int64)) error {
	bucket = s.log.Config().Names.Bucket(bucket)
	return s.walk(objects.Stream(bucket), []string{objects.Entries(bucket) + "*"}, false, func(m jetstream.Msg) error {
		o, ok := objects.Parse(m.Data()) // the audit finds what cannot be parsed
		if tenant, name, named := strings.Cut(o.Name, "/"); ok && named {
			take(tenant, name, o.Size)
		}
		return nil
	})
}

func (s *sizing) archives() error {
	return s.objects(assets.ArchiveBucket, func(tenant, name string, bytes int64) {
		thread, _, _ := strings.Cut(name, "/")
		for _, z := range s.of(tenant, thread) {
			z.Archive.add(bytes)
		}
	})
}

func (s *sizing) snapshots() error {
	return s.objects(assets.SnapshotBucket, func(tenant, thread string, bytes int64) {
		for _, z := range s.of(tenant, thread) {
			z.Snapshots.add(bytes)
		}
	})
}

// contents counts what tenants store. Threads share it.
func (s *sizing) contents() error {
	if len(s.options.Threads) > 0 {
		for _, z := range s.threads { // the tenant's row covers these threads only
			of := s.tenants[z.Tenant]
			of.Files.Number, of.Files.Bytes = of.Files.Number+z.Files.Number, of.Files.Bytes+z.Files.Bytes
		}
		return nil
	}
	return s.objects(assets.FileBucket, func(tenant, _ string, bytes int64) {
		for _, z := range s.of(tenant, "") {
			z.Files.add(bytes)
		}
	})
}

func (s *sizing) result() Sizes {
	var out Sizes
	out.Threads, out.Tenants = sorted(s.threads), sorted(s.tenants)
	for _, z := range out.Tenants {
		out.All.Threads += z.Threads
		for _, c := range []struct{ to, from *Count }{
			{&out.All.Log, &z.Log}, {&out.All.Archive, &z.Archive}, {&out.All.Timeline, &z.Timeline}, {&out.All.Chunks, &z.Chunks}, {&out.All.Documents, &z.Documents},
			{&out.All.Snapshots, &z.Snapshots}, {&out.All.Files, &z.Files},
		} {
			c.to.Number, c.to.Bytes = c.to.Number+c.from.Number, c.to.Bytes+c.from.Bytes
		}
	}
	out.All.sum()
	return out
}

func sorted(of map[string]*Size) []Size {
	out := make([]Size, 0, len(of))
	for _, key := range slices.Sorted(maps.Keys(of)) {
		of[key].sum()
		out = append(out, *of[key])
	}
	slices.SortStableFunc(out, func(a, b Size) int { return cmp.Compare(b.Bytes, a.Bytes) })
	return out
}
