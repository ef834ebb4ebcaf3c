package streams

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
)

// Those who ask while a question is being answered share the next one: none gets an answer that is
// older than what it asks.
func TestSharedEnds_AnswerIsNotOlderThanTheQuestion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var shared sharedEnds
		last, questions := uint64(0), 0
		release := make(chan struct{})
		ask := func(context.Context, string) (End, error) {
			questions++
			seq := last // what the leader says is of when it was asked
			<-release
			return End{Seq: seq}, nil
		}
		answers := make(chan uint64, 100)
		get := func(ctx context.Context) {
			end, err := shared.get(ctx, "log", ask)
			if err != nil && !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
			answers <- end.Seq
		}
		go get(t.Context())
		synctest.Wait()
		last = 7 // committed while the first question is on its way
		impatient, leave := context.WithCancel(t.Context())
		go get(impatient)
		for range 98 {
			go get(t.Context())
		}
		synctest.Wait()
		leave()
		release <- struct{}{}
		synctest.Wait()
		release <- struct{}{}
		synctest.Wait()
		old := 0
		for range 100 {
			if seq := <-answers; seq == 0 { // the first, and the one that left
				old++
			}
		}
		if questions != 2 || old != 2 {
			t.Errorf("%d questions, of which %d answers were too old", questions, old-2)
		}
		if len(shared.asked) != 0 {
			t.Errorf("what was asked is kept: %v", shared.asked)
		}
	})
}
