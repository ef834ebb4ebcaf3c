package main_test

import (
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
		"query item.gett":                       "did you mean item.get?",
		"cmd nonsense":                          "unknown command",
		"cmd thread.create [1]":                 "not a JSON object",
		"cmd thread.create {":                   "not a JSON object",
		"query thread.list 1 2":                 "skein query takes NOUN.VERB [JSON], and has 3 arguments; see skein query --help",
		"thread update key:x":                   "nothing to change",
		"thread update key:x --policy x":        "use one of",
		"effect":                                "needs one of",
		"approval grant onlyone":                "skein approval grant takes THREAD CALL, and has 1 argument; see skein approval grant --help",
		"version 1":                             "skein version takes no arguments, and has 1 argument",
		"thread fork key:x":                     "at least one of the flags in the group [message item at] is required; see skein thread fork --help",
		"thread fork key:x --at 1 --item itm_1": "none of the others can be",
		"bench nonsense":                        "unknown command",
	} {
		o := run(t, env, "", strings.Fields(args)...)
		if o.code != 2 || !strings.HasPrefix(o.err, "skein: usage: ") || !strings.Contains(o.err, want) || strings.Count(o.err, "\n") != 1 || o.out != "" {
			t.Errorf("skein %s: exit %d: %q %q", args, o.code, o.err, o.out)
		}
	}
	if o := run(t, nil, ""); o.code != 0 || !strings.Contains(o.out, "Available Commands") {
		t.Errorf("skein alone: %+v", o)
	}
}
