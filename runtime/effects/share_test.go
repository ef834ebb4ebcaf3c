package effects

import (
	"strings"
	"testing"
	"time"

	"github.com/skein-threads/skein/commands"
	"github.com/skein-threads/skein/runtime"
)

// A tenant's very many effects run at its rate, and another tenant's effect runs among
// them, on time.
func TestEffectWorker_RateOfOneTenant(t *testing.T) {
	p := newPlant(t)
	const rate, n = 4, 60
	told := make(chan *runtime.EffectInput, 4*n)
	one := p.process(runtime.Effects{"x": tell(told)}, Config{Rate: rate})
	as := func(tenant, name, body string) string {
		t.Helper()
		reply, err := one.d.Do(t.Context(), tenant, name, []byte(body), commands.Meta{})
		if err != nil {
			t.Fatal(err)
		}
		return reply.ThreadID
	}
	id := as("hog", "thread.create", `{}`)
	began := time.Now()
	as("hog", "thread.commit", `{"threadId":"`+id+`","data":{"commands":[`+strings.Repeat(`,{"command":"effect.schedule","data":{"name":"x","delayMs":0}}`, n)[1:]+`]}}`)
	other := as("other", "thread.create", `{}`)
	as("other", "effect.schedule", `{"threadId":"`+other+`","data":{"name":"x","delayMs":0}}`)
	hogs, others := 0, 0
	for hogs+others < n+1 {
		in := next(t, told)
		if in.Tenant == "other" {
			others++
			continue
		}
		hogs++
		if most := 10*rate + rate*time.Since(began).Seconds() + 1; float64(hogs) > most {
			t.Fatalf("%d effects began within %v", hogs, time.Since(began))
		}
		if hogs == n && others == 0 {
			t.Error("the other tenant's effect came last")
		}
	}
}
