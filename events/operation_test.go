package events

import (
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
)

// operationNow is when the reports of these tests arrive.
func operationNow() time.Time { return time.Date(2026, 2, 20, 12, 0, 0, 0, time.UTC) }

const goodAudit = `{"kind":"audit","startedAt":"2026-02-20T11:00:00.000Z","tookMs":60000,"tenant":"acme","partial":true,"logOnly":true,"threads":3,"commits":9,"events":20,"findings":[{"kind":"chain","count":2},{"kind":"broken","count":1}]}`

func TestParseOperation_TakesWhatProgramsReport(t *testing.T) {
	o, err := ParseOperation([]byte(goodAudit), operationNow())
	if err != nil || o.Found() != 3 || o.Tenant != "acme" || o.Threads != 3 || o.Whole() {
		t.Errorf("%+v, %v", o, err)
	}
	o, err = ParseOperation([]byte(`{"kind":"backup","startedAt":"2026-02-20T11:00:00Z","tookMs":0,"streams":4,"bytes":12345}`), operationNow())
	if err != nil || o.Streams != 4 || !o.Whole() {
		t.Errorf("%+v, %v", o, err)
	}
	o, err = ParseOperation([]byte(`{"kind":"backup","startedAt":"2026-02-20T11:00:00Z","tookMs":5,"failed":true}`), operationNow())
	if err != nil || !o.Failed || o.Whole() {
		t.Errorf("%+v, %v", o, err)
	}
}

// What is malformed, too large, of another time or kind, or has a field too many, is refused, and
// the refusal names the field.
func TestParseOperation_Refuses(t *testing.T) {
	many := make([]OperationFault, maxFaultKinds+1)
	for i := range many {
		many[i] = OperationFault{Kind: strings.Repeat("a", i%30+1) + string(rune('a'+i/30)), Count: 1}
	}
	list, err := json.Marshal(many)
	if err != nil {
		t.Fatal(err)
	}
	with := func(from, to string) string { return strings.Replace(goodAudit, from, to, 1) }
	for name, c := range map[string]struct {
		body, path string
		code       Code
	}{
		"nothing":            {body: ``},
		"no object":          {body: `[]`},
		"null":               {body: `null`, path: "/kind"},
		"empty":              {body: `{}`, path: "/kind"},
		"two":                {body: goodAudit + goodAudit},
		"unknown field":      {body: with(`"threads"`, `"path":"/etc/skein.creds","threads"`)},
		"unknown in finding": {body: with(`"count":2`, `"count":2,"thread":"T-1"`)},
		"field twice":        {body: with(`"threads":3`, `"threads":3,"threads":4`)},
		"kind":               {body: with(`"audit"`, `"restore"`), path: "/kind"},
		"received":           {body: with(`"tenant"`, `"recordedAt":"2026-02-20T11:00:00.000Z","tenant"`), path: "/recordedAt"},
		"tenant":             {body: with(`"acme"`, `"a.>"`), path: "/tenant"},
		"no time":            {body: with(`2026-02-20T11:00:00.000Z`, `yesterday`), path: "/startedAt"},
		"long ago":           {body: with(`2026-02-20`, `2026-02-18`), path: "/startedAt"},
		"future":             {body: with(`2026-02-20`, `2026-02-22`), path: "/startedAt"},
		"took less":          {body: with(`60000`, `-1`), path: "/tookMs"},
		"took for ever":      {body: with(`60000`, `9223372036854775807`), path: "/tookMs"},
		"negative":           {body: with(`"events":20`, `"events":-20`), path: "/events"},
		"huge":               {body: with(`"commits":9`, `"commits":9223372036854775807`), path: "/commits"},
		"fraction":           {body: with(`"commits":9`, `"commits":9.5`)},
		"text":               {body: with(`"commits":9`, `"commits":"9"`)},
		"finding's kind":     {body: with(`"chain"`, `"<b>chain"`), path: "/findings"},
		"finding twice":      {body: with(`"broken"`, `"chain"`), path: "/findings"},
		"no findings":        {body: with(`"count":1`, `"count":0`), path: "/findings"},
		"many kinds":         {body: with(`[{"kind":"chain","count":2},{"kind":"broken","count":1}]`, string(list)), path: "/findings"},
		"bytes of an audit":  {body: with(`"threads":3`, `"bytes":3`)},
		"backup of a tenant": {body: `{"kind":"backup","startedAt":"2026-02-20T11:00:00Z","tookMs":0,"tenant":"acme"}`},
		"backup's findings":  {body: `{"kind":"backup","startedAt":"2026-02-20T11:00:00Z","tookMs":0,"findings":[{"kind":"chain","count":2}]}`},
		"large":              {body: goodAudit + strings.Repeat(" ", MaxOperationBytes), code: PayloadTooLarge},
		"deep":               {body: strings.Repeat("[", MaxOperationBytes)},
	} {
		_, err := ParseOperation([]byte(c.body), operationNow())
		if c.code == "" {
			c.code = InvalidRequest
		}
		if e := AsError(errOr(err)); e.Code != c.code || c.path != "" && e.Details.Path != c.path {
			t.Errorf("%s: %v (%+v)", name, e, e.Details)
		}
	}
}

// errOr returns err, or one of no code that a test wants.
func errOr(err error) error {
	if err == nil {
		return &Error{Code: "taken", Message: "it was not refused"}
	}
	return err
}
