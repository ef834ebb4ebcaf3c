package events

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Position is the place of an event in the log: the sequence of its commit and its place there. It
// names the log that it is of, because a log that was restored or replaced has the same sequences
// for other commits.
type Position struct {
	Seq   int64
	Place int64  // of the event in its commit, from 0; after all of them: the whole commit
	Log   string // see HistoryEnd.Log; empty: unknown, as in positions of older versions
}

// wholeCommit is the place after all events of a commit.
const wholeCommit = math.MaxInt64

// String returns the position as text: 1204.0.k3f9, or 1204 for a whole commit of an unknown log.
func (p Position) String() string {
	if p.Place == wholeCommit && p.Log == "" {
		return strconv.FormatInt(p.Seq, 10)
	}
	text := fmt.Sprintf("%d.%d", p.Seq, p.Place)
	if p.Log != "" {
		text += "." + p.Log
	}
	return text
}

// Before reports whether p comes before q in one log.
func (p Position) Before(q Position) bool {
	return p.Seq < q.Seq || p.Seq == q.Seq && p.Place < q.Place
}

// ParsePosition parses the text of a position: SEQ, SEQ.PLACE or SEQ.PLACE.LOG. A sequence alone is
// the position of a whole commit.
func ParsePosition(text string) (p Position, ok bool) {
	seq, rest, more := strings.Cut(text, ".")
	place, log, named := strings.Cut(rest, ".")
	p.Place = wholeCommit
	if p.Seq, ok = parseNatural(seq); !ok {
		return Position{}, false
	}
	if more {
		if p.Place, ok = parseNatural(place); !ok {
			return Position{}, false
		}
	}
	if named { // its first character is a letter
		if p.Log = log; !ValidID(log) || log[0] <= '9' {
			return Position{}, false
		}
	}
	return p, true
}

// parseNatural parses decimal digits, as a number that is exact in JSON.
func parseNatural(text string) (int64, bool) {
	n, err := strconv.ParseUint(text, 10, 53)
	return int64(n), err == nil
}

// CheckPosition returns a position_ahead unless the log is the named one, or none is named, and has
// reached a sequence.
func (e *HistoryEnd) CheckPosition(log string, seq int64) error {
	if err := CheckLog(log, e.Log); err != nil {
		return err
	}
	if seq <= e.LastSeq {
		return nil
	}
	err := Errorf(PositionAhead, "the position is sequence %d, and the log ends at %d: it was restored to an earlier state, or is another one; "+
		"read again from the start", seq, e.LastSeq)
	err.Details = &ErrorDetails{Seq: e.LastSeq, Log: e.Log}
	return err
}

// CheckLog returns a position_ahead if a position names another log than the one that there is. A
// position that names none may be of any.
func CheckLog(named, actual string) error {
	if named == "" || actual == "" || named == actual {
		return nil
	}
	err := Errorf(PositionAhead, "the position is of the log %.40q, and this is the log %s: it was restored, or is another one; read again from the start",
		named, actual)
	err.Details = &ErrorDetails{Log: actual}
	return err
}

// VersionAhead returns a position_ahead for a version that a thread has not reached.
func VersionAhead(thread string, version, current int64, log string) *Error {
	err := Errorf(PositionAhead, "the position is version %d of thread %s, which is at version %d: the log was restored to an earlier state, or is another one; "+
		"read the thread again from its start", version, clip(thread), current)
	err.Details = &ErrorDetails{CurrentVersion: &current, Log: log}
	return err
}

// ChunkAhead returns a position_ahead for a chunk that a run has not written. next is the index of
// the next one that it writes.
func ChunkAhead(execution string, index, next int64, log string) *Error {
	err := Errorf(PositionAhead, "the position is chunk %d of execution %s, which has written %d: it began again, or its newest chunks were lost; read its chunks again from 0",
		index, clip(execution), next)
	err.Details = &ErrorDetails{Log: log}
	return err
}
