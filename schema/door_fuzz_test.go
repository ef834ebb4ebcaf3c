package schema

import (
	"math/rand/v2"
	"testing"

	"github.com/skein-threads/skein/events"
)

// The tests of this file hold the reader to the JSON Schemas: both take the same
// documents, and refuse the others at the same place.

func TestDoorAgreesWithTheSchemas(t *testing.T) {
	v := newValidator(t)
	for seed := range rounds(1000) {
		for _, wrong := range []float64{0, 0.02, 0.2} {
			inventCommand(t, v, seed, wrong)
			inventQuery(t, v, seed, wrong)
			inventRequest(t, v, seed, wrong)
		}
	}
}

// rounds returns n, and a tenth of it in the short form of the tests.
func rounds(n uint64) uint64 {
	if testing.Short() {
		return n / 10
	}
	return n
}

func newInventor(seed uint64, wrong float64) inventor {
	return inventor{rand.New(rand.NewPCG(seed, 1)), wrong}
}

func inventCommand(t *testing.T, v *Validator, seed uint64, wrong float64) {
	t.Helper()
	g := newInventor(seed, wrong)
	name := pick(g, events.Commands()).Name
	command(t, v, name, []byte(g.document(v.commands[name].shape)))
}

func inventQuery(t *testing.T, v *Validator, seed uint64, wrong float64) {
	t.Helper()
	g := newInventor(seed, wrong)
	name := pick(g, events.Queries()).Name
	query(t, v, name, []byte(g.document(v.queries[name].shape)))
}

func inventRequest(t *testing.T, v *Validator, seed uint64, wrong float64) {
	t.Helper()
	g := newInventor(seed, wrong)
	request(t, v, []byte(g.document(v.request.shape)))
}

func command(t *testing.T, v *Validator, name string, raw []byte) {
	t.Helper()
	if len(raw) == 0 {
		return // stands for {}, which the schema does not know
	}
	_, err := v.DecodeCommand(name, raw)
	agree(t, v, commandPath(name), raw, err)
	_, _ = v.DecodeTrusted(name, raw) // must neither panic nor stand still, whatever raw is
}

func query(t *testing.T, v *Validator, name string, raw []byte) {
	t.Helper()
	if len(raw) == 0 {
		return
	}
	_, err := v.DecodeQuery(name, raw)
	agree(t, v, queryPath(name), raw, err)
}

func request(t *testing.T, v *Validator, raw []byte) {
	t.Helper()
	_, err := v.DecodeRequest(raw)
	agree(t, v, resourcePath("request"), raw, err)
}

func FuzzDoorCommand(f *testing.F) {
	v := newValidator(f)
	names := events.Commands()
	for seed := range uint64(200) {
		g := newInventor(seed, 0.02)
		i := g.IntN(len(names))
		f.Add(uint8(i), []byte(g.document(v.commands[names[i].Name].shape)), seed)
	}
	for i, c := range names {
		for _, data := range realData(f, v, c.Name) {
			f.Add(uint8(i), data, uint64(i))
		}
	}
	f.Fuzz(func(t *testing.T, i uint8, raw []byte, seed uint64) {
		command(t, v, names[int(i)%len(names)].Name, raw)
		inventCommand(t, v, seed, 0.05)
	})
}

// realData returns data that real commands of that name carry.
func realData(t testing.TB, v *Validator, name string) [][]byte {
	t.Helper()
	r, err := v.DecodeRequest(commitRequest())
	if err != nil {
		t.Fatal(err)
	}
	commit, err := v.DecodeCommand("thread.commit", r.Data)
	if err != nil {
		t.Fatal(err)
	}
	var out [][]byte
	for _, c := range commit.(events.CommitThread).Commands {
		if c.Command == name {
			out = append(out, c.Data)
		}
	}
	switch name {
	case "thread.commit":
		out = append(out, r.Data)
	case "item.create":
		out = append(out, []byte(`{"item":`+userItem+`}`))
	}
	return out
}

func FuzzDoorQuery(f *testing.F) {
	v := newValidator(f)
	names := events.Queries()
	for seed := range uint64(200) {
		g := newInventor(seed, 0.02)
		i := g.IntN(len(names))
		f.Add(uint8(i), []byte(g.document(v.queries[names[i].Name].shape)), seed)
	}
	f.Fuzz(func(t *testing.T, i uint8, raw []byte, seed uint64) {
		query(t, v, names[int(i)%len(names)].Name, raw)
		inventQuery(t, v, seed, 0.05)
	})
}

func FuzzDoorRequest(f *testing.F) {
	v := newValidator(f)
	f.Add(commitRequest(), uint64(0))
	for seed := range uint64(200) {
		f.Add([]byte(newInventor(seed, 0.02).document(v.request.shape)), seed)
	}
	f.Fuzz(func(t *testing.T, raw []byte, seed uint64) {
		request(t, v, raw)
		inventRequest(t, v, seed, 0.05)
	})
}

// FuzzPattern holds the checks that are written by hand to the expressions.
func FuzzPattern(f *testing.F) {
	for _, s := range texts() {
		f.Add(s)
		f.Add(s[1 : len(s)-1])
	}
	for _, s := range []string{
		"a:0", "a:00", "a:01", "a:7", "a:123456789", "a:1234567890", "a:", ":1", "a:1:1", "a:/", "a::", "a:9/", "0:9", "a:1a", "a:-1",
		"2026-02-20T10:00:00Z", "2026-02-20T10:00:00", "2026-02-20T10:00:0Z", "2026-02-20T10:00:00.Z", "2026-02-20T10:00:00.1Z", "2026-02-20T10:00:00.123456789Z",
		"2026-02-20T10:00:00.1234567890Z", "2026-02-20T10:00:00,1Z", "2026-02-20T10:00:00.1:Z", "2026-02-20T10:00:00.1/Z", "2026-02-20 10:00:00Z", "2026-02-20T10:00:0:Z", "2026-02-20T10:00:0/Z",
		"9999-99-99T99:99:99.999999999Z", "0000-00-00T00:00:00.000000000Z", "2026-02-20T10:00:00+", "Z", "2026-02-20T10:00:00z",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for _, name := range patternNames() {
			// A decoded text is valid UTF-8; for other bytes nothing is promised.
			if valid := []rune(s); string(valid) != s {
				return
			}
			for _, tried := range []string{s, "T-" + s, "thrd_" + s, "key:" + s, s + ":0"} {
				if got, want := matcher(name)(tried), events.Pattern(name).MatchString(tried); got != want {
					t.Errorf("%s of %q: by hand %t, by expression %t", name, tried, got, want)
				}
			}
		}
	})
}
