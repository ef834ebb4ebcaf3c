package main_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A name, a command or a flag that is nearly right is answered with what was probably
// meant, and exit code 2.
func TestUsage_SuggestsNearest(t *testing.T) {
	t.Parallel()
	env := []string{"SKEIN_TENANT=acme", "SKEIN_SERVER=nats://127.0.0.1:1"}
	for args, want := range map[string]string{
		"thred list":                            "did you mean skein thread?",
		"thread lits":                           "did you mean skein thread list?",
		"thread list --limt 3":                  "did you mean --limit?",
		"cmd thread.creat":                      "did you mean thread.create?",
		`cmd thread.update {"threadId":"T-1"}`:  "name the thread with --thread",
		"query item.gett":                       "did you mean item.get?",
		"cmd nonsense":                          "unknown command",
		"cmd thread.create [1]":                 "not a JSON object",
		"cmd thread.create {":                   "not a JSON object",
		"query thread.list 1 2":                 "skein query takes NOUN.VERB [JSON], but got 3 arguments; see skein query --help",
		"thread update key:x":                   "nothing to change",
		"thread update key:x --policy x":        "use one of",
		"effect":                                "needs one of",
		"approval grant onlyone":                "skein approval grant takes THREAD CALL, but got 1 argument; see skein approval grant --help",
		"version 1":                             "skein version takes no arguments, but got 1 argument",
		"thread fork key:x":                     "at least one of the flags in the group [message item at] is required; see skein thread fork --help",
		"thread fork key:x --at 1 --item itm_1": "none of the others can be",
		"completion nosh":                       `unknown command "nosh"; skein completion has: bash, fish, powershell, zsh`,
		"completion":                            "skein completion needs one of: bash, fish, powershell, zsh",
		"completion bash 1":                     "skein completion bash takes no arguments, but got 1 argument",
		"help thraed":                           "did you mean skein thread?",
		"help thread nope":                      "skein thread has: create,",
	} {
		o := run(t, env, "", strings.Fields(args)...)
		if o.code != 2 || !strings.HasPrefix(o.err, "skein: usage: ") || !strings.Contains(o.err, want) || strings.Count(o.err, "\n") != 1 || o.out != "" {
			t.Errorf("skein %s: exit %d: %q %q", args, o.code, o.err, o.out)
		}
	}
	for _, args := range []string{"help thread get", "help completion", "help", "completion --help", "completion bash"} {
		if o := run(t, nil, "", strings.Fields(args)...); o.code != 0 || o.err != "" || o.out == "" {
			t.Errorf("skein %s: exit %d: %q", args, o.code, o.err)
		}
	}
	if o := run(t, nil, ""); o.code != 0 || !strings.Contains(o.out, "\nThreads:\n") {
		t.Errorf("skein alone: %+v", o)
	}
}

// A negative number is refused where it means nothing, wherever it is set, and the error says what
// the flag takes.
func TestUsage_NumbersWithoutAMeaning(t *testing.T) {
	t.Parallel()
	config := filepath.Join(t.TempDir(), "skein.json")
	if err := os.WriteFile(config, []byte(`{"thread-cache":-1,"tls-cert":"x"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ variable, args, want string }{
		{"", "thread list --limit -5", "--limit: -5; use a number from 0 on: maximum number; 0 for all"},
		{"", "files grep key:x y --limit=-5", "--limit: -5; use a number from 0 on: maximum number of lines"},
		{"", "kv list b --limit -5", "--limit: -5; use a number"},
		{"", "thread list --timeout -1s", "--timeout: -1s; use a duration above 0: timeout of one request"},
		{"", "serve --tenant-rate NaN", "--tenant-rate: NaN; use a number other than 0"},
		{"", "serve --tenant-fair-rate -inf", "--tenant-fair-rate: -Inf; use a number other than 0"},
		{"", "message list key:x --max-depth -2", "--max-depth: -2; use a number from -1 on: maximum depth of nesting; -1 for all"},
		{"", "thread fork key:x --message -1", "--message: -1; use a number from 0 on"},
		{"", "cmd thread.create {} --expected-version -1", "--expected-version: -1; use a number from 0 on"},
		{"", "access user --expires -1h", "--expires: -1h0m0s; use a duration from 0 on"},
		{"", "thread list --timeout 0s", "--timeout: 0s; use a duration above 0"},
		{"", "audit verify --timeout 0s", "--timeout: 0s; use a duration above 0"},
		{"SKEIN_TIMEOUT=0s", "thread list", "SKEIN_TIMEOUT: 0s; use a duration above 0"},
		{"", "serve --workers 0", "--workers: 0; use a number other than 0: runs of agents"},
		{"", "serve --max-tool-time 0s", "--max-tool-time: 0s; use a duration above 0"},
		{"", "serve --replicas 0", "--replicas: 0; use a number above 0: replicas of every stream"},
		{"SKEIN_LIMIT=-5", "thread list", "SKEIN_LIMIT: -5; use a number from 0 on"},
		{"", "serve --config " + config, "--config: " + config + ": thread-cache: -1; use a number from 0 on"},
		{"", "serve --tls-cert x --thread-cache -1", "--thread-cache: -1; use a number from 0 on"},
	} {
		o := run(t, []string{"SKEIN_TENANT=acme", "SKEIN_SERVER=nats://127.0.0.1:1", c.variable}, "", strings.Fields(c.args)...)
		if o.code != 2 || !strings.HasPrefix(o.err, "skein: usage: "+c.want) || strings.Count(o.err, "\n") != 1 || o.out != "" {
			t.Errorf("%s skein %s: exit %d: %q %q", c.variable, c.args, o.code, o.err, o.out)
		}
	}
}
