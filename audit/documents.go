package audit

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/skein-threads/skein/projections/documents"
	"github.com/skein-threads/skein/projections/rebuild"
)

// foldCheck folds a thread for the comparison of its documents. What differs is reported at
// the end of the verification.
type foldCheck struct{ *rebuild.Fold }

// End implements ThreadCheck.
func (f foldCheck) End(context.Context) ([]Finding, error) { return nil, f.Fold.End() }

// listDerived reads the timeline, and at the same time the documents of every read model, if all
// are to be checked. They are compared with the log as it is read.
func (v *verifier) listDerived(ctx context.Context) error {
	if v.options.LogOnly || !v.options.Range.whole() {
		return nil
	}
	if err := v.models(ctx); err != nil {
		return err
	}
	reading, stop := context.WithCancel(ctx)
	var running sync.WaitGroup
	var unread error
	if len(v.named) > 0 {
		running.Go(func() {
			v.folds, unread = rebuild.Begin(reading, v.log, rebuild.Scope{Tenant: v.options.Tenant, Threads: v.options.Threads}, v.named...)
		})
	}
	err := v.listShown(ctx)
	if err != nil {
		stop()
	}
	v.progress(StageDocuments, 0, 0, 0)
	running.Wait()
	stop()
	if err != nil || unread == nil {
		return err
	}
	v.named, v.folds = nil, nil
	return v.damaged(ctx, fmt.Errorf("the read models: %w", unread), Finding{Kind: KindDocument})
}

// models names the read models whose buckets exist, and reports the others.
func (v *verifier) models(ctx context.Context) error {
	for _, model := range documents.NewModels().List() {
		there, err := v.hasStream(ctx, "KV_"+v.bucket(model.Bucket))
		switch {
		case err != nil:
			return fmt.Errorf("the bucket of %s: %w", model.Name, err)
		case there:
			v.named = append(v.named, model.Name)
		default:
			v.find(Finding{Kind: KindDocument, Bucket: v.bucket(model.Bucket), Key: "*", Detail: fmt.Sprintf(
				"%s: the bucket is not there; Skein makes it when it starts, and skein replay %s fills it", model.Name, model.Name)})
		}
	}
	return nil
}

// documents checks that every document of every read model equals the fold of the log, which was
// folded as it was read.
func (v *verifier) documents(ctx context.Context) error {
	if v.folds == nil {
		return nil
	}
	report, err := v.folds.End(ctx)
	if err != nil {
		return v.damaged(ctx, fmt.Errorf("the read models: %w", err), Finding{Kind: KindDocument})
	}
	v.summary.Documents += int(report.Documents)
	for _, d := range report.Differences {
		tenant, rest, _ := strings.Cut(d.Key, ".")
		thread, _, _ := strings.Cut(rest, ".")
		v.find(Finding{Kind: KindDocument, Tenant: tenant, Thread: thread, Bucket: d.Bucket, Key: d.Key, Seq: d.LogSeq,
			Detail: fmt.Sprintf("%s: %s; fix it with: skein replay %s", d.Projection, d.Kind, d.Projection)})
	}
	if more := int(report.Found) - len(report.Differences); more > 0 {
		v.find(Finding{Kind: KindDocument, Detail: fmt.Sprintf("and %d more documents", more)})
	}
	return nil
}
