package audit

import (
	"context"
	"fmt"
	"strings"

	"github.com/skein-threads/skein/projections/documents"
	"github.com/skein-threads/skein/projections/rebuild"
)

// documents checks that every document of every read model equals the fold of the log.
func (v *verifier) documents(ctx context.Context) error {
	v.progress(StageDocuments, 0, 0, 0)
	var names []string
	for _, model := range documents.NewModels().List() {
		there, err := v.hasStream(ctx, "KV_"+v.bucket(model.Bucket))
		switch {
		case err != nil:
			return fmt.Errorf("the bucket of %s: %w", model.Name, err)
		case there:
			names = append(names, model.Name)
		default:
			v.find(Finding{Kind: KindDocument, Bucket: v.bucket(model.Bucket), Key: "*", Detail: fmt.Sprintf(
				"%s: the bucket is not there; Skein makes it when it starts, and skein replay %s fills it", model.Name, model.Name)})
		}
	}
	if len(names) == 0 {
		return nil
	}
	report, err := rebuild.Verify(ctx, v.log, rebuild.Scope{Tenant: v.options.Tenant, Threads: v.options.Threads}, names...)
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
