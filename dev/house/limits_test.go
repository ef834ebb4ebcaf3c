package house

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// The clients over NATS have the same limits in each language: what holds of one is said of all.
func TestClients_LimitsAreEqual(t *testing.T) {
	const typescript, python = "clients/typescript/client/src/", "clients/python/src/skein/"
	for _, limit := range []struct {
		name      string
		constants []string // FILE NAME UNIT
	}{
		{name: "messages that wait", constants: []string{typescript + "nats-feed.ts mostMessages 1", python + "_nats_feed.py _MOST_MESSAGES 1", "client/chunk_reader.go chunksAhead 1"}},
		{name: "bytes that wait", constants: []string{typescript + "nats-feed.ts mostBytes 1", python + "_nats_feed.py _MOST_BYTES 1"}},
		{name: "refills", constants: []string{typescript + "nats-events.ts refills 1", python + "_nats_feed.py REFILLS 1", "client/follower.go refillRetries 1"}},
		{name: "known threads", constants: []string{typescript + "nats-events.ts knownThreads 1", python + "_nats_feed.py _KNOWN_THREADS 1", "client/follower.go knownThreads 1"}},
		{name: "first patience", constants: []string{typescript + "nats-request.ts firstPatience 1", python + "_nats_request.py _FIRST_PATIENCE 1000", "client/request.go attemptTimeout 1000"}},
		{name: "longest patience", constants: []string{typescript + "nats-request.ts longestPatience 1", python + "_nats_request.py _LONGEST_PATIENCE 1000", "client/request.go longestAttempt 1000"}},
		{name: "patience after a wait", constants: []string{typescript + "nats-request.ts afterWait 1", python + "_nats_request.py _AFTER_WAIT 1000"}},
		{name: "copies ahead", constants: []string{typescript + "nats-request.ts copiesAhead 1", python + "_nats_request.py _COPIES_AHEAD 1", "client/repeat.go copiesAhead 1"}},
		{name: "room for headers", constants: []string{typescript + "nats-request.ts headersRoom 1", python + "_nats_request.py _HEADERS_ROOM 1"}},
		{name: "a page of events", constants: []string{typescript + "nats-events.ts page 1", python + "_nats_feed.py _PAGE 1"}},
		{name: "a page of chunks", constants: []string{typescript + "nats-chunks.ts page 1", python + "_nats_chunks.py _PAGE 1"}},
		{name: "queries of an execution", constants: []string{typescript + "nats-chunks.ts askEvery 1", python + "_nats_chunks.py _ASK_EVERY 1000", "client/chunk_end.go askEvery 1000"}},
		{name: "grace of the last chunk", constants: []string{typescript + "nats-chunks.ts endGrace 1", python + "_nats_chunks.py _END_GRACE 1000", "client/chunk_end.go endGrace 1000"}},
	} {
		t.Run(limit.name, func(t *testing.T) {
			want := constantIn(t, limit.constants[0])
			for _, other := range limit.constants[1:] {
				if got := constantIn(t, other); got != want {
					t.Errorf("%s is %v, and %s %v", limit.constants[0], want, other, got)
				}
			}
		})
	}
}

// constantIn returns the value of a constant that is given by its file, its name, and what it counts in.
func constantIn(t *testing.T, constant string) float64 {
	t.Helper()
	at := strings.Fields(constant)
	text, err := os.ReadFile(filepath.Join(top(t), filepath.FromSlash(at[0])))
	if err != nil {
		t.Fatal(err)
	}
	value, known := constantValue(string(text), at[1])
	if !known {
		t.Fatalf("%s has no constant %s that is a number", at[0], at[1])
	}
	unit, err := strconv.ParseFloat(at[2], 64)
	if err != nil {
		t.Fatal(err)
	}
	return value * unit
}

// constantValue returns the number that a source in Go, Python or TypeScript declares with a name: also
// one of several that are declared together, one that is shifted, and one that counts seconds.
func constantValue(source, name string) (value float64, known bool) {
	for line := range strings.Lines(source) {
		names, values, declares := strings.Cut(line, " = ")
		if !declares || strings.Contains(names, "(") {
			continue
		}
		names = regexp.MustCompile(`^\s*(export )?(const )?`).ReplaceAllString(names, "")
		values, _, _ = strings.Cut(strings.Split(values, "//")[0], "#")
		all := strings.Split(values, ",")
		for n, one := range strings.Split(names, ",") {
			if strings.TrimSpace(one) == name && n < len(all) {
				return numberIn(all[n])
			}
		}
	}
	return 0, false
}

func numberIn(text string) (value float64, known bool) {
	text = strings.TrimSuffix(strings.TrimSpace(text), ";")
	text = strings.TrimPrefix(strings.TrimSuffix(text, " * time.Second"), "time.")
	if text == "Second" {
		return 1, true
	}
	text, shift, _ := strings.Cut(strings.ReplaceAll(text, "_", ""), " << ")
	value, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return 0, false
	}
	for n, _ := strconv.Atoi(shift); n > 0; n-- {
		value *= 2
	}
	return value, true
}
