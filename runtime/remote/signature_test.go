package remote_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/skein-threads/skein/runtime/remote"
)

// What the released library of Standard Webhooks (npm standardwebhooks 1.1.1) signs.
func TestSign_StandardWebhooks(t *testing.T) {
	const encoded, plain = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=", "v1,Cp5CLGAYIRmGyYSCbElss61fKV0OhuGmh/hjDdtNSgw="
	h := http.Header{remote.IDHeader: {"msg_p5jXN8AQM9LWM0D4loKWxJek"}}
	keys := []remote.Key{{ID: "NEW", Secret: []byte("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")}, {ID: "OLD", Secret: []byte("a secret of 16 bytes or more")}}
	remote.Sign(h, time.Unix(1614265330, 0), []byte(`{"test": 2432232314}`), keys)
	if got := h.Get("webhook-signature"); got != encoded+" "+plain || h.Get("webhook-timestamp") != "1614265330" {
		t.Errorf("%v", h)
	}
	if own := h.Get("Skein-Signature"); !strings.HasPrefix(own, "NEW=") || !strings.Contains(own, ",OLD=") {
		t.Errorf("%v", h)
	}
	without := http.Header{}
	remote.Sign(without, time.Now(), nil, keys)
	if without.Get("webhook-signature") != "" || without.Get("Skein-Signature") == "" {
		t.Errorf("of a request without an id: %v", without)
	}
}

func TestKeys_EncodedSecret(t *testing.T) {
	for value, good := range map[string]bool{
		"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw": true,
		"whsec_????????????????????????????????": false, // no base64
		"whsec_MfKQ9r8GKYqrTwjU":                 false, // 12 bytes
	} {
		keys, err := remote.SigningKeys([]string{"HOOK"}, func(string) (string, bool) { return value, true })
		if good != (err == nil) || err != nil && (!strings.Contains(err.Error(), "HOOK") || strings.Contains(err.Error(), value[6:])) {
			t.Errorf("%s: %v, %v", value, keys, err)
		}
	}
}
