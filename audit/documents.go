package audit

import (
	"context"
	"fmt"
	"strings"

	"github.com/rs/zerolog"

	"github.com/skein-threads/skein/projections"
)

// documents checks that every document of every read model is what the log says.
func (v *verifier) documents(ctx context.Context) error {
	v.progress(StageDocuments, 0, 0)
	runner := projections.New(v.log, projections.Config{}, zerolog.Nop(), nil)
	report, err := runner.Verify(ctx, projections.Scope{Tenant: v.options.Tenant, Threads: v.options.Threads})
	if err != nil {
		return fmt.Errorf("the read models: %w", err)
	}
	v.summary.Documents += int(report.Documents)
	for _, d := range report.Differences {
		tenant, rest, _ := strings.Cut(d.Key, ".")
		thread, _, _ := strings.Cut(rest, ".")
		v.find(Finding{Kind: KindDocument, Tenant: tenant, Thread: thread, Bucket: d.Bucket, Key: d.Key, Seq: d.LogSeq,
			Detail: fmt.Sprintf("%s: %s; mend it with: skein replay %s", d.Projection, d.Kind, d.Projection)})
	}
	if more := int(report.Found) - len(report.Differences); more > 0 {
		v.find(Finding{Kind: KindDocument, Detail: fmt.Sprintf("and %d documents more", more)})
	}
	return nil
}
