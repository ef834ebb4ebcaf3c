package events

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"slices"
	"strings"
	"testing"
)

// history returns three consecutive commits of one thread.
func history(t testing.TB) []*Commit {
	t.Helper()
	var commits []*Commit
	chain, list := "", turn()
	for _, part := range [][]Event{list[:2], list[2:6], list[6:]} {
		c, err := NewCommit(chain, part)
		if err != nil {
			t.Fatal(err)
		}
		chain = c.Chain
		commits = append(commits, c)
	}
	return commits
}

// broken returns the index of the first commit whose chain does not follow, or -1.
func broken(commits []*Commit) int {
	chain := ""
	for i, c := range commits {
		if chain = Chain(chain, c.Body); chain != c.Chain {
			return i
		}
	}
	return -1
}

func TestChain_Values(t *testing.T) {
	commits := history(t)
	previous := ""
	for i, c := range commits {
		sum := sha256.Sum256([]byte(previous + string(c.Body)))
		if previous = hex.EncodeToString(sum[:]); c.Chain != previous {
			t.Errorf("commit %d has chain %s, want %s", i, c.Chain, previous)
		}
	}
	const abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" // FIPS 180-4
	if got := Chain("a", []byte("bc")); got != abc {
		t.Errorf("chain of abc is %s", got)
	}
	if at := broken(commits); at != -1 {
		t.Errorf("an honest history is broken at %d", at)
	}
}

// Altering, dropping or reordering a commit breaks the chain.
func TestChain_BreaksOnTampering(t *testing.T) {
	for name, c := range map[string]struct {
		do func([]*Commit) []*Commit
		at int
	}{
		"one byte altered": {func(l []*Commit) []*Commit {
			l[1].Body = bytes.Replace(l[1].Body, []byte("streaming"), []byte("Streaming"), 1)
			return l
		}, 1},
		"the first dropped":  {func(l []*Commit) []*Commit { return l[1:] }, 0},
		"the second dropped": {func(l []*Commit) []*Commit { return slices.Delete(l, 1, 2) }, 1},
		"two swapped":        {func(l []*Commit) []*Commit { l[0], l[1] = l[1], l[0]; return l }, 0},
		"one twice":          {func(l []*Commit) []*Commit { return slices.Insert(l, 1, l[1]) }, 2},
		"one put in": {func(l []*Commit) []*Commit {
			c, err := NewCommit(l[0].Chain, stream(samples()[2]))
			if err != nil {
				t.Fatal(err)
			}
			return slices.Insert(l, 1, c)
		}, 2},
	} {
		if at := broken(c.do(history(t))); at != c.at {
			t.Errorf("%s: noticed at %d, want %d", name, at, c.at)
		}
	}
}

func TestDecodeCommit_RoundTrip(t *testing.T) {
	for i, c := range history(t) {
		c.Seq = uint64(10 + i)
		got, err := reread(c)
		if err != nil {
			t.Fatal(err)
		}
		if got.Tenant != tenant || got.Thread != thread || got.Seq != c.Seq || got.Version != c.Version || got.Chain != c.Chain ||
			got.First() != c.First() || len(got.Events) != len(c.Events) || !bytes.Equal(got.Body, c.Body) {
			t.Errorf("commit %d: %+v, want %+v", i, got, c)
		}
		for k := range c.Events {
			if !same(got.Events[k], c.Events[k]) {
				t.Errorf("event %d of commit %d: %#v, want %#v", k, i, got.Events[k], c.Events[k])
			}
			if one := body(t, &c.Events[k]); !bytes.Equal(got.Events[k].Raw(), one) {
				t.Errorf("event %d of commit %d: raw %s, want %s", k, i, got.Events[k].Raw(), one)
			}
		}
		if again := commitOf(t, got.Events); !bytes.Equal(again.Body, c.Body) {
			t.Errorf("commit %d was encoded again as %s", i, again.Body)
		}
	}
}

// A batch in another layout, and one with an event in another layout, decode to the same.
func TestDecodeCommit_AnyLayout(t *testing.T) {
	c := commitOf(t, turn())
	for name, body := range map[string][]byte{
		"spaces":        indent(t, c.Body),
		"space around":  []byte(" " + string(c.Body) + "\n"),
		"one odd event": bytes.Replace(c.Body, []byte("zoë"), []byte(`zo\u00eb`), 1),
		"the last odd":  bytes.Replace(c.Body, []byte(`"threadversion":12`), []byte(`"more":[{"}":"]"}],"threadversion":12`), 1),
	} {
		if bytes.Equal(body, c.Body) {
			t.Fatalf("%s: nothing was changed", name)
		}
		got, err := DecodeCommit(tenant, thread, 1, 12, "", body)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if again := commitOf(t, got.Events); !bytes.Equal(again.Body, c.Body) {
			t.Errorf("%s:\n%s\nwant\n%s", name, again.Body, c.Body)
		}
	}
}

func TestDecodeCommit_RefusesMalformed(t *testing.T) {
	c := commitOf(t, turn())
	text := string(c.Body)
	for name, bad := range map[string]struct {
		tenant, thread string
		version        int64
		body           string
	}{
		"another tenant":     {"other", thread, 12, text},
		"another thread":     {tenant, otherID, 12, text},
		"a version too high": {tenant, thread, 13, text},
		"a version too low":  {tenant, thread, 11, text},
		"no version":         {tenant, thread, 0, text},
		"a gap inside":       {tenant, thread, 12, strings.Replace(text, `"threadversion":5`, `"threadversion":6`, 1)},
		"one of another":     {tenant, thread, 12, strings.Replace(text, "/acme/threads/"+thread+`","type":"step.created"`, "/acme/threads/"+otherID+`","type":"step.created"`, 1)},
		"no events":          {tenant, thread, 12, "[]"},
		"no bytes":           {tenant, thread, 12, ""},
		"null":               {tenant, thread, 12, "null"},
		"null inside":        {tenant, thread, 1, "[null]"},
		"not a list":         {tenant, thread, 12, text[1 : len(text)-1]},
		"not JSON":           {tenant, thread, 12, "commit"},
		"cut":                {tenant, thread, 12, text[:len(text)-1]},
		"more after it":      {tenant, thread, 12, text + "]"},
		"a comma at its end": {tenant, thread, 12, text[:len(text)-1] + ",]"},
		"bad data":           {tenant, thread, 12, strings.Replace(text, `"iteration":0`, `"iteration":"0"`, 1)},
		"crossed brackets":   {tenant, thread, 12, strings.Replace(text, `"content":null}`, `"content":null]`, 1)},
	} {
		got, err := DecodeCommit(bad.tenant, bad.thread, 7, bad.version, "c", []byte(bad.body))
		var broken *BrokenError
		switch {
		case got != nil || !errors.As(err, &broken):
			t.Errorf("%s: %v, %v", name, got, err)
		case broken.Tenant != bad.tenant || broken.Thread != bad.thread || broken.Seq != 7 || broken.Cause == nil:
			t.Errorf("%s: %#v", name, broken)
		case !strings.HasPrefix(err.Error(), "commit 7 of "+bad.tenant+"/"+bad.thread+" cannot be read: "):
			t.Errorf("%s: %s", name, err)
		}
	}
}

// A commit that could not be decoded is never encoded.
func TestNewCommit_RefusesWhatCannotBeDecoded(t *testing.T) {
	gap := turn()
	gap[3].Version = 9
	strange := turn()
	strange[3].ThreadID = otherID
	other := turn()
	other[0].Tenant = "other"
	unwritable := turn()
	unwritable[1].Data = ContextCreated{Content: raw("{")}
	passing := stream(sample{ChunkEmittedType, execID, ChunkEmitted{}})
	for name, list := range map[string][]Event{
		"no events": nil, "a gap": gap, "two threads": strange, "two tenants": other, "broken data": unwritable, "a chunk": passing,
	} {
		if c, err := NewCommit("", list); err == nil {
			t.Errorf("%s: %s", name, c.Body)
		}
	}
}

func TestCommitVersions(t *testing.T) {
	commits := history(t)
	for i, want := range [][2]int64{{0, 2}, {2, 6}, {6, 12}} {
		if c := commits[i]; c.First() != want[0] || c.Version != want[1] {
			t.Errorf("commit %d leads from %d to %d, want %d", i, c.First(), c.Version, want)
		}
	}
}
