package console

import (
	"fmt"
	"strings"
	"time"

	"github.com/skein-threads/skein/console/chart"
	"github.com/skein-threads/skein/events"
)

const (
	// shownOperations is how many operations of a kind a standing has.
	shownOperations = 5

	// staleAfter is the age from which an audit or a backup is called old.
	staleAfter = 7 * 24 * time.Hour
)

// standing is how things are with a kind of operation.
type standing struct {
	ID, Title string
	Good      bool
	Verdict   string // the age of the last one of everything, or what is wrong
	Next      string // what to do; empty: nothing
	Command   string // that does it
	Empty     string // what an empty list says
	List      []operationRow
}

// operationRow is an operation in a standing.
type operationRow struct{ events.Operation }

// standingsOf returns how things are with audits and backups. list has the latest recorded first.
func standingsOf(list []events.Operation, now time.Time) []*standing {
	audits := &standing{ID: "audits", Title: "Audits", Command: "skein audit verify --all-tenants", Empty: "skein audit verify reports here what it found."}
	backups := &standing{ID: "backups", Title: "Backups", Command: "skein backup DIR", Empty: "skein backup reports here when it has ended."}
	audits.judge(events.AuditOperation, "audit of all tenants", list, now)
	backups.judge(events.BackupOperation, "backup", list, now)
	return []*standing{audits, backups}
}

// judge fills a standing from the operations of its kind. Only one that was finished, and covered
// everything, counts for the age.
func (s *standing) judge(kind events.OperationKind, name string, list []events.Operation, now time.Time) {
	var whole *events.Operation
	for i := range list {
		o := &list[i]
		if o.Kind != kind {
			continue
		}
		if whole == nil && o.Whole() {
			whole = o
		}
		if len(s.List) < shownOperations {
			s.List = append(s.List, operationRow{*o})
		}
	}
	s.Verdict, s.Next = "No "+name+" was reported yet", "Run one, and again every few days:"
	if whole == nil {
		return
	}
	recorded, err := events.ParseTime(whole.RecordedAt)
	if err != nil { // a newer Skein wrote it in another form
		return
	}
	age := max(now.Sub(recorded.Go()), 0)
	switch {
	case age >= staleAfter:
		s.Verdict, s.Next = fmt.Sprintf("No %s for %d days", name, int(age/(24*time.Hour))), "Run one, best on a schedule:"
	case whole.Found() > 0 || s.List[0].Found() > 0:
		s.Verdict, s.Next = "The last one found faults", "Run it again to see which threads they are in:"
	case s.List[0].Failed:
		s.Verdict, s.Next = "The last one failed", "Its output says why. Run it again:"
	default:
		s.Good, s.Verdict, s.Next = true, "The last "+name+" is "+chart.Duration(age.Truncate(time.Minute).Microseconds())+" old", ""
		if age < time.Minute {
			s.Verdict = "The last " + name + " has just ended"
		}
	}
}

// Result returns what came of an operation.
func (o operationRow) Result() string {
	switch {
	case o.Failed:
		return "failed"
	case o.Found() > 0:
		return fmt.Sprintf("%d %s", o.Found(), plural(o.Found(), "finding"))
	case o.Kind == events.AuditOperation:
		return "no findings"
	default:
		return "done"
	}
}

// Good reports whether nothing is wrong.
func (o operationRow) Good() bool { return !o.Failed && o.Found() == 0 }

// Faults returns the findings by kind.
func (o operationRow) Faults() string {
	var texts []string
	for _, f := range o.Findings {
		texts = append(texts, fmt.Sprintf("%s %d", f.Kind, f.Count))
	}
	return strings.Join(texts, ", ")
}

// Covered returns what an operation was done to.
func (o operationRow) Covered() string {
	text := "everything"
	switch {
	case o.Partial && o.Tenant != "":
		text = "a part of " + o.Tenant
	case o.Partial:
		text = "a part"
	case o.Tenant != "":
		text = "tenant " + o.Tenant
	}
	if o.LogOnly {
		text += ", the log only"
	}
	return text
}

// Amount returns how much it was.
func (o operationRow) Amount() string {
	if o.Kind == events.BackupOperation {
		return fmt.Sprintf("%d %s", o.Streams, plural(o.Streams, "stream"))
	}
	return fmt.Sprintf("%s %s, %s %s", chart.Count(o.Threads), plural(o.Threads, "thread"), chart.Count(o.Commits), plural(o.Commits, "commit"))
}

func plural(n int64, noun string) string {
	if n == 1 {
		return noun
	}
	return noun + "s"
}

// Took returns how long it took.
func (o operationRow) Took() string { return chart.Duration(o.TookMs * 1000) }
