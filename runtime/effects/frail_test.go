package effects

import (
	"context"
	"strings"
	"testing"

	"github.com/skein-threads/skein/runtime"
)

// frail is an error whose methods panic for a nil pointer, as those of most errors do.
type frail struct{ text string }

func (f *frail) Error() string { return f.text }
func (f *frail) As(any) bool   { panic("in As: " + f.text) }

// frailErrors are errors of effects at which a careless reader panics.
func frailErrors() map[string]error {
	return map[string]error{
		"a nil pointer":                 (*frail)(nil),
		"methods that panic":            &frail{"here"},
		"a nil RetryError":              (*runtime.RetryError)(nil),
		"a RetryError without an error": &runtime.RetryError{},
		"a RetryError of a nil pointer": &runtime.RetryError{Err: (*frail)(nil)},
	}
}

// An error whose methods panic fails its attempt, and does not end the process.
func TestFrailErrors_OfEffects(t *testing.T) {
	t.Parallel()
	p := newPlant(t)
	effects := runtime.Effects{}
	for name, err := range frailErrors() {
		effects[strings.ReplaceAll(name, " ", "-")] = runtime.EffectFunc(func(context.Context, *runtime.EffectInput) error { return err })
	}
	one := p.process(encoded(effects), Config{})
	for name, err := range frailErrors() {
		id := p.schedule(one, strings.ReplaceAll(name, " ", "-"), `,"retries":0,"backoffMs":10`)
		p.tells(id, "scheduled", "started 1.1", "failed 1.1 "+runtime.Returned(err).Error()+" (final)")
	}
}
