package server

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/skein-threads/skein/eventlog"
	"github.com/skein-threads/skein/events"
)

// tokenLimits are how many tokens a tenant may use per day.
type tokenLimits struct {
	All     int64            // for every tenant that is not named; 0: unlimited
	Tenants map[string]int64 // 0: unlimited
}

// parseTokenLimits parses limits: a number for every tenant, and TENANT=NUMBER for one. The error
// names every invalid entry.
func parseTokenLimits(list []string) (tokenLimits, error) {
	l := tokenLimits{Tenants: map[string]int64{}}
	var errs []error
	for _, entry := range list {
		tenant, text, named := strings.Cut(entry, "=")
		if !named {
			text = entry
		}
		n, err := strconv.ParseInt(text, 10, 64)
		switch {
		case err != nil || n < 0:
			errs = append(errs, fmt.Errorf("%.128q is not a number of tokens, or TENANT=NUMBER; 0 is unlimited", entry))
		case !named:
			l.All = n
		case !events.ValidTenant(tenant):
			errs = append(errs, fmt.Errorf("%.128q does not name a tenant", entry))
		default:
			l.Tenants[tenant] = n
		}
	}
	return l, errors.Join(errs...)
}

// None reports whether there are no limits, so that counting is unnecessary.
func (l tokenLimits) None() bool {
	for _, n := range l.Tenants {
		if n > 0 {
			return false
		}
	}
	return l.All == 0
}

// of returns a tenant's limit, 0 if it has none.
func (l tokenLimits) of(tenant string) int64 {
	if n, ok := l.Tenants[tenant]; ok {
		return n
	}
	return l.All
}

// tokenBudget counts the tokens that tenants' models use, by day, and refuses further use beyond a
// limit. It is safe for concurrent use.
//
// The counts are in a stream of their own, SKEIN_USAGE, with a subject for each tenant
// and day (UTC), which the server adds up. They outlive every process, and all
// processes see the same values. A count with an id is applied once within two minutes,
// so a worker may retry an unanswered one.
//
// Runs that are active when the last token is used continue: a tenant may exceed its
// limit by the calls in flight at that moment. Usage is what reactors report; a reactor
// that reports none counts none.
type tokenBudget struct {
	js     jetstream.JetStream
	stream jetstream.Stream
	names  events.Names
	limits tokenLimits
	now    func() time.Time
}

// usageStream is the name of the stream of counts, without its prefix.
const usageStream = "USAGE"

// usageKept is how long counts are stored, for operators.
const usageKept = 40 * 24 * time.Hour

// openBudget returns a tokenBudget, and creates the stream of the counts unless it exists. now is
// the clock, usually time.Now.
func openBudget(ctx context.Context, log *eventlog.Log, limits tokenLimits, now func() time.Time) (*tokenBudget, error) {
	names := log.Config().Names
	config := jetstream.StreamConfig{
		Name: names.Stream(usageStream), Description: "Skein: tokens that tenants have used, by day (UTC); the server adds them up.",
		Subjects: []string{names.Usage("*", "*")}, Retention: jetstream.LimitsPolicy, Storage: jetstream.FileStorage, Discard: jetstream.DiscardOld,
		Replicas: log.Config().Replicas, MaxAge: usageKept, MaxMsgsPerSubject: 1, AllowDirect: true, AllowMsgCounter: true, Duplicates: 2 * time.Minute,
	}
	var stream jetstream.Stream
	err := log.Streams().Patiently(ctx, func(ctx context.Context) (err error) {
		stream, err = log.JetStream().CreateOrUpdateStream(ctx, config)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("the stream %s of token budgets: %w", names.Stream(usageStream), err)
	}
	return &tokenBudget{js: log.JetStream(), stream: stream, names: names, limits: limits, now: now}, nil
}

func (b *tokenBudget) subject(tenant string) string {
	return b.names.Usage(tenant, b.now().UTC().Format(time.DateOnly))
}

// usageCount is the body of a count, as the server writes it.
type usageCount struct {
	Val string `json:"val"`
}

// Used returns how many tokens a tenant has used today.
func (b *tokenBudget) Used(ctx context.Context, tenant string) (int64, error) {
	// The leader is asked: another replica may not have what was just added.
	m, err := b.stream.GetLastMsgForSubject(ctx, b.subject(tenant))
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("read the token budget of the tenant %s: %w", tenant, err)
	}
	var c usageCount
	if err := json.Unmarshal(m.Data, &c); err != nil {
		return 0, fmt.Errorf("the token budget of the tenant %s: a count that cannot be read: %w", tenant, err)
	}
	n, err := strconv.ParseInt(c.Val, 10, 64)
	if err != nil { // larger than an integer, so above any limit
		return math.MaxInt64, nil
	}
	return n, nil
}

// Check returns a queue_full if a tenant has used its tokens of today.
func (b *tokenBudget) Check(ctx context.Context, tenant string) error {
	limit := b.limits.of(tenant)
	if limit == 0 {
		return nil
	}
	used, err := b.Used(ctx, tenant)
	if err != nil {
		return err
	}
	if used >= limit {
		return events.Errorf(events.QueueFull, "the tenant has used %d of its %d tokens of today; it gets new ones at midnight UTC", used, limit)
	}
	return nil
}

// Spend counts tokens. A count with an id is applied once.
func (b *tokenBudget) Spend(ctx context.Context, tenant, id string, tokens int64) error {
	if tokens <= 0 {
		return nil
	}
	m := nats.NewMsg(b.subject(tenant))
	m.Header.Set("Nats-Incr", "+"+strconv.FormatInt(tokens, 10))
	if _, err := b.js.PublishMsg(ctx, m, jetstream.WithMsgID(tenant+" "+id)); err != nil {
		return fmt.Errorf("count %d tokens of the tenant %s: %w", tokens, tenant, err)
	}
	return nil
}
