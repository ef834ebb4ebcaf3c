package archive

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/skein-threads/skein/eventlog"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/retry"
	"github.com/skein-threads/skein/projections/documents"
)

// Lease is the lease under which one process of an installation applies policies. Two
// processes that do so do no harm.
const Lease = "archive"

// Policy is the retention policy of one tenant.
type Policy struct {
	Tenant string
	Idle   time.Duration
}

// Policies returns the current retention policies: definitions of the kind policy with the name
// retention. They are in the order in which they were created or changed.
func Policies(ctx context.Context, log *eventlog.Log) ([]Policy, error) {
	var out []Policy
	err := eachRetention(ctx, log, func(tenant string, p events.PolicyDefinition) {
		if p.ArchiveAfterDays != nil && *p.ArchiveAfterDays > 0 {
			out = append(out, Policy{Tenant: tenant, Idle: days(*p.ArchiveAfterDays)})
		}
	})
	return out, err
}

func days(n int64) time.Duration { return time.Duration(n) * 24 * time.Hour }

// eachRetention calls see with each tenant's retention policy.
func eachRetention(ctx context.Context, log *eventlog.Log, see func(tenant string, p events.PolicyDefinition)) error {
	model := documents.NewModels().Of(documents.Definitions)
	ref := events.DefinitionRef{Kind: events.PolicyKind, Name: events.RetentionPolicy}
	const page = 500
	for from := uint64(1); ; {
		got, err := log.Bucket(model.Bucket).Range(ctx, "*."+ref.Key(), from, page)
		if err != nil {
			return fmt.Errorf("read retention policies: %w", err)
		}
		for _, m := range got {
			from = m.Seq + 1
			tenant, _, ok := strings.Cut(m.Subject, ".")
			doc, _, err := model.Decode(m.Data)
			if !ok || err != nil {
				continue // the audit reports it
			}
			value, err := events.DecodeDefinition(events.PolicyKind, doc.(*events.Definition).Definition)
			if p, is := value.(events.PolicyDefinition); err == nil && is {
				see(tenant, p)
			}
		}
		if len(got) < page {
			return nil
		}
	}
}

// Run applies the policies of all tenants at once and then periodically, until ctx ends. Call it
// under the lease [Lease]; see eventlog.Log.Hold.
func (a *Archiver) Run(ctx context.Context) error {
	settled := map[uint64]struct{}{} // the last commits of threads that need no work until their next commit
	for {
		if err := a.apply(ctx, settled); err != nil && ctx.Err() == nil {
			a.logger.Warn().Err(err).Msg("apply retention policies: incomplete; retrying")
		}
		if !retry.Sleep(ctx, a.cfg.Every) {
			return nil
		}
	}
}

// apply applies each policy once.
func (a *Archiver) apply(ctx context.Context, settled map[uint64]struct{}) error {
	policies, err := Policies(ctx, a.log)
	for _, p := range policies {
		last := map[string]uint64{}
		pass := func(id string, seq uint64) bool {
			_, known := settled[seq]
			if !known {
				last[id] = seq
			}
			return known
		}
		began := a.cfg.Now()
		done := func(r Result) {
			switch r.Outcome {
			case Already, Busy, Ended:
				settled[last[r.Thread]] = struct{}{}
				return
			case Archived, Finished:
				a.logger.Info().Str("tenant", r.Tenant).Str("thread", r.Thread).Int64("commits", r.Commits).Int64("bytes", r.Bytes).Msg("archived a cold thread")
			}
			a.pace(ctx, &began)
		}
		failed := func(id string, err error) {
			a.logger.Error().Err(err).Str("tenant", p.Tenant).Str("thread", id).Msg("archive cold thread: it stays in the log")
			a.pace(ctx, &began)
		}
		if err := a.Cold(ctx, p.Tenant, Options{Idle: p.Idle}, pass, done, failed); err != nil {
			return err
		}
	}
	return err
}

// pace waits until the rate limit allows archiving the next thread.
func (a *Archiver) pace(ctx context.Context, began *time.Time) {
	least := time.Duration(float64(time.Second) / a.cfg.Rate)
	retry.Sleep(ctx, least-a.cfg.Now().Sub(*began))
	*began = a.cfg.Now()
}
