package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/nats-io/nats.go"
	"github.com/skein-threads/skein/eventlog"
	"github.com/skein-threads/skein/eventlog/assets"
	"github.com/skein-threads/skein/eventlog/objects"
	"github.com/skein-threads/skein/eventlog/streams"
)

// Restore creates the streams of a backup on a server that has none of Skein's. replicas
// is the number of copies; 0: as many as there were. No Skein may run meanwhile, and none
// starts until [Finish] was called; it rebuilds what is derived. progress receives the number
// of bytes so far. The error is an *[IncompleteError] if a stream has less than its copy, and
// an *[assets.UnfinishedError] if another restore into the server did not end.
func Restore(ctx context.Context, log *eventlog.Log, dir string, replicas int, progress func(stream string, bytes int64)) (*Manifest, error) {
	b, err := Read(dir)
	if err != nil {
		return nil, err
	}
	conn := log.Streams()
	if err := checkEmpty(ctx, conn); err != nil {
		return nil, err
	}
	if err := assets.BeginRestore(ctx, conn); err != nil {
		return nil, err
	}
	for _, s := range b.Streams {
		held, err := s.read(dir)
		if err == nil {
			err = restoreStream(ctx, conn, s, dir, replicas, func(n int64) { progress(s.Name, n) })
		}
		if err == nil {
			err = held.restored(ctx, conn, s.Name)
		}
		if err != nil {
			return nil, fmt.Errorf("restoring stream %s: %w", s.Name, err)
		}
	}
	return b, nil
}

// Finish says that what [Restore] restored was checked: a Skein may start now.
func Finish(ctx context.Context, log *eventlog.Log) error {
	return assets.FinishRestore(ctx, log.Streams())
}

// read reads the copy of a stream, and compares it with the manifest, which of older backups
// has no numbers.
func (s *Stream) read(dir string) (*snapshot, error) {
	held, err := readSnapshot(filepath.Join(dir, s.File))
	if err != nil {
		return nil, err
	}
	if s.Last > 0 && (held.messages != s.Messages || held.first != s.First || held.last != s.Last) {
		return nil, fmt.Errorf("%s holds %d messages, sequences %d to %d, and %s says %d, sequences %d to %d",
			s.File, held.messages, held.first, held.last, manifestFile, s.Messages, s.First, s.Last)
	}
	return held, nil
}

// checkEmpty returns an error if a server has a stream of Skein's.
func checkEmpty(ctx context.Context, conn *streams.Conn) error {
	n := conn.Config().Names
	if err := assets.CheckRestored(ctx, conn); err != nil {
		return err
	}
	names := conn.JetStream().StreamNames(ctx)
	for name := range names.Name() {
		for _, ours := range []string{n.Stream(""), "KV_" + n.Bucket("thread_"), objects.Stream(n.Bucket("thread_")), assets.PairsStream(n, "")} {
			if strings.HasPrefix(name, ours) {
				return &streams.AssetError{Name: name, Problem: "it is there already", Hint: "restore into a server without Skein's streams, or remove them all first"}
			}
		}
	}
	return names.Err()
}

// restoreStream sends a snapshot to JetStream.
func restoreStream(ctx context.Context, conn *streams.Conn, s Stream, dir string, replicas int, progress func(int64)) error {
	var config map[string]jsontext.Value
	if err := json.Unmarshal(s.Config, &config); err != nil {
		return err
	}
	if s.Name == conn.Config().Names.Stream(assets.LogStream) {
		if err := renameIncarnation(config); err != nil {
			return err
		}
	}
	if replicas > 0 {
		config["num_replicas"] = jsontext.Value(fmt.Sprint(replicas))
	}
	f, err := os.Open(filepath.Join(dir, s.File))
	if err != nil {
		return err
	}
	defer f.Close()
	var begun struct {
		Error   *streams.Refusal `json:"error"`
		Deliver string           `json:"deliver_subject"`
	}
	err = streams.UntilResponders(ctx, func() error {
		return request(ctx, conn, "STREAM.RESTORE."+s.Name, struct {
			Config map[string]jsontext.Value `json:"config"`
			State  jsontext.Value            `json:"state"`
		}{config, s.State}, &begun)
	})
	switch {
	case err != nil:
		return err
	case begun.Error != nil:
		return begun.Error
	}
	sent := int64(0)
	for piece := make([]byte, 128<<10); ; {
		n, err := io.ReadFull(f, piece)
		if n > 0 {
			if err := sendPiece(ctx, conn, begun.Deliver, piece[:n]); err != nil {
				return err
			}
			sent += int64(n)
			progress(sent)
		}
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			if err := sendPiece(ctx, conn, begun.Deliver, nil); err != nil { // the end; it is answered when the stream is there
				return err
			}
			if string(config["allow_direct"]) != "true" {
				return nil
			}
			return awaitReadable(ctx, conn, s.Name)
		case err != nil:
			return err
		}
	}
}

// renameIncarnation sets another incarnation in a stream's configuration: positions of the stream
// that was copied may be of messages that the copy does not have.
func renameIncarnation(config map[string]jsontext.Value) (err error) {
	metadata := map[string]string{}
	if raw, ok := config["metadata"]; ok {
		if err := json.Unmarshal(raw, &metadata); err != nil {
			return err
		}
	}
	metadata[streams.IncarnationKey] = streams.NewIncarnation()
	config["metadata"], err = json.Marshal(metadata, json.Deterministic(true))
	return err
}

// awaitReadable waits until direct gets on this connection reach a stream: on a cluster
// its server may not know yet which servers have copies.
func awaitReadable(ctx context.Context, conn *streams.Conn, stream string) error {
	return streams.UntilResponders(ctx, func() error {
		_, err := conn.Direct(ctx, stream, streams.GetRequest{Seq: 1})
		return err
	})
}

// sendPiece sends a piece of a snapshot and waits for its acknowledgement.
func sendPiece(ctx context.Context, conn *streams.Conn, subject string, piece []byte) error {
	ctx, cancel := context.WithTimeout(ctx, pieceWait)
	defer cancel()
	var m *nats.Msg
	err := streams.UntilResponders(ctx, func() (err error) {
		m, err = conn.NATS().RequestWithContext(ctx, subject, piece)
		return err
	})
	if err != nil || len(m.Data) == 0 {
		return err
	}
	var answer struct {
		Error *streams.Refusal `json:"error"`
	}
	if err := json.Unmarshal(m.Data, &answer); err != nil {
		return err
	}
	if answer.Error != nil {
		return answer.Error
	}
	return nil
}
