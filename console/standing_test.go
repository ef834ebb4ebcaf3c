package console

import (
	"strings"
	"testing"
	"time"

	"github.com/skein-threads/skein/events"
)

// What is said of audits and backups follows from the last one of everything that was finished; what
// is partial, of one tenant, or failed, does not make it younger.
func TestOf_TheLastWholeOneCounts(t *testing.T) {
	now := time.Date(2026, 2, 20, 12, 0, 0, 0, time.UTC)
	ago := func(d time.Duration, o events.Operation) events.Operation {
		o.RecordedAt = events.TimeOf(now.Add(-d)).ISO()
		if o.Kind == "" {
			o.Kind = events.AuditOperation
		}
		return o
	}
	const day = 24 * time.Hour
	faults := []events.OperationFault{{Kind: "chain", Count: 2}, {Kind: "broken", Count: 1}}
	for name, c := range map[string]struct {
		list  []events.Operation // the latest first
		good  bool
		said  string
		next  bool
		shown int
	}{
		"none":            {said: "No audit of all tenants was reported yet", next: true},
		"only backups":    {list: []events.Operation{ago(0, events.Operation{Kind: events.BackupOperation})}, said: "No audit of all tenants was reported yet", next: true},
		"just now":        {list: []events.Operation{ago(time.Second, events.Operation{})}, good: true, said: "The last audit of all tenants has just ended", shown: 1},
		"fresh":           {list: []events.Operation{ago(3*time.Hour, events.Operation{})}, good: true, said: "The last audit of all tenants is 3 h old", shown: 1},
		"by a fast clock": {list: []events.Operation{ago(-time.Hour, events.Operation{})}, good: true, said: "The last audit of all tenants has just ended", shown: 1},
		"old":             {list: []events.Operation{ago(12*day+time.Hour, events.Operation{})}, said: "No audit of all tenants for 12 days", next: true, shown: 1},
		"a tenant's":      {list: []events.Operation{ago(time.Hour, events.Operation{Tenant: "acme"}), ago(9*day, events.Operation{})}, said: "No audit of all tenants for 9 days", next: true, shown: 2},
		"a part":          {list: []events.Operation{ago(time.Hour, events.Operation{Partial: true})}, said: "No audit of all tenants was reported yet", next: true, shown: 1},
		"failed only":     {list: []events.Operation{ago(time.Hour, events.Operation{Failed: true})}, said: "No audit of all tenants was reported yet", next: true, shown: 1},
		"failed since":    {list: []events.Operation{ago(time.Hour, events.Operation{Failed: true}), ago(day, events.Operation{})}, said: "The last one failed", next: true, shown: 2},
		"found":           {list: []events.Operation{ago(time.Hour, events.Operation{Findings: faults})}, said: "The last one found faults", next: true, shown: 1},
		"found in one":    {list: []events.Operation{ago(time.Hour, events.Operation{Tenant: "acme", Findings: faults}), ago(day, events.Operation{})}, said: "The last one found faults", next: true, shown: 2},
		"no time":         {list: []events.Operation{{Kind: events.AuditOperation}}, said: "No audit of all tenants was reported yet", next: true, shown: 1},
		"many": {list: []events.Operation{
			ago(time.Hour, events.Operation{}), ago(2*time.Hour, events.Operation{}), ago(3*time.Hour, events.Operation{}),
			ago(4*time.Hour, events.Operation{}), ago(5*time.Hour, events.Operation{}), ago(6*time.Hour, events.Operation{}),
		}, good: true, said: "The last audit of all tenants is 1 h old", shown: 5},
	} {
		audits := standingsOf(c.list, now)[0]
		if audits.Good != c.good || audits.Verdict != c.said || (audits.Next != "") != c.next || len(audits.List) != c.shown {
			t.Errorf("%s: %+v", name, audits)
		}
	}
}

// A row says what came of an operation, of what it was, and how much that was.
func TestRow_SaysWhatItCameTo(t *testing.T) {
	for want, o := range map[string]events.Operation{
		"true|no findings||everything|1,200 threads, 1 commit":                {Kind: events.AuditOperation, Threads: 1200, Commits: 1},
		"false|3 findings|broken 1, chain 2|tenant acme|0 threads, 0 commits": {Kind: events.AuditOperation, Tenant: "acme", Findings: []events.OperationFault{{Kind: "broken", Count: 1}, {Kind: "chain", Count: 2}}},
		"false|failed||a part of acme, the log only|0 threads, 0 commits":     {Kind: events.AuditOperation, Tenant: "acme", Partial: true, LogOnly: true, Failed: true},
		"true|done||everything|4 streams":                                     {Kind: events.BackupOperation, Streams: 4},
		"false|1 finding|chain 1|a part, the log only|1 thread, 2 commits":    {Kind: events.AuditOperation, Partial: true, LogOnly: true, Threads: 1, Commits: 2, Findings: []events.OperationFault{{Kind: "chain", Count: 1}}},
	} {
		row := operationRow{Operation: o}
		good := map[bool]string{true: "true", false: "false"}[row.Good()]
		if got := strings.Join([]string{good, row.Result(), row.Faults(), row.Covered(), row.Amount()}, "|"); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
