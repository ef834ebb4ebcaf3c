//go:build unix

package schema

import (
	"bytes"
	stdjson "encoding/json"
	"reflect"
	"syscall"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/skein-threads/skein/events"
)

// BenchmarkDoorPrice reads the thread.commit of BenchmarkDoor in two ways, ten times each
// in turns: with this package's reader, and with the JSON Schema library followed by a
// plain decode into the same Go types. It reports the processor time of each, with the
// garbage collection. ADR 3 has what it measured:
//
//	go test ./schema -run '^$' -bench DoorPrice -count 10 -benchtime 100x -cpu 1
func BenchmarkDoorPrice(b *testing.B) {
	v := newValidator(b)
	raw := commitRequest()
	readWithLibrary(b, v, raw) // which compiles the schemas
	const turn = 10
	var reader, library time.Duration
	for b.Loop() {
		begun := processorTime(b)
		for range turn {
			readWithReader(b, v, raw)
		}
		between := processorTime(b)
		for range turn {
			readWithLibrary(b, v, raw)
		}
		reader += between - begun
		library += processorTime(b) - between
	}
	micros := func(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e3 / float64(b.N) / turn }
	b.ReportMetric(micros(reader), "reader-cpu-us")
	b.ReportMetric(micros(library), "library-cpu-us")
	b.ReportMetric(0, "ns/op") // the time of both together says nothing
}

// processorTime returns how long this process has computed.
func processorTime(b *testing.B) time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// readWithReader reads a request as the command service does.
func readWithReader(b *testing.B, v *Validator, raw []byte) {
	request, err := v.DecodeRequest(raw)
	if err != nil {
		b.Fatal(err)
	}
	commit, err := v.DecodeTrusted("thread.commit", request.Data)
	if err != nil {
		b.Fatal(err)
	}
	for _, c := range commit.(events.CommitThread).Commands {
		if _, err := v.DecodeTrusted(c.Command, c.Data); err != nil {
			b.Fatal(err)
		}
	}
}

// readWithLibrary does the least that the library needs: the body is parsed for it once,
// and each schema is applied to its part of that tree.
func readWithLibrary(b *testing.B, v *Validator, raw []byte) {
	decoder := stdjson.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	var tree map[string]any
	if err := decoder.Decode(&tree); err != nil {
		b.Fatal(err)
	}
	check := func(path string, value any) {
		if err := v.checkInstance(path, value); err != nil {
			b.Fatal(err)
		}
	}
	check(resourcePath("request"), tree)
	check(commandPath("thread.commit"), tree["data"])
	var request events.Request
	if err := json.Unmarshal(raw, &request); err != nil {
		b.Fatal(err)
	}
	var commit events.CommitThread
	if err := json.Unmarshal(request.Data, &commit); err != nil {
		b.Fatal(err)
	}
	parts := tree["data"].(map[string]any)["commands"].([]any)
	for i, c := range commit.Commands {
		check(commandPath(c.Command), parts[i].(map[string]any)["data"])
		target := reflect.New(v.commands[c.Command].goType)
		if err := json.Unmarshal(c.Data, target.Interface()); err != nil {
			b.Fatal(err)
		}
	}
}
