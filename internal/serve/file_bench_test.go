package serve_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/serve"
)

// BenchmarkFiles writes and reads files, beside the same bytes put into and got
// from a bare object store of the same server, which fsyncs what it acknowledges.
// Each write has other bytes, so that nothing is shared.
func BenchmarkFiles(b *testing.B) {
	server, err := serve.Start(b.Context(), serve.Config{Store: b.TempDir(), NATSListen: "127.0.0.1:0", HTTPListen: "127.0.0.1:0"}, zerolog.Nop())
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = server.Stop(b.Context()) }()
	nc, err := nats.Connect(server.Addresses().NATS)
	if err != nil {
		b.Fatal(err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		b.Fatal(err)
	}
	bare, err := js.CreateObjectStore(b.Context(), jetstream.ObjectStoreConfig{Bucket: "bare"})
	if err != nil {
		b.Fatal(err)
	}
	c, err := client.Connect(server.Addresses().NATS, client.Options{Tenant: "acme"})
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	made, err := c.CreateThread(b.Context(), events.CreateThread{})
	if err != nil {
		b.Fatal(err)
	}
	f := c.Files(made.ThreadID)
	var n uint64
	for _, size := range []int{4 << 10, 1 << 20, 256 << 20} {
		data := noise(size, 1)
		other := func() []byte {
			n++
			binary.LittleEndian.PutUint64(data, n)
			return data
		}
		run := func(name string, do func(b *testing.B)) {
			b.Run(fmt.Sprintf("%s/%dKB", name, size>>10), func(b *testing.B) {
				b.SetBytes(int64(size))
				for b.Loop() {
					do(b)
				}
			})
		}
		run("write/bare", func(b *testing.B) {
			if _, err := bare.Put(b.Context(), jetstream.ObjectMeta{Name: "x"}, bytes.NewReader(other())); err != nil {
				b.Fatal(err)
			}
		})
		run("write/skein", func(b *testing.B) {
			if _, err := f.WriteFile(b.Context(), "/x", other(), "", client.WriteFileOptions{}); err != nil {
				b.Fatal(err)
			}
		})
		run("read/bare", func(b *testing.B) {
			result, err := bare.Get(b.Context(), "x")
			if err == nil {
				_, err = io.Copy(io.Discard, result)
			}
			if err != nil {
				b.Fatal(err)
			}
		})
		run("read/skein", func(b *testing.B) {
			stream, err := f.ReadFileStream(b.Context(), "/x")
			if err != nil {
				b.Fatal(err)
			}
			for _, err := range stream {
				if err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
