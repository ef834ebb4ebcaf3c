package main

import (
	"fmt"
	"strings"

	"github.com/skein-threads/skein/schema"
)

// shared writes the fields that queries share.
func (p *page) shared() {
	for _, line := range []string{
		"`threadId` (threadRef): The thread. Where it is not required, it finds the answer faster.",
		"`limit` (integer 1-1000): The largest number to return. Its default, or another range, follows in brackets; without a default, an answer has as many as fit.",
		"`cursor`: `nextCursor` of the page before.",
		"`at` ([At](#at)): The state at that version or time. It needs `threadId`.",
		"`minSeq` (integer): The sequence in the log that the answer must show.",
		"`minVersion` (integer): The version of the thread that the answer must show.",
	} {
		p.item("- ", line)
	}
	p.WriteByte('\n')
}

// splitShared separates the fields of a query from those that queries share, as a section
// names them. Every query says apart which of minSeq and minVersion it takes.
func splitShared(fields []schema.Description) (rest []schema.Description, shared []string) {
	for _, f := range fields {
		switch text := sharedField(f); {
		case text == "":
			rest = append(rest, f)
		case f.Name != "minSeq" && f.Name != "minVersion":
			shared = append(shared, text)
		}
	}
	return rest, shared
}

// mostReturned begins the text of a limit.
const mostReturned = "The largest number to return; "

// sharedField returns what a section says of a field that queries share, or "" if the field
// means something else.
func sharedField(f schema.Description) string {
	known := false
	switch f.Name {
	case "threadId":
		known = f.Doc == "The thread." || strings.HasPrefix(f.Doc, "The thread; finds the ") && strings.HasSuffix(f.Doc, " faster.")
	case "cursor":
		known = f.Doc == "nextCursor of the page before."
	case "at":
		doc := strings.TrimSuffix(strings.TrimSuffix(f.Doc, "."), "; needs threadId")
		known = doc == "As it was then" || doc == "As they were then"
	case "minSeq":
		known = f.Doc == "The sequence in the log that the answer must show."
	case "minVersion":
		known = f.Doc == "The version of the thread that the answer must show."
	case "limit":
		return sharedLimit(f)
	}
	if !known {
		return ""
	}
	return nameOf(f)
}

// sharedLimit says the default of a limit, and its range if that is an unusual one.
func sharedLimit(f schema.Description) string {
	without, ok := strings.CutPrefix(f.Doc, mostReturned)
	if !ok || strings.Count(without, ".") != 1 {
		return ""
	}
	var said []string
	if _, bounds, ok := strings.Cut(f.Type, "integer "); ok && bounds != "1-1000" {
		said = append(said, bounds)
	}
	if without != "as many as one answer holds if absent." {
		said = append(said, strings.TrimSuffix(strings.TrimSuffix(without, "."), " if absent"))
	}
	if len(said) == 0 {
		return nameOf(f)
	}
	return fmt.Sprintf("%s (%s)", nameOf(f), strings.Join(said, "; "))
}
