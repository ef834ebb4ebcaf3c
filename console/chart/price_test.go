package chart

import (
	"strings"
	"testing"

	"github.com/skein-threads/skein/events"
)

// What was used costs what the prices of its models say; without the price of one of them nothing
// is claimed.
func TestPrices(t *testing.T) {
	p, err := ParsePrices([]string{"gpt-5*=1.25/10/0.125", "gpt-5-mini*=0.25/2", "gpt-5-mini=4/8", "free=0/0"})
	if err != nil {
		t.Fatal(err)
	}
	used := func(model string, in, cached, out int64) events.Usage {
		return events.Usage{Model: model, InputTokens: in, CachedTokens: cached, OutputTokens: out}
	}
	for name, c := range map[string]struct {
		used []events.Usage
		want string
	}{
		"nothing":        {nil, ""},
		"no tokens":      {[]events.Usage{used("gpt-5", 0, 0, 0)}, ""},
		"unknown":        {[]events.Usage{used("llama", 10, 0, 10)}, ""},
		"one is unknown": {[]events.Usage{used("gpt-5", 1000, 0, 0), used("llama", 10, 0, 10)}, ""},
		"by beginning":   {[]events.Usage{used("gpt-5-2025-08-07", 1_000_000, 0, 100_000)}, "2.25"},
		"the longest":    {[]events.Usage{used("gpt-5-mini-2025-08-07", 1000, 0, 1000)}, "0.0022"},
		"exactly":        {[]events.Usage{used("gpt-5-mini", 1_000_000, 0, 0)}, "4.00"},
		"cached":         {[]events.Usage{used("gpt-5", 1_000_000, 400_000, 0)}, "0.8000"},
		"cached, too":    {[]events.Usage{used("gpt-5-mini", 1_000_000, 1_000_000, 0)}, "4.00"},
		"several":        {[]events.Usage{used("gpt-5", 1_000_000, 0, 0), used("gpt-5-mini", 0, 0, 1_000_000)}, "9.25"},
		"little":         {[]events.Usage{used("gpt-5", 1, 0, 0)}, "< 0.0001"},
		"for nothing":    {[]events.Usage{used("free", 1, 0, 1)}, "0.0000"},
	} {
		if got := p.Cost(c.used...); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	if (!Prices{}.None()) || p.None() {
		t.Error("None is wrong")
	}
	for _, bad := range []string{"", "gpt-5", "=1/2", "gpt-5=1", "gpt-5=1/2/3/4", "gpt-5=-1/2", "gpt-5=NaN/2", "gpt-5=a/2", "gpt-5=1/1e300"} {
		if _, err := ParsePrices([]string{bad}); err == nil || !strings.Contains(err.Error(), "MODEL=INPUT/OUTPUT") {
			t.Errorf("%q: %v", bad, err)
		}
	}
	if _, err := ParsePrices([]string{"a=1/2", "a=3/4"}); err == nil || !strings.Contains(err.Error(), "already") {
		t.Errorf("twice: %v", err)
	}
}
