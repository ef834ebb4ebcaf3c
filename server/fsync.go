package server

import (
	"context"
	"crypto/rand"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// fastestSync is what a disk needs at least to put a message down for good. An
// acknowledgement that costs less, beyond the way to the server and back, came
// before that.
const fastestSync = 60 * time.Microsecond

// warnUnsynced logs a warning if a server that Skein does not embed seems to
// acknowledge before fsync. Servers do not tell, so it is measured, on a stream
// that exists for that moment only. The log must exist: with the deletion of an account's
// last stream the server removes the account's folder, at any time later, and a stream
// that is created right then fails.
func (s *Server) warnUnsynced(ctx context.Context, nc *nats.Conn) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	ack, rtt, err := probeSync(ctx, nc, s.cfg.Replicas)
	switch {
	case err != nil:
		s.logger.Info().Err(err).Msg("whether the server waits for its disk could not be measured; it must have sync_interval: always")
	case ack-rtt < fastestSync:
		s.logger.Warn().Dur("acknowledgement", ack).Dur("roundTrip", rtt).Str("server", nc.ConnectedServerName()).
			Msg("the server acknowledges faster than a disk can store: a power cut may lose what was acknowledged; set sync_interval: always in the jetstream block of each nats-server and restart them one by one, see docs/cluster.md")
	}
}

// probeSync returns the shortest time of an acknowledgement that is stored in a
// file, and the shortest round trip.
func probeSync(ctx context.Context, nc *nats.Conn, replicas int) (ack, rtt time.Duration, err error) {
	js, err := jetstream.New(nc)
	if err != nil {
		return 0, 0, err
	}
	name := "SKEIN_PROBE_" + rand.Text()
	if _, err := js.CreateStream(ctx, jetstream.StreamConfig{
		Name: name, Subjects: []string{"_skein.probe." + name}, Storage: jetstream.FileStorage, Replicas: replicas,
		MaxAge: time.Minute, Description: "Skein measures whether this server waits for its disk; it may be deleted.",
	}); err != nil {
		return 0, 0, err
	}
	defer func() {
		leaving, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = js.DeleteStream(leaving, name) // it is empty in a minute, and named for what it is
	}()
	ack, rtt = time.Hour, time.Hour
	for range 32 {
		begun := time.Now()
		if _, err := js.Publish(ctx, "_skein.probe."+name, make([]byte, 512)); err != nil {
			return 0, 0, err
		}
		ack = min(ack, time.Since(begun))
		once, err := nc.RTT()
		if err != nil {
			return 0, 0, err
		}
		rtt = min(rtt, once)
	}
	return ack, rtt, nil
}
