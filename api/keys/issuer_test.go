package keys_test

import "testing"

// An issuer that takes its time holds up one request and no other: those that come meanwhile are
// unavailable at once, and when it has answered, tokens count.
func TestTokens_SlowIssuerHoldsUpOneRequest(t *testing.T) {
	i := newIssuer(t)
	asked, answers := i.holdDescription()
	s := i.site()
	token := i.sign(i.claims())
	first := make(chan int, 1)
	go func() {
		status, _ := s.ask("GET", "/api/threads", token)
		first <- status
	}()
	<-asked
	for range 5 {
		s.want("while the issuer is asked", 503, token)
	}
	select {
	case status := <-first:
		t.Fatalf("the first request did not wait: %d", status)
	default:
	}
	close(answers)
	if status := <-first; status != 200 {
		t.Errorf("the first request: %d", status)
	}
	s.want("afterwards", 200, token)
}
