package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/klauspost/compress/s2"
	"github.com/nats-io/nats-server/v2/server/archive"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/skein-threads/skein/eventlog/streams"
	"github.com/skein-threads/skein/internal/retry"
)

// IncompleteError says that the copy of a stream lacks a message that the stream has, or the
// restored stream one that the copy has. A backup without it was not made, and a restore
// without it did not end.
type IncompleteError struct {
	Stream      string
	Want, Have  uint64 // messages
	Seq         uint64 // the first one that is missing; 0: it is not known
	WhileCopied bool   // the copy lacks it; otherwise the restored stream
}

func (e *IncompleteError) Error() string {
	from := ""
	if e.Seq > 0 {
		from = fmt.Sprintf(", the first one that is missing is %d", e.Seq)
	}
	if !e.WhileCopied {
		return fmt.Sprintf("the restored stream %s has %d messages, and its copy has %d%s: the restore did not end", e.Stream, e.Have, e.Want, from)
	}
	return fmt.Sprintf("stream %s has %d messages, and the server could copy %d of them%s: %s", e.Stream, e.Want, e.Have, from, noBackup)
}

// noBackup says what is true after a copy has failed, and what to do.
const noBackup = "this is no backup, and earlier ones are as they were; stop Skein, see what is damaged with skein store check, " +
	"and mend it with skein store repair --from an earlier backup"

// snapshot is what the file of a stream's copy holds.
type snapshot struct {
	state struct { // of the stream when the copy began
		Messages uint64 `json:"messages"`
		First    uint64 `json:"first_seq"`
		Last     uint64 `json:"last_seq"`
	}
	messages    uint64
	first, last uint64 // sequences; 0: it has no message
	seen        uint64 // up to where it was read
	ageing      uint64 // how many messages have a time to live of their own
	gaps        []gap  // what it does not have, up to state.Last
}

// gap is a range of sequences.
type gap struct{ from, to uint64 }

// readSnapshot reads a copy to its end.
func readSnapshot(file string) (*snapshot, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var s snapshot
	for r := archive.NewReader(s2.NewReader(f)); ; {
		h, err := r.Next()
		switch {
		case errors.Is(err, io.EOF):
			return nil, fmt.Errorf("%s is cut off after sequence %d", filepath.Base(file), s.seen)
		case errors.Is(err, archive.ErrInvalidArchive) && s.seen == 0 && s.state.Last == 0:
			return nil, fmt.Errorf("%s is no snapshot of nats-server 2.15: %w", filepath.Base(file), err)
		case err != nil:
			return nil, fmt.Errorf("%s: %w", filepath.Base(file), err)
		case h.Sequence > 0:
			if err := s.message(h, r); err != nil {
				return nil, fmt.Errorf("%s: sequence %d: %w", filepath.Base(file), h.Sequence, err)
			}
		case h.Name == "state.json":
			if err := json.UnmarshalRead(r, &s.state); err != nil {
				return nil, fmt.Errorf("%s: %s: %w", filepath.Base(file), h.Name, err)
			}
			s.seen = max(s.state.First, 1) - 1
		case h.Name == "": // the end
			if s.seen < s.state.Last {
				s.gaps = append(s.gaps, gap{s.seen + 1, s.state.Last})
			}
			return &s, nil
		}
	}
}

// message counts a message.
func (s *snapshot) message(h *archive.Header, body io.Reader) error {
	if h.Sequence > s.seen+1 {
		s.gaps = append(s.gaps, gap{s.seen + 1, h.Sequence - 1})
	}
	if s.messages++; s.messages == 1 {
		s.first = h.Sequence
	}
	s.last, s.seen = h.Sequence, h.Sequence
	if h.HeaderSize == 0 {
		return nil
	}
	raw := make([]byte, h.HeaderSize)
	if _, err := io.ReadFull(body, raw); err != nil {
		return err
	}
	headers, err := nats.DecodeHeadersMsg(raw)
	if err == nil && headers.Get(jetstream.MsgTTLHeader) != "" {
		s.ageing++
	}
	return nil
}

// complete returns an *IncompleteError unless the copy has every message that the stream had
// when it began, but for those that were removed from the stream meanwhile.
func (s *snapshot) complete(ctx context.Context, conn *streams.Conn, name string) error {
	if s.messages >= s.state.Messages {
		return nil
	}
	stream, err := conn.JetStream().Stream(ctx, name)
	if err != nil {
		return err
	}
	now, err := stream.Info(ctx, jetstream.WithDeletedDetails(true))
	if err != nil {
		return err
	}
	removed := make(map[uint64]struct{}, len(now.State.Deleted))
	for _, seq := range now.State.Deleted {
		removed[seq] = struct{}{}
	}
	for _, g := range s.gaps {
		for seq := max(g.from, now.State.FirstSeq); seq <= g.to; seq++ {
			if _, ok := removed[seq]; !ok {
				return &IncompleteError{Stream: name, Want: s.state.Messages, Have: s.messages, Seq: seq, WhileCopied: true}
			}
		}
	}
	return nil
}

// restored returns an *IncompleteError unless a stream has what its copy has, but for what
// grew too old meanwhile.
func (s *snapshot) restored(ctx context.Context, conn *streams.Conn, name string) error {
	replicas := 0
	return retry.Do(ctx, retry.Policy{First: 50 * time.Millisecond, Max: time.Second, Limit: 10 * time.Second}, func() error {
		stream, err := conn.JetStream().Stream(ctx, name)
		if err != nil {
			return err
		}
		info := stream.CachedInfo()
		replicas = info.Config.Replicas
		least := s.messages - s.ageing
		if info.Config.MaxAge > 0 {
			least = 0
		}
		if have := info.State.Msgs; have < least || have > s.messages || info.State.LastSeq < s.state.Last {
			return &IncompleteError{Stream: name, Want: s.messages, Have: have}
		}
		return nil
	}, func(err error) bool {
		var incomplete *IncompleteError
		if errors.As(err, &incomplete) {
			return replicas > 1 // a new leader may learn of it from the others
		}
		return streams.MayPass(err)
	})
}
