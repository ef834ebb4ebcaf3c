package events

import (
	"slices"
	"strings"
)

// Timer returns the subject of a timer: skein.timer.{tenant}.{thread}.{id}.
func (n Names) Timer(tenant, thread, id string) string {
	return n.Prefix + ".timer." + tenant + "." + thread + "." + id
}

// Due returns the subject on which a timer fires: skein.due.{tenant}.{thread}.{id}.
func (n Names) Due(tenant, thread, id string) string {
	return n.Prefix + ".due." + tenant + "." + thread + "." + id
}

// ParseTimer parses the subject of a timer, or that on which it fires.
func (n Names) ParseTimer(subject string) (tenant, thread, id string, ok bool) {
	parts := strings.Split(subject, ".")
	if len(parts) != 5 || parts[0] != n.Prefix || parts[1] != "timer" && parts[1] != "due" || slices.Contains(parts, "") {
		return "", "", "", false
	}
	return parts[2], parts[3], parts[4], true
}
