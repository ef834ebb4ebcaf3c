package embedded

import (
	"errors"
	"strings"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
)

func TestNewOptionsAreDurable(t *testing.T) {
	o := NewOptions("data")
	if err := o.Validate(); err != nil {
		t.Fatal(err)
	}
	if !o.SyncAlways {
		t.Error("SyncAlways is off")
	}
	so, err := o.serverOptions()
	if err != nil {
		t.Fatal(err)
	}
	if !so.SyncAlways || !so.JetStream || so.StoreDir != "data" || !so.NoSigs {
		t.Errorf("nats-server is not asked for a durable store: %+v", so)
	}
	if so.Host != "127.0.0.1" || so.Port != 4222 || so.MaxPayload != 4<<20 {
		t.Errorf("got %s:%d with %d bytes, want 127.0.0.1:4222 with 4 MiB", so.Host, so.Port, so.MaxPayload)
	}
	o.Listen = "127.0.0.1:0"
	if random, err := o.serverOptions(); err != nil || random.Port != server.RANDOM_PORT {
		t.Errorf("port 0 became %d, want nats-server's free port %d: %v", random.Port, server.RANDOM_PORT, err)
	}
}

func TestOnlyLoopback(t *testing.T) {
	for _, listen := range []string{"127.0.0.1:0", "127.0.0.2:4222", "localhost:4222", "[::1]:4222"} {
		if _, err := (Options{Listen: listen}).serverOptions(); err != nil {
			t.Errorf("%s: refused: %v", listen, err)
		}
	}
	for _, listen := range []string{":4222", "0.0.0.0:4222", "[::]:4222", "192.168.0.1:4222", "example.com:4222"} {
		var refused *NotLoopbackError
		if _, err := Start(Options{StoreDir: t.TempDir(), Listen: listen}); !errors.As(err, &refused) {
			t.Errorf("%s: got %v, want a NotLoopbackError", listen, err)
		}
	}
	for _, listen := range []string{"127.0.0.1", "127.0.0.1:nats", "127.0.0.1:-1", "127.0.0.1:70000"} {
		var bad *ListenAddressError
		if _, _, err := (Options{Listen: listen}).hostPort(); !errors.As(err, &bad) {
			t.Errorf("%s: got %v, want a ListenAddressError", listen, err)
		}
	}
}

func TestValidateNamesEveryProblem(t *testing.T) {
	err := Options{Listen: "0.0.0.0:1", MaxPayload: -1, MaxStore: -1, StartTimeout: -1}.Validate()
	if err == nil {
		t.Fatal("no problem found")
	}
	for _, field := range []string{"StoreDir", "loopback", "MaxPayload", "MaxStore", "StartTimeout"} {
		if !strings.Contains(err.Error(), field) {
			t.Errorf("the error does not speak of %s:\n%v", field, err)
		}
	}
}
