package main_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nats-io/nkeys"

	"github.com/skein-threads/skein/internal/natstest"
)

// seedFile writes the seed of a new key, and returns its public key.
func seedFile(t *testing.T) (file, public string) {
	t.Helper()
	pair, err := nkeys.CreateAccount()
	if err != nil {
		t.Fatal(err)
	}
	seed, err := pair.Seed()
	if err != nil {
		t.Fatal(err)
	}
	if public, err = pair.PublicKey(); err != nil {
		t.Fatal(err)
	}
	file = filepath.Join(t.TempDir(), "seed.nk")
	if err := os.WriteFile(file, append(seed, '\n'), 0o600); err != nil {
		t.Fatal(err)
	}
	return file, public
}

// A log is exported from one Skein as a signed file and imported into another, where it
// verifies; a second import adds nothing.
func TestAudit_ExportAndImport(t *testing.T) {
	t.Parallel()
	from, to := start(t, t.TempDir()), start(t, t.TempDir())
	var made reply
	decode(t, from.ok("thread", "create", "--key", "orders/7", "--title", "An order", "--json"), &made)
	from.ok("item", "add", "key:orders/7", "hello")
	from.ok("thread", "create", "--title", "another")
	seed, public := seedFile(t)
	_, stranger := seedFile(t)
	file := filepath.Join(t.TempDir(), "log.jsonl")

	var manifest struct{ Threads, Others, Commits, Lines int }
	o := run(t, from.env, "", "audit", "export", "--sign", seed, "-o", file, "--json")
	decode(t, o.out, &manifest)
	if o.code != 0 || manifest.Threads != 2 || manifest.Others != 1 || manifest.Commits != 4 {
		t.Fatalf("%+v", o)
	}
	if o := run(t, from.env, "", "audit", "export", "-o", file); o.code != 2 {
		t.Errorf("a file that is there: %+v", o)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if left, _ := filepath.Glob(file + ".part*"); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}

	if o := run(t, to.env, "", "audit", "import", file, "--key", stranger); o.code != 1 || !strings.Contains(o.err, "skein: bad_file: ") || !strings.Contains(o.err, public) {
		t.Errorf("another's key: %+v", o)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	altered := strings.Replace(string(text), "hello", "hullo", 1)
	if o := run(t, to.env, altered, "audit", "import", "-"); o.code != 1 || !strings.Contains(o.err, "skein: bad_file: line ") || o.out != "" {
		t.Errorf("an altered file: %+v", o)
	}
	if list := to.ok("thread", "list", "--json"); list != "" {
		t.Errorf("what was refused is there: %s", list)
	}
	type sum struct{ Imported, Continued, Unchanged, Different, Commits int }
	var first, second sum
	if o := run(t, to.env, string(text), "audit", "import", "-", "--json"); o.code != 0 || !strings.Contains(o.err, "warning: ") || !strings.Contains(o.err, public) {
		t.Errorf("%+v", o)
	} else {
		decode(t, o.out, &first)
	}
	o = run(t, to.env, "", "audit", "import", file, "--key", public, "--json")
	decode(t, o.out, &second)
	if o.code != 0 || o.err != "" || (first != sum{Imported: 3, Commits: 4}) || (second != sum{Unchanged: 3}) {
		t.Errorf("%+v, then %+v, %+v", first, second, o)
	}
	if text := to.ok("thread", "get", "key:orders/7"); !strings.Contains(text, "An order") || !strings.Contains(text, made.ThreadID) {
		t.Error(text)
	}
	to.ok("audit", "verify", "--all-tenants")
	to.ok("audit", "verify", "--against", file, "--key", public)

	to.ok("thread", "status", "key:orders/7", "streaming")
	from.ok("thread", "status", "key:orders/7", "streaming", "--reason", "otherwise")
	one := run(t, from.env, "", "audit", "export", "key:orders/7")
	if !strings.Contains(one.err, "contents of files are not included") {
		t.Errorf("an export does not say what it lacks: %s", one.err)
	}
	if one.code != 0 || strings.Contains(one.out, "another") {
		t.Errorf("%+v", one)
	}
	if o := run(t, to.env, one.out, "audit", "import", "-"); o.code != 3 || !strings.Contains(o.out, "differs: acme/"+made.ThreadID) || !strings.Contains(o.err, "not signed") {
		t.Errorf("%+v", o)
	}
	from.stop()
	to.stop()
}

// The trail shows who did what, and the diff what changed between two points.
func TestAudit_TrailAndDiff(t *testing.T) {
	t.Parallel()
	s := start(t, t.TempDir())
	var made, added reply
	decode(t, s.ok("thread", "create", "--key", "orders/7", "--title", "An order of the first day of spring", "--json"), &made)
	decode(t, s.ok("item", "add", made.ThreadID, "hello", "--json"), &added)
	s.ok("thread", "status", made.ThreadID, "streaming", "--reason", "work")
	text := s.ok("audit", "trail", "key:orders/7")
	for _, want := range []string{"thread.created", "actor     cli", "command   thread.create ", "moved     thread: open → streaming", "reason    work", "+ items " + added.Result.ItemID} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in:\n%s", want, text)
		}
	}
	type entry struct {
		Version int
		Type    string
		Actor   string
		Command struct{ ID, Name string }
		Move    struct{ From, To string }
	}
	if list := decodeLines[entry](t, s.ok("audit", "trail", made.ThreadID, "--type", "thread.*", "--actor", "cli", "--json")); len(list) != 2 ||
		list[1].Move.To != "streaming" || list[1].Command.Name != "thread.status" || list[1].Version != 5 {
		t.Errorf("%+v", list)
	}
	diff := s.ok("audit", "diff", made.ThreadID, "--from", "3")
	for _, want := range []string{"from version 3 to 5", "+ items " + added.Result.ItemID, "~ threads /status  open → streaming"} {
		if !strings.Contains(diff, want) {
			t.Errorf("no %q in:\n%s", want, diff)
		}
	}
	var span struct {
		From, To int
		Changes  []struct{ Model, What string }
	}
	decode(t, s.ok("audit", "diff", "key:orders/7", "--from", "0", "--to", "1", "--json"), &span)
	if span.From != 0 || span.To != 1 || len(span.Changes) != 1 || span.Changes[0].Model != "threads" {
		t.Errorf("%+v", span)
	}
	for args, code := range map[string]int{
		"trail": 2, "trail nonsense": 1, "trail key:unknown": 1, "diff " + made.ThreadID: 2, "diff " + made.ThreadID + " --from x": 2,
		"diff " + made.ThreadID + " --from 1 --to 99": 1, "verify --from x": 2, "verify --from 0": 2, "verify nonsense": 1,
		"verify T-01900000-0000-7000-8000-000000000000": 1, "verify --key x": 2, "export --all-tenants " + made.ThreadID: 2,
		"export --sign nowhere": 1, "import": 2, "import nowhere": 1, "import - --key x": 2,
	} {
		if o := run(t, s.env, "", append([]string{"audit"}, strings.Fields(args)...)...); o.code != code || strings.Count(o.err, "\n") != 1 || o.out != "" {
			t.Errorf("audit %s: %+v", args, o)
		}
	}
	s.stop()
}

// What a plain client forges without Skein is found, named by thread and sequence, and
// only there.
func TestAudit_FindsForgery(t *testing.T) {
	t.Parallel()
	s := start(t, t.TempDir())
	var made reply
	decode(t, s.ok("thread", "create", "--json"), &made)
	nc := natstest.Dial(t, s.NATS)
	if _, err := nc.Request("skein.log.acme."+made.ThreadID, []byte("[]"), 10e9); err != nil {
		t.Fatal(err)
	}
	type finding struct {
		Kind, Thread string
		Seq          int
	}
	o := run(t, s.env, "", "audit", "verify", "--log-only", "--json")
	first, _, _ := strings.Cut(o.out, "\n")
	var f finding
	decode(t, first, &f)
	if o.code != 3 || (f != finding{"broken", made.ThreadID, 2}) || !strings.Contains(o.err, "skein: found: ") {
		t.Errorf("%+v", o)
	}
	if o := run(t, s.env, "", "audit", "verify", "--to", "1"); o.code != 0 || !strings.Contains(o.out, "1 commit, 2 events") {
		t.Errorf("%+v", o)
	}
	if text := s.ok("audit", "trail", made.ThreadID); !bytes.Contains([]byte(text), []byte("commit 2 cannot be read")) {
		t.Error(text)
	}
	s.stop()
}
