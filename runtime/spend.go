package runtime

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/skein-threads/skein/events"
)

// Budget limits what the models of a tenant may use. Package budget implements it.
type Budget interface {
	// Check reports, as a queue_full, that the tenant has no tokens left.
	Check(ctx context.Context, tenant string) error
	// Spend counts the usage of a call of a model. Repeats with the same id count once.
	Spend(ctx context.Context, tenant, id string, tokens int64) error
}

const (
	spendTries = 4
	spendTime  = 2 * time.Second // of each call to the Budget
	mostTokens = 1 << 40         // limit of one call, whatever the reactor reports
)

// checkBudget returns an error if no model may be called now.
func (t reactorCall) checkBudget() error {
	if t.w.cfg.Budget == nil {
		return nil
	}
	err := t.w.cfg.Budget.Check(t.ctx, t.job.Tenant)
	if err == nil || events.HasCode(err, events.QueueFull) {
		return err
	}
	t.logger.Warn().Err(err).Msg("cannot read a token budget")
	return &RetryError{NotMade: true, Err: errors.New("the tenant's token budget cannot be read now")}
}

// recordUsage counts the usage of a model's call, even if its answer fails afterwards, since
// it was paid for.
func (t reactorCall) recordUsage(in *StepInput, got *Reaction) {
	if t.w.cfg.Budget == nil || got == nil || got.Usage == nil {
		return
	}
	used := got.Usage.Tokens()
	id := fmt.Sprintf("%s:%s:%d:%d", t.job.Execution, in.StepID, t.run.Token, in.Attempt)
	var err error
	for range spendTries {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.ctx), spendTime)
		err = t.w.cfg.Budget.Spend(ctx, t.job.Tenant, id, min(used, mostTokens))
		cancel()
		if err == nil {
			return
		}
	}
	t.logger.Error().Err(err).Int64("tokens", used).Msg("cannot count tokens; the tenant's budget does not include them")
}
