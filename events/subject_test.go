package events

import (
	"strings"
	"testing"
)

// EK-180, EK-181: every subject has the tenant; without one there is no subject.
func TestSubjects(t *testing.T) {
	n := DefaultNames()
	for got, want := range map[string]string{
		n.Log(tenant, thread):                             "skein.log.acme." + thread,
		n.Timeline(tenant, thread, ItemStatusChangedType): "skein.timeline.acme." + thread + ".item.status.changed",
		n.Command(tenant, "thread.create"):                "skein.cmd.acme.thread.create",
		n.Submit(tenant, "thread.create"):                 "skein.submit.acme.thread.create",
		n.Query(tenant, "item.list"):                      "skein.query.acme.item.list",
		n.Chunk(tenant, thread, "exe_1"):                  "skein.chunk.acme." + thread + ".exe_1",
		n.Run(tenant, "exe_1"):                            "skein.run.acme.exe_1",
		n.Usage(tenant, "2026-02-20"):                     "skein.usage.acme.2026-02-20",
		n.File(tenant, "content.get"):                     "skein.file.acme.content.get",
		n.Upload(tenant, "u1"):                            "skein.upload.acme.u1",
		n.Timer(tenant, thread, "t1"):                     "skein.timer.acme." + thread + ".t1",
		n.Due(tenant, thread, "t1"):                       "skein.due.acme." + thread + ".t1",
		n.AllLive(tenant, "*"):                            "skein.live.acme.*.*",
		n.Cancel("call_1"):                                "skein.cancel.call_1",
		n.Stream("LOG"):                                   "SKEIN_LOG",
		n.Bucket("thread_items"):                          "thread_items",
		Names{"staging"}.Stream("LOG"):                    "STAGING_LOG",
		Names{"staging"}.Bucket("thread_items"):           "staging_thread_items",
		Names{"staging"}.Log(tenant, thread):              "staging.log.acme." + thread,
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestNames_ParseSubjects(t *testing.T) {
	n := DefaultNames()
	if gotTenant, aggregate, ok := n.ParseLog("skein.log.acme." + thread); !ok || gotTenant != tenant || aggregate != thread {
		t.Errorf("%q, %q, %v", gotTenant, aggregate, ok)
	}
	if gotTenant, gotThread, kind, ok := n.ParseTimeline("skein.timeline.acme." + thread + ".item.status.changed"); !ok ||
		gotTenant != tenant || gotThread != thread || kind != ItemStatusChangedType {
		t.Errorf("%q, %q, %q, %v", gotTenant, gotThread, kind, ok)
	}
	for subject, want := range map[string]string{
		"skein.cmd.acme.thread.create": "cmd", "skein.submit.acme.thread.create": "submit", "skein.query.acme.thread.create": "query",
	} {
		if kind, gotTenant, name, ok := n.ParseRequest(subject); !ok || kind != want || gotTenant != tenant || name != "thread.create" {
			t.Errorf("%s: %q, %q, %q, %v", subject, kind, gotTenant, name, ok)
		}
	}
	for _, bad := range []string{"", "skein", "skein.log", "skein.log.acme", "skein.log.acme.", "skein.log..x", "skein.log.acme.a.b", "other.log.acme.x", "skein.logs.acme.x"} {
		if _, _, ok := n.ParseLog(bad); ok {
			t.Errorf("%q is a subject of the log", bad)
		}
	}
	for _, bad := range []string{"", "skein.timeline.acme", "skein.timeline.acme.x", "skein.timeline.acme.x.", "skein.timeline..x.item.created", "skein.timeline.acme..item.created", "other.timeline.acme.x.item.created"} {
		if _, _, _, ok := n.ParseTimeline(bad); ok {
			t.Errorf("%q is a subject of the timeline", bad)
		}
	}
	for _, bad := range []string{"", "skein.cmd.acme.thread", "skein.cmd.acme.thread.create.now", "skein.cmd..thread.create", "skein.cmd.acme..create", "skein.cmd.acme.thread.", "other.cmd.acme.thread.create"} {
		if _, _, _, ok := n.ParseRequest(bad); ok {
			t.Errorf("%q is a subject of a request", bad)
		}
	}
}

func TestNames_Validate(t *testing.T) {
	for prefix, want := range map[string]bool{
		"skein": true, "s2": true, "": false, "Skein": false, "a.b": false, "a-b": false, "*": false,
		strings.Repeat("a", 32): true, strings.Repeat("a", 33): false,
	} {
		if err := (Names{prefix}).Validate(); (err == nil) != want {
			t.Errorf("%q: %v", prefix, err)
		}
	}
}

// EK-102: a reactor's name is one token of a subject, and nothing else is accepted.
func TestNames_ReactorAndTool(t *testing.T) {
	n := Names{"staging"}
	if got, err := n.Reactor("plan-writer_2"); err != nil || got != "staging.reactor.plan-writer_2" {
		t.Errorf("%q, %v", got, err)
	}
	if got, err := n.Tool("Weather"); err != nil || got != "staging.tool.Weather" {
		t.Errorf("%q, %v", got, err)
	}
	if got := n.Cancel("x"); got != "staging.cancel.x" {
		t.Errorf("%q", got)
	}
	for _, bad := range []string{"", ".", "*", ">", "a.b", "a.*", "a b", "a\n", "\x00", "ä", "$SYS", strings.Repeat("x", 65)} {
		for kind, build := range map[string]func(string) (string, error){"reactor": n.Reactor, "tool": n.Tool} {
			if got, err := build(bad); err == nil || got != "" || AsError(err).Code != InvalidRequest {
				t.Errorf("%s %q: %q, %v", kind, bad, got, err)
			}
		}
	}
}

// A reply goes to inboxes, and never to a subject where it would be an event, a request or an
// acknowledgement.
func TestNames_Answerable(t *testing.T) {
	for reply, want := range map[string]bool{
		"": true, "_INBOX.app.x": true, "_R_.AbC.x": true, "my.own.inbox": true, "skeins.x": true,
		"skein.timeline.acme.T-1.item.created": false, "skein.log.acme.T-1": false, "skein": false,
		"$JS.ACK.SKEIN_RUNS.c.1.1.1.1.1": false, "$KV.thread_threads.x": false, "$SYS.REQ.SERVER.PING": false,
	} {
		if got := DefaultNames().Answerable(reply); got != want {
			t.Errorf("%q: %v", reply, got)
		}
	}
}

// The subjects of timers and of runs are parsed as they were built, and others are refused.
func TestNames_TimersAndRuns(t *testing.T) {
	n := DefaultNames()
	for _, subject := range []string{n.Timer(tenant, thread, "t1"), n.Due(tenant, thread, "t1")} {
		if gotTenant, gotThread, id, ok := n.ParseTimer(subject); !ok || gotTenant != tenant || gotThread != thread || id != "t1" {
			t.Errorf("%s: %q, %q, %q, %v", subject, gotTenant, gotThread, id, ok)
		}
	}
	for _, bad := range []string{"", "skein.timer.acme.x", "skein.timer.acme.x.y.z", "other.timer.acme.x.y", "skein.log.acme.x.y", "skein.timer..x.y", "skein.due.acme.x."} {
		if _, _, _, ok := n.ParseTimer(bad); ok {
			t.Errorf("%q is the subject of a timer", bad)
		}
	}
	if gotTenant, execution, ok := n.ParseRun(n.Run(tenant, "exe_1")); !ok || gotTenant != tenant || execution != "exe_1" {
		t.Errorf("%q, %q, %v", gotTenant, execution, ok)
	}
	for _, bad := range []string{"", "skein.run.acme", "skein.run.acme.", "skein.run..exe_1", "skein.run.acme.exe.1", "skein.run.a*.exe_1", "other.run.acme.exe_1"} {
		if _, _, ok := n.ParseRun(bad); ok {
			t.Errorf("%q is the subject of a run", bad)
		}
	}
}

// A worker's name has 1 to 64 characters of its own alphabet.
func TestNames_Workers(t *testing.T) {
	n := DefaultNames()
	for kind, of := range map[string]func(string) (string, error){"reactor": n.Reactor, "tool": n.Tool, "effect": n.Effect} {
		for _, name := range []string{"a", "azAZ09_-", strings.Repeat("x", 64)} {
			if got, err := of(name); err != nil || got != "skein."+kind+"."+name {
				t.Errorf("the %s %s answers on %q, %v", kind, name, got, err)
			}
		}
		for _, bad := range []string{"", strings.Repeat("x", 65), "a.b", "a*", "a>", "a b", "`", "{", "@", "[", "/", ":", "é"} {
			if got, err := of(bad); err == nil || AsError(err).Details.Path != "/name" {
				t.Errorf("the %s %q answers on %q, %v", kind, bad, got, err)
			}
		}
	}
}
