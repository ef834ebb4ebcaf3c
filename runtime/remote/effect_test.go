package remote_test

import (
	"context"
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/runtime"
	"github.com/skein-threads/skein/runtime/remote"
)

// SA-75, SA-76: an effect in another process: its whole input, its failure, and the
// error without a process.
func TestEffect(t *testing.T) {
	w := start(t)
	e, err := remote.Effect(w.worker, w.names, "remind")
	if err != nil {
		t.Fatal(err)
	}
	in := &runtime.EffectInput{
		Tenant: "acme", ThreadID: "T-1", EffectID: "e", FlowID: "e", Name: "remind", Args: events.JSON(`{"n":1}`), Key: "e.2",
		Firing: 2, Attempt: 3, ScheduledAt: time.Date(2026, 2, 20, 12, 0, 0, 123456000, time.UTC),
	}
	err = e.Run(patient(t), in)
	fails(t, err, true, "skein.effect.remind: no process answers there")
	if retry, _ := retries(err); !retry.NotMade {
		t.Error("an effect that no process received may have been made")
	}
	got := make(chan *runtime.EffectInput, 1)
	answers := []error{nil, errors.New("the mail server did not answer"), &runtime.RetryError{After: time.Minute, Err: errors.New("slow down")}}
	s, err := remote.ServeEffect(w.process, w.names, "remind", runtime.EffectFunc(func(_ context.Context, in *runtime.EffectInput) error {
		got <- in
		answer := answers[0]
		answers = answers[1:]
		return answer
	}))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close(context.Background()) }()
	if err := e.Run(patient(t), in); err != nil {
		t.Error(err)
	}
	if have := <-got; !reflect.DeepEqual(have, in) {
		t.Errorf("told %+v\nnot  %+v", have, in)
	}
	fails(t, e.Run(patient(t), in), false, "the mail server did not answer")
	<-got
	err = e.Run(patient(t), in)
	fails(t, err, true, "slow down")
	if retry, _ := retries(err); retry.NotMade || retry.After != time.Minute {
		t.Errorf("%+v", retry)
	}
	for _, name := range []string{"", "a.b", "a b", "*"} {
		if _, err := remote.Effect(w.worker, w.names, name); err == nil {
			t.Errorf("an effect is called %q", name)
		}
	}
}
