// Package standing judges how things are with audits and backups, from what their programs
// reported, for the page System. It is pure: the same reports at the same time have the same
// standing.
package standing
