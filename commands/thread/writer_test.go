package thread

import (
	"slices"
	"strings"
	"testing"

	"github.com/skein-threads/skein/events"
)

// hold makes a writer the holder of the story's thread, and returns its token.
func (k *story) hold(holder string, ttl int64) string {
	k.t.Helper()
	c := k.command(events.ClaimWriter{Holder: holder, TTLMs: ttl})
	if _, err := k.try(c); err != nil {
		k.t.Fatalf("%s was refused: %v", holder, err)
	}
	return c.Token
}

// as decides a command of the writer with a token.
func (k *story) as(token string, data ...any) ([]events.Event, error) {
	k.t.Helper()
	c := k.command(data...)
	c.Writer = token
	return k.try(c)
}

// wantHeld checks that an error is the refusal of a held thread which names that holder.
func wantHeld(t testing.TB, err error, holder string) {
	t.Helper()
	e := events.AsError(err)
	switch {
	case err == nil || e.Code != events.Held || e.Code.Status() != 409 || e.Retry():
		t.Fatalf("got %v, want held", err)
	case holder == "" && e.Details != nil && e.Details.Holder != "":
		t.Errorf("it names %+v, and nobody holds the thread", e.Details)
	case holder != "" && (e.Details == nil || e.Details.Holder != holder || e.Details.Until == ""):
		t.Errorf("it names %+v, want %s and when it ends", e.Details, holder)
	}
}

// AM-72: every command of the catalog that changes a thread is refused while another writer
// holds it, and so is one with a wrong token; the holder's own are decided. The exceptions are
// listed here.
func TestWriter_OthersAreRefused(t *testing.T) {
	exempt := []string{"thread.resolve", "writer.claim", "writer.renew", "writer.release", "state.touch", "state.release", "session.start", "session.complete"}
	for name, data := range minimal() {
		row, _ := events.LookupCommand(name)
		if row.Tenant || slices.Contains(exempt, name) || name == "thread.commit" {
			continue
		}
		k := begun(t)
		token := k.hold("editor", 0)
		_, err := k.try(k.command(data))
		wantHeld(t, err, "editor")
		_, err = k.as(token+"x", data)
		wantHeld(t, err, "editor")
		if _, err = k.as(token, data); err != nil && events.AsError(err).Code == events.Held {
			t.Errorf("%s of the holder: %v", name, err)
		}
		if name == "item.create" && err != nil {
			t.Errorf("%s of the holder: %v", name, err)
		}
	}
}

// A batch that contains nothing but what one command may do is refused as that is.
func TestWriter_BatchesAreRefused(t *testing.T) {
	k := begun(t)
	token := k.hold("editor", 0)
	batch := []any{events.UpdateThread{Title: to("x")}, message("itm_2", "hello")}
	_, err := k.try(k.command(batch...))
	wantHeld(t, err, "editor")
	if _, err := k.as(token, batch...); err != nil {
		t.Error(err)
	}
}

func TestWriter_WhatIsNotRefused(t *testing.T) {
	k := begun(t)
	k.hold("editor", 0)
	k.do(events.CommandRejected{Command: "item.create", ThreadID: threadID, Code: events.Held, Message: "held"})
	inside := k.command(message("itm_2", "of this process"))
	inside.Inside = true
	if _, err := k.try(inside); err != nil {
		t.Errorf("a command of the process: %v", err)
	}
	_, err := k.try(k.command(events.DeleteThread{}))
	wantHeld(t, err, "editor")
	k.do(events.DeleteThread{Purge: true})

	resolved := newStory(t)
	resolved.do(events.CreateThread{Key: "k"})
	resolved.hold("editor", 0)
	resolved.do(events.ResolveThread{Key: "k"})
	c := resolved.command(events.DeleteThread{Purge: true})
	c.Batch = true // a part of a thread.commit is no erasure
	_, err = resolved.try(c)
	wantHeld(t, err, "editor")
}

// AM-73: the second claim is refused with who holds the thread, also the holder's own.
func TestWriter_SecondClaimIsRefused(t *testing.T) {
	k := begun(t)
	token := k.hold("editor", 0)
	for _, again := range []string{"editor", "other"} {
		e := k.refuse(events.ClaimWriter{Holder: again})
		wantHeld(t, e, "editor")
		if want := "Thread " + threadID + " already has an exclusive reader-writer"; !strings.HasPrefix(e.Message, want) {
			t.Errorf("it says %q, want %q", e.Message, want)
		}
	}
	_, err := k.as(token, events.ClaimWriter{Holder: "editor"})
	wantHeld(t, err, "editor")
}

// After its release the thread is free, and the token is worth nothing.
func TestWriter_Release(t *testing.T) {
	k := begun(t)
	token := k.hold("editor", 0)
	_, err := k.try(k.command(events.ReleaseWriter{Token: "wtk_other"}))
	wantHeld(t, err, "editor")
	want(t, k.do(events.ReleaseWriter{Token: token}), fact{events.WriterReleasedType, threadID, "", events.WriterReleased{Holder: "editor"}})
	k.do(message("itm_2", "free"))
	_, err = k.as(token, message("itm_3", "late"))
	wantHeld(t, err, "")
	if made := k.do(events.ReleaseWriter{Token: token}); len(made) > 0 {
		t.Errorf("a second release made %v", made)
	}
	next := k.hold("next", 0)
	_, err = k.as(token, message("itm_3", "late"))
	wantHeld(t, err, "next")
	_, err = k.try(k.command(events.ReleaseWriter{Token: token}))
	wantHeld(t, err, "next")
	if _, err := k.as(next, message("itm_3", "mine")); err != nil {
		t.Error(err)
	}
}

// A hold ends with its time: at the microsecond of its end it is over, and the old token is
// refused although nobody else has claimed the thread.
func TestWriter_HoldEnds(t *testing.T) {
	k := begun(t)
	token := k.hold("editor", 1000)
	claimed := k.now
	at := func(after events.Time, writer string, data any) error {
		c := k.command(data)
		c.Time, c.Writer = claimed+after, writer
		_, err := Decide(k.state, c)
		return err
	}
	wantHeld(t, at(999_999, "", message("itm_2", "x")), "editor")
	if err := at(999_999, token, message("itm_2", "x")); err != nil {
		t.Error(err)
	}
	if err := at(1_000_000, "", message("itm_2", "x")); err != nil {
		t.Error(err)
	}
	wantHeld(t, at(1_000_000, token, message("itm_2", "x")), "")
	wantHeld(t, at(1_000_000, token, events.RenewWriter{Token: token}), "")
	k.now = claimed + 2_000_000
	k.hold("next", 0)
	wantHeld(t, at(2_500_000, token, message("itm_2", "x")), "next")
}

// The clock of a slower process does not bring an ended hold back: time on a thread only grows.
func TestWriter_SlowClocks(t *testing.T) {
	k := begun(t)
	token := k.hold("editor", 1000)
	claimed := k.now
	k.now = claimed + 1_500_000 // a process whose clock is fast writes after the end
	k.do(message("itm_2", "fast"))
	c := k.command(message("itm_3", "slow"))
	c.Time, c.Writer = claimed+500_000, token
	_, err := k.try(c)
	wantHeld(t, err, "")
}

// Renewals count from now, and early ones change nothing: a hold costs at most three events in
// its time.
func TestWriter_Renew(t *testing.T) {
	k := begun(t)
	token := k.hold("editor", 30_000)
	claimed := k.now
	renew := func(after events.Time) []events.Event {
		t.Helper()
		c := k.command(events.RenewWriter{Token: token})
		c.Time = claimed + after
		made, err := k.try(c)
		if err != nil {
			t.Fatal(err)
		}
		return made
	}
	if made := renew(9_999_999); len(made) > 0 {
		t.Errorf("an early renewal made %v", made)
	}
	want(t, renew(10_000_000), fact{events.WriterRenewedType, threadID, "", events.WriterRenewed{Until: (claimed + 40_000_000).String()}})
	if until := k.state.Hold(token); until != (claimed + 40_000_000).String() {
		t.Errorf("the hold ends at %s", until)
	}
	_, err := k.try(k.command(events.RenewWriter{Token: "wtk_other"}))
	wantHeld(t, err, "editor")
	many := 0
	for at := events.Time(10_000_000); at < 310_000_000; at += 100_000 {
		many += len(renew(at))
	}
	if many < 25 || many > 30 {
		t.Errorf("3,000 renewals in 300 s made %d events", many)
	}
}

// A claim without a token, which a submitted one is, has no answer to bring it.
func TestWriter_ClaimWithoutAnswer(t *testing.T) {
	k := begun(t)
	c := k.command(events.ClaimWriter{Holder: "a"})
	c.Token = ""
	if _, err := k.try(c); err == nil || events.AsError(err).Code != events.InvalidRequest {
		t.Errorf("it was decided: %v", err)
	}
}

func TestHolds_Writers(t *testing.T) {
	k := begun(t)
	claim := k.after(events.WriterClaimedType, threadID, "", events.WriterClaimed{Holder: "a", TokenDigest: events.WriterDigest("x"), TTLMs: 1000})
	claim.Data = events.WriterClaimed{Holder: "a", TokenDigest: events.WriterDigest("x"), TTLMs: 1000, Until: (claim.Time + 1_000_000).String()}
	holdsBut(t, k, claim, anotherSubject("its subject should be"), anotherCorrelation("its correlation should be"),
		the("another end", "it ends at", func(d *events.WriterClaimed) { d.Until = claim.Time.String() }))
	refuses := func(e events.Event, why string) {
		t.Helper()
		l := preconditions{Ledger: &Ledger{state: k.state}}
		if err := l.check(&e); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%s holds: %v, want %q", e.Type, err, why)
		}
	}
	refuses(k.after(events.WriterRenewedType, threadID, "", events.WriterRenewed{Until: k.now.String()}), "nobody holds")
	refuses(k.after(events.WriterReleasedType, threadID, "", events.WriterReleased{Holder: "a"}), "nobody holds")
	k.hold("a", 1000)
	refuses(k.after(events.WriterClaimedType, threadID, "", claim.Data), "is held by")
	renewed := k.after(events.WriterRenewedType, threadID, "", events.WriterRenewed{})
	renewed.Data = events.WriterRenewed{Until: (renewed.Time + 1_000_000).String()}
	holdsBut(t, k, renewed, anotherSubject("its subject should be"), anotherCorrelation("its correlation should be"),
		the("another end", "it ends at", func(d *events.WriterRenewed) { d.Until = renewed.Time.String() }))
	holdsBut(t, k, k.after(events.WriterReleasedType, threadID, "", events.WriterReleased{Holder: "a"}),
		anotherSubject("its subject should be"), anotherCorrelation("its correlation should be"),
		the("another holder", "is held by", func(d *events.WriterReleased) { d.Holder = "b" }))
}
