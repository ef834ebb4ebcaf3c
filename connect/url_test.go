package connect

import (
	"errors"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
)

func TestWithoutCredentials(t *testing.T) {
	for given, want := range map[string]string{
		"nats://127.0.0.1:4222":                     "nats://127.0.0.1:4222",
		"nats://skein:secret@127.0.0.1:4222":        "nats://127.0.0.1:4222",
		"nats://a:secret@n1,tls://b:secret@n2:1,n3": "nats://n1,tls://n2:1,n3",
		"skein:secret@n1":                           "n1",
		"nats://token-secret@n1":                    "nats://n1",
		"nats://a:sec%40ret@n1":                     "nats://n1",
		"nats://a:secret@with@n1":                   "nats://n1",
		"":                                          "",
	} {
		if got := WithoutCredentials(given); got != want {
			t.Errorf("%q becomes %q, not %q", given, got, want)
		}
	}
}

// Whatever is wrong with a URL, the error does not quote its password.
func TestFailed_NamesNoPassword(t *testing.T) {
	for _, url := range []string{
		"nats://skein:secret@127.0.0.1:1", "nats://skein:sec ret@127.0.0.1:1", "nats://skein:secret@127.0.0.1:port", "nats://skein:secret%zz@127.0.0.1:1",
		"skein:secret@127.0.0.1:port", "nats://skein:secret@[::1:4222,nats://127.0.0.1:1",
	} {
		_, err := nats.Connect(url, nats.RetryOnFailedConnect(false))
		if err == nil {
			t.Fatalf("%s: connected", url)
		}
		failed := Failed(url, err)
		if strings.Contains(failed.Error(), "secret") || strings.Contains(failed.Error(), "sec ret") {
			t.Errorf("the error names the password: %v", failed)
		}
		if !errors.Is(failed, err) {
			t.Errorf("%v hides what it was made from", failed)
		}
	}
}
