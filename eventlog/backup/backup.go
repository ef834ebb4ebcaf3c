package backup

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/skein-threads/skein/eventlog"
	"github.com/skein-threads/skein/eventlog/assets"
	"github.com/skein-threads/skein/eventlog/streams"
)

// Manifest describes a backup: a folder with copies of what is not derived (the log,
// waiting submitted commands, archived commits, contents of files), each as JetStream's
// own snapshot of the stream, and the manifest in manifest.json. Sequences stay the same.
// The manifest is written last: a folder without one is no backup.
type Manifest struct {
	Format  int       `json:"format"` // 1
	Made    time.Time `json:"made"`
	Streams []Stream  `json:"streams"`
}

// Stream is the copy of one stream.
type Stream struct {
	Name   string         `json:"name"`
	File   string         `json:"file"` // in the folder
	Bytes  int64          `json:"bytes"`
	SHA256 string         `json:"sha256"`
	Config jsontext.Value `json:"config"` // as JetStream has it
	State  jsontext.Value `json:"state"`  // when the copy began

	// What the file holds. Messages that were removed from the stream while it was copied
	// may be absent, and no others.
	Messages uint64 `json:"messages"`
	First    uint64 `json:"first"` // sequence; 0: there is no message
	Last     uint64 `json:"last"`
}

const (
	format       = 1
	manifestFile = "manifest.json"
	pieceWait    = 30 * time.Second // for the next piece
)

// FolderError reports that a backup was not begun: the folder for it cannot be used.
type FolderError struct {
	Dir     string
	Entries int   // that are in it
	Err     error // why it cannot be read or created, nil if that is not the reason
}

func (e *FolderError) Error() string {
	if e.Err != nil {
		return "backup not begun: " + e.Err.Error()
	}
	return fmt.Sprintf("a backup is made in an empty folder; %s holds %d entries", e.Dir, e.Entries)
}

func (e *FolderError) Unwrap() error { return e.Err }

// Write copies what is not derived into a folder, which must be empty or absent. Skein
// may run meanwhile. progress receives the number of bytes so far. The error is a *[FolderError] if
// nothing was copied because of the folder, and an *[IncompleteError] if the server cannot read a
// message of a stream; then the folder has no manifest.
func Write(ctx context.Context, log *eventlog.Log, dir string, progress func(stream string, bytes int64)) (*Manifest, error) {
	err := os.MkdirAll(dir, 0o700)
	var there []os.DirEntry
	if err == nil {
		there, err = os.ReadDir(dir)
	}
	if err != nil || len(there) > 0 {
		return nil, &FolderError{Dir: dir, Entries: len(there), Err: err}
	}
	b := &Manifest{Format: format, Made: time.Now().UTC()}
	conn, names := log.Streams(), log.Config().Names
	kept, err := assets.Backed(ctx, conn)
	if err != nil {
		return nil, err
	}
	for _, name := range kept {
		// On a cluster a request for a missing stream has no responder.
		_, err := conn.JetStream().Stream(ctx, name)
		if errors.Is(err, jetstream.ErrStreamNotFound) && name != names.Stream(assets.LogStream) {
			continue // it was never needed
		}
		var s Stream
		if err == nil {
			s, err = copyStream(ctx, conn, name, dir, func(n int64) { progress(name, n) })
		}
		if err != nil {
			return nil, fmt.Errorf("copying stream %s: %w", name, err)
		}
		b.Streams = append(b.Streams, s)
	}
	raw, err := json.Marshal(b, jsontext.WithIndent("  "))
	if err != nil {
		return nil, err
	}
	return b, os.WriteFile(filepath.Join(dir, manifestFile), append(raw, '\n'), 0o600)
}

// copyStream writes JetStream's snapshot of a stream into a file.
func copyStream(ctx context.Context, conn *streams.Conn, name, dir string, progress func(int64)) (Stream, error) {
	s := Stream{Name: name, File: name + ".snapshot"}
	inbox := conn.NATS().NewInbox()
	pieces, err := conn.NATS().SubscribeSync(inbox)
	if err != nil {
		return s, err
	}
	defer func() { _ = pieces.Unsubscribe() }()
	var begun struct {
		Error  *streams.Refusal `json:"error"`
		Config jsontext.Value   `json:"config"`
		State  jsontext.Value   `json:"state"`
	}
	err = request(ctx, conn, "STREAM.SNAPSHOT."+name, struct {
		Deliver     string `json:"deliver_subject"`
		NoConsumers bool   `json:"no_consumers"`
		Check       bool   `json:"jsck"`
	}{inbox, true, true}, &begun)
	switch {
	case err != nil:
		return s, err
	case begun.Error != nil:
		return s, begun.Error
	}
	s.Config, s.State = begun.Config, begun.State
	f, err := os.OpenFile(filepath.Join(dir, s.File), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return s, err
	}
	sum := sha256.New()
	err = receive(ctx, pieces, io.MultiWriter(f, sum), func(n int) {
		s.Bytes += int64(n)
		progress(s.Bytes)
	})
	if err == nil {
		err = f.Sync()
	}
	s.SHA256 = hex.EncodeToString(sum.Sum(nil))
	if err := errors.Join(err, f.Close()); err != nil {
		return s, err
	}
	return s, s.count(ctx, conn, dir)
}

// count notes what the file of a copy holds, and checks that it is all that the stream had: a
// server leaves out what it cannot read, and says nothing.
func (s *Stream) count(ctx context.Context, conn *streams.Conn, dir string) error {
	held, err := readSnapshot(filepath.Join(dir, s.File))
	if err != nil {
		return err
	}
	s.Messages, s.First, s.Last = held.messages, held.first, held.last
	return held.complete(ctx, conn, s.Name)
}

// receive writes the pieces of a snapshot until the last, and acknowledges each.
func receive(ctx context.Context, pieces *nats.Subscription, into io.Writer, progress func(int)) error {
	for {
		wait, cancel := context.WithTimeout(ctx, pieceWait)
		m, err := pieces.NextMsgWithContext(wait)
		cancel()
		if err != nil {
			return fmt.Errorf("waiting for the next piece: %w", err)
		}
		if len(m.Data) == 0 {
			if status := m.Header.Get("Status"); status != "" && status != "204" {
				return fmt.Errorf("the server gave up: %s %s: %s", status, m.Header.Get("Description"), noBackup)
			}
			return nil
		}
		if _, err := into.Write(m.Data); err != nil {
			return err
		}
		progress(len(m.Data))
		if m.Reply != "" {
			if err := m.Respond(nil); err != nil {
				return err
			}
		}
	}
}

// request calls JetStream's API.
func request(ctx context.Context, conn *streams.Conn, what string, question, answer any) error {
	body, err := json.Marshal(question)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, pieceWait)
	defer cancel()
	m, err := conn.NATS().RequestWithContext(ctx, conn.Config().API+"."+what, body)
	if err != nil {
		return err
	}
	return json.Unmarshal(m.Data, answer)
}

// Read reads the manifest of a folder, and checks every file against its digest.
func Read(dir string) (*Manifest, error) {
	raw, err := os.ReadFile(filepath.Join(dir, manifestFile))
	if err != nil {
		return nil, fmt.Errorf("%s is no backup, or one that was broken off: %w", dir, err)
	}
	var b Manifest
	if err := json.Unmarshal(raw, &b); err != nil || b.Format != format {
		return nil, fmt.Errorf("%s: this is no backup of format %d: %w", manifestFile, format, err)
	}
	for _, s := range b.Streams {
		var stored struct {
			Metadata map[string]string `json:"metadata"`
		}
		if err := json.Unmarshal(s.Config, &stored); err != nil {
			return nil, fmt.Errorf("%s: the configuration of stream %s: %w", manifestFile, s.Name, err)
		}
		if err := streams.CheckFormat("the backup "+dir, stored.Metadata); err != nil {
			return nil, err
		}
		if filepath.Base(s.File) != s.File {
			return nil, fmt.Errorf("%s names the file %q, which is elsewhere", manifestFile, s.File)
		}
		sum, err := digest(filepath.Join(dir, s.File))
		if err != nil {
			return nil, err
		}
		if got := hex.EncodeToString(sum.Sum(nil)); got != s.SHA256 {
			return nil, fmt.Errorf("%s was changed since: its digest is %s, not %s; nothing was restored", s.File, got, s.SHA256)
		}
	}
	return &b, nil
}

func digest(name string) (hash.Hash, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	sum := sha256.New()
	_, err = io.Copy(sum, f)
	return sum, err
}
