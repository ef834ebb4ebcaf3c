package events

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
)

// C-1, AM-4..AM-6, AG-54..AG-59: the two forms of a thread's id.
func TestValidThreadID_Forms(t *testing.T) {
	for id, want := range map[string]bool{
		"T-5928a90d-d53b-488f-a829-4e36442142ee":   true, // AM-6
		"T-5928A90D-D53B-488F-A829-4E36442142EE":   true, // AM-5: case of the digits does not matter
		"T-0195e5d0-3c1a-7b2e-9f44-1d2e3f405162":   true, // any version of UUID
		"thrd_abc123def456789012345678901":         true, // AG-58: the shortest
		"thrd_" + strings.Repeat("a", 59):          true, // AG-58: the longest
		"thrd_" + strings.Repeat("a", 27):          true,
		"thrd_" + strings.Repeat("a", 26):          false,
		"thrd_" + strings.Repeat("a", 60):          false,
		"thrd_abc":                                 false, // AG-59
		"thrd_abc-def-123":                         false, // AG-59
		"thread_abc123":                            false, // AG-59
		"thrd_" + strings.Repeat("a", 26) + "é":    false,
		"thrd_" + strings.Repeat("a", 26) + "_":    false,
		"t-5928a90d-d53b-488f-a829-4e36442142ee":   false, // AM-5: the prefix has a capital
		"5928a90d-d53b-488f-a829-4e36442142ee":     false,
		"T-5928a90dd53b488fa8294e36442142ee":       false,
		"T-5928a90d-d53b-488f-a829-4e36442142e":    false,
		"T-5928a90d-d53b-488f-a829-4e36442142eee":  false,
		"T-5928a90d-d53b-488f-a829-4e36442142eg":   false,
		"T-5928a90d-d53b-488f-a829-4e36442142ee\n": false,
		"T-5928a90d-d53b-488f-a829-4e36442142ee.":  false,
		" T-5928a90d-d53b-488f-a829-4e36442142ee":  false,
		"": false, "*": false, ">": false,
	} {
		if got := ValidThreadID(id); got != want {
			t.Errorf("%q: %v, want %v", id, got, want)
		}
	}
}

// EK-180: a tenant is always one token of a subject, and so is an id.
func TestValidTenantAndID_AreSubjectTokens(t *testing.T) {
	long := strings.Repeat("a", 64)
	for s, want := range map[string]bool{
		"a": true, "acme": true, "Acme-2_x": true, "9": true, long: true, "itm_user_01": true, // EK-33
		long + "a": false, strings.Repeat("a", 1000): false, "": false,
		"a.b": false, ".": false, "*": false, "a*": false, ">": false, "a>": false, "a b": false, " ": false, "a\tb": false, "a\n": false,
		"a\x00": false, "a\x7f": false, "é": false, "a/b": false, "a:b": false, "-a": false, "_a": false, "$SYS": false,
	} {
		if got := ValidTenant(s); got != want {
			t.Errorf("tenant %q: %v, want %v", s, got, want)
		}
		if got := ValidID(s); got != want {
			t.Errorf("id %q: %v, want %v", s, got, want)
		}
	}
}

// ValidID accepts what the schemas' pattern of that name accepts, which clients see.
func TestValidID_AgreesWithPattern(t *testing.T) {
	for n := range 66 {
		for c := range 256 {
			for _, at := range []int{0, n / 2, n - 1} {
				id := []byte(strings.Repeat("a", n))
				if at >= 0 && at < n {
					id[at] = byte(c)
				}
				if got, want := ValidID(string(id)), idPattern.Match(id); got != want {
					t.Fatalf("%q: %v, and its pattern says %v", id, got, want)
				}
			}
		}
	}
}

// EK-17: a key is any text of a line.
func TestKeys(t *testing.T) {
	for s, want := range map[string]bool{
		"a": true, "support/42": true, "import:conv 1": true, "a.b.*.>": true, "Zoë": true, strings.Repeat("é", 256): true,
		"": false, "a\nb": false, "a\x00": false, "a\x7f": false, strings.Repeat("a", 257): false, strings.Repeat("a", 1000): false,
	} {
		if got := ValidKey(s); got != want {
			t.Errorf("key %q: %v, want %v", s, got, want)
		}
	}
}

func TestPatterns(t *testing.T) {
	for name, cases := range map[string]map[string]bool{
		PatternThreadRef: {thread: true, "key:support/42": true, "key:": false, "support": false, "key:a\n": false},
		PatternCommandID: {cmdID: true, "a.b:c_d-e": true, "": false, ".a": false, strings.Repeat("a", 129): false, "a b": false},
		PatternPartKey:   {stepID + ":0": true, stepID + ":12": true, stepID + ":01": false, stepID + ":-1": false, stepID: false, ":0": false, stepID + ":1234567890": false}, // EK-73
		PatternName:      {"gpt-5/mini:x": true, "": false, "a b": false},
		PatternTime:      {"2026-02-20T10:00:00.000Z": true, "2026-02-20": false},
		PatternTenant:    {tenant: true, "a.b": false},
		PatternThread:    {thread: true, "x": false},
		PatternID:        {itemID: true, "a.b": false},
		PatternKey:       {"k": true, "": false},
	} {
		p := Pattern(name)
		if p == nil {
			t.Errorf("no pattern %s", name)
			continue
		}
		for s, want := range cases {
			if p.MatchString(s) != want {
				t.Errorf("%s %q: %v, want %v", name, s, !want, want)
			}
		}
	}
	if Pattern("nonsense") != nil {
		t.Error("there is a pattern that nobody named")
	}
}

// EK-124: derived ids are the same each time; they are UUIDv7 with the command's time.
func TestDeriveID(t *testing.T) {
	made := map[string]string{}
	note := func(what, id string) {
		if other, twice := made[id]; twice {
			t.Errorf("%s and %s make the same id, %s", what, other, id)
		}
		made[id] = what
	}
	later := start + 1_000_000
	for what, id := range map[string]string{
		"plain":           DeriveID(ItemPrefix, start, tenant, thread, cmdID, 0),
		"another place":   DeriveID(ItemPrefix, start, tenant, thread, cmdID, 1),
		"another kind":    DeriveID(StepPrefix, start, tenant, thread, cmdID, 0),
		"another time":    DeriveID(ItemPrefix, later, tenant, thread, cmdID, 0),
		"another tenant":  DeriveID(ItemPrefix, start, "other", thread, cmdID, 0),
		"another thread":  DeriveID(ItemPrefix, start, tenant, otherID, cmdID, 0),
		"another command": DeriveID(ItemPrefix, start, tenant, thread, "c2", 0),
	} {
		note(what, id[4:])
		if !ValidID(id) {
			t.Errorf("%s: %q is no id", what, id)
		}
		prefix := ItemPrefix
		if what == "another kind" {
			prefix = StepPrefix
		}
		rest, ok := strings.CutPrefix(id, prefix)
		u, err := uuid.Parse(rest)
		if !ok || len(rest) != 32 || err != nil || u.Version() != 7 || u.Variant() != uuid.RFC4122 {
			t.Errorf("%s: %q is not %s and a UUIDv7: %v", what, id, prefix, err)
			continue
		}
		at := start
		if what == "another time" {
			at = later
		}
		sec, nsec := u.Time().UnixTime()
		if got := time.Unix(sec, nsec).UnixMilli(); got != int64(at)/1000 {
			t.Errorf("%s: the id's time is %d ms, want %d", what, got, int64(at)/1000)
		}
	}
	if again := DeriveID(ItemPrefix, start, tenant, thread, cmdID, 0); made[again[4:]] != "plain" {
		t.Errorf("the same again is %s", again)
	}
	// Stored ids must never change, so the value itself is fixed.
	if got, want := DeriveID(ContextPrefix, start, tenant, thread, cmdID, 3), "ctx_019c7aebce7b78568042fcc445684c70"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestEventID_IsStable(t *testing.T) {
	plain := EventID(tenant, thread, cmdID, 0)
	if plain != EventID(tenant, thread, cmdID, 0) {
		t.Error("the same event has two ids")
	}
	seen := map[string]bool{}
	for _, id := range []string{
		plain, EventID(tenant, thread, cmdID, 1), EventID(tenant, thread, "c2", 0), EventID(tenant, otherID, cmdID, 0),
		EventID("other", thread, cmdID, 0), EventID(tenant, thread, cmdID, 10),
		// No two lists of parts produce the same name.
		EventID("a", "bc", "d", 0), EventID("ab", "c", "d", 0), EventID("a", "b", "cd", 0),
		EventID(strings.Repeat("t", 64), thread, strings.Repeat("c", 600), 0),
	} {
		u, err := uuid.Parse(id)
		if err != nil || u.Version() != 5 || u.Variant() != uuid.RFC4122 || u.String() != id {
			t.Errorf("%q is no UUIDv5: %v", id, err)
		}
		if seen[id] {
			t.Errorf("%s is made twice", id)
		}
		seen[id] = true
	}
	// As specified by RFC 9562.
	want := uuid.NewSHA1(uuid.MustParse("6f1d3c52-9a0e-5b1c-8d55-5c6e2a7f0b31"), []byte(tenant+"\x00"+thread+"\x00"+cmdID+"\x0011")).String()
	if got := EventID(tenant, thread, cmdID, 11); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// AM-4: T- and a UUID; a repeated command finds the thread that it created.
func TestDeriveThreadID(t *testing.T) {
	id := DeriveThreadID(tenant, cmdID)
	if !ValidThreadID(id) || id != DeriveThreadID(tenant, cmdID) {
		t.Errorf("%q", id)
	}
	if id == DeriveThreadID("other", cmdID) || id == DeriveThreadID(tenant, "c2") {
		t.Errorf("%q is made twice", id)
	}
}

// The claim of any key has a subject of its own, one token long.
func TestKeyAggregate(t *testing.T) {
	form := regexp.MustCompile(`^K-[0-9a-f]{32}$`)
	seen := map[string]bool{}
	for _, key := range []string{"", "a", "A", "a.b", "*", ">", "a b", "\x00", "Zoë", strings.Repeat("x", 10_000)} {
		name := KeyAggregate(key)
		if !form.MatchString(name) || seen[name] || IsThread(name) {
			t.Errorf("%q: %q", key, name)
		}
		seen[name] = true
		subject := DefaultNames().Log(tenant, name)
		if gotTenant, got, ok := DefaultNames().ParseLog(subject); !ok || gotTenant != tenant || got != name {
			t.Errorf("%q: %q is taken apart as %q, %q, %v", key, subject, gotTenant, got, ok)
		}
	}
}

func TestIsThread(t *testing.T) {
	for name, want := range map[string]bool{
		thread: true, "thrd_" + strings.Repeat("a", 30): true, TenantAggregate: false, KeyAggregate("k"): false, "": false,
	} {
		if IsThread(name) != want {
			t.Errorf("%q: %v", name, !want)
		}
	}
}

// EK-73.
func TestPartKey(t *testing.T) {
	if got := PartKey("stp_1", 12); got != "stp_1:12" {
		t.Error(got)
	}
}

// C-2.
func TestThreadRef(t *testing.T) {
	for ref, want := range map[string][2]string{
		thread: {thread, ""}, "key:a:b": {"", "a:b"}, "": {"", ""}, "key:": {"", ""},
	} {
		if id, key := ThreadRef(ref); id != want[0] || key != want[1] {
			t.Errorf("%q is %q, %q", ref, id, key)
		}
	}
}
