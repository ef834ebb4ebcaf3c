// Package standing assesses audits and backups for the page System, from the reports of their
// programs. It is pure: the same reports at the same time yield the same assessment.
package standing
