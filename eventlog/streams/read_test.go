package streams_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/skein-threads/skein/internal/logtest"
	"github.com/skein-threads/skein/internal/natstest"
)

func TestManyReadersAtOnce(t *testing.T) {
	t.Parallel()
	l := logtest.Start(t)
	a := logtest.NewAuthor(1)
	a.Write(t, l, 300, 2)
	l.Streams().SetReadTimeout(natstest.Patience) // they are many, and one after another is answered
	answers := make(chan error, 24)
	for range cap(answers) {
		go func() {
			n := 0
			for _, err := range l.Thread(context.Background(), logtest.Tenant, a.Thread, 0) {
				if err != nil {
					answers <- err
					return
				}
				n++
			}
			if n != 300 {
				answers <- fmt.Errorf("%d commits", n)
				return
			}
			answers <- nil
		}()
	}
	for range cap(answers) {
		if err := natstest.Within(t, "a reader", answers); err != nil {
			t.Error(err)
		}
	}
	if n := l.Streams().OpenRequests(); n != 0 {
		t.Errorf("%d questions are still open", n)
	}
}
