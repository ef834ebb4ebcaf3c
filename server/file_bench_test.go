package server_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/natstest"
	"github.com/skein-threads/skein/server"
)

// BenchmarkFiles writes and reads files, and in turn puts the same bytes into a
// bare object store of the same server and gets them, so that both have the same
// machine. The server fsyncs what it acknowledges. Each write has other bytes, so
// that nothing is shared; ratio is the median of skein's MB/s to the bare one's.
func BenchmarkFiles(b *testing.B) {
	server, err := server.Start(b.Context(), server.Config{Store: b.TempDir(), NATSListen: "127.0.0.1:0", HTTPListen: "127.0.0.1:0"}, zerolog.Nop())
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = server.Stop(b.Context()) }()
	nc := natstest.Dial(b, server.Addresses().NATS)
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
	made, err := c.Send(b.Context(), "", events.CreateThread{})
	if err != nil {
		b.Fatal(err)
	}
	f := c.Files(made.ThreadID)
	var n uint64
	var begin time.Time
	for _, size := range []int{4 << 10, 1 << 20, 256 << 20} {
		data := noise(size, 1)
		inTurn := func(name string, bare, skein func() error) {
			b.Run(fmt.Sprintf("%s/%dKB", name, size>>10), func(b *testing.B) {
				var took [2][]float64
				var ratios []float64
				for b.Loop() {
					n++
					binary.LittleEndian.PutUint64(data, n)
					for i, do := range []func() error{bare, skein} {
						begin = time.Now()
						if err := do(); err != nil {
							b.Fatal(name, i, err)
						}
						took[i] = append(took[i], time.Since(begin).Seconds())
					}
					last := len(took[0]) - 1
					ratios = append(ratios, took[0][last]/took[1][last])
				}
				b.ReportMetric(float64(size)/1e6/median(took[0]), "bare-MB/s")
				b.ReportMetric(float64(size)/1e6/median(took[1]), "skein-MB/s")
				b.ReportMetric(median(ratios), "ratio")
			})
		}
		inTurn("write", func() error {
			var err error
			for range 10 { // it does not hold back: a large one may be too much at once for the server
				begin = time.Now()
				if _, err = bare.Put(b.Context(), jetstream.ObjectMeta{Name: "x"}, bytes.NewReader(data)); err == nil {
					break
				}
			}
			return err
		}, func() error {
			_, err := f.WriteFile(b.Context(), "/x", data, "", client.WriteFileOptions{})
			return err
		})
		inTurn("read", func() error {
			result, err := bare.Get(b.Context(), "x")
			if err == nil {
				_, err = io.Copy(io.Discard, result)
			}
			return err
		}, func() error {
			stream, err := f.ReadFileStream(b.Context(), "/x")
			if err != nil {
				return err
			}
			for _, err := range stream {
				if err != nil {
					return err
				}
			}
			return nil
		})
	}
	b.Run("grep/256MB", func(b *testing.B) {
		line := "2026-02-20T12:00:00Z level=info msg=\"the order was shipped\" id=0195e5d0 took=12ms\n"
		text := strings.NewReader(strings.Repeat(line, 256<<20/len(line)))
		if _, err := f.WriteFileFrom(b.Context(), "/log", text, "text/plain", client.WriteFileOptions{}); err != nil {
			b.Fatal(err)
		}
		b.SetBytes(256 << 20)
		for b.Loop() {
			found, err := f.Grep(b.Context(), events.GrepFiles{Pattern: "was (lost|stolen)", Glob: "/log"})
			if err != nil || found.Bytes < 255<<20 || found.Truncated {
				b.Fatal(found, err)
			}
		}
	})
}

func median(list []float64) float64 {
	slices.Sort(list)
	return list[len(list)/2]
}
