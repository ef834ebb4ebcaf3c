package eventlog

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
	"github.com/skein-threads/skein/eventlog/streams"
)

// Backup is a copy of what is not derived, in a folder: the log, the submitted
// commands that wait, archived commits, and the contents of files, each as JetStream's own
// snapshot of the stream, and this in manifest.json. Sequences stay as they are, so that
// whatever names one stays right. The manifest is written last: a folder without
// one is no backup.
type Backup struct {
	Format  int            `json:"format"` // 1
	Made    time.Time      `json:"made"`
	Streams []StreamBackup `json:"streams"`
}

// StreamBackup is the copy of one stream.
type StreamBackup struct {
	Name   string         `json:"name"`
	File   string         `json:"file"` // in the folder
	Bytes  int64          `json:"bytes"`
	SHA256 string         `json:"sha256"`
	Config jsontext.Value `json:"config"` // as JetStream has it
	State  jsontext.Value `json:"state"`
}

const (
	backupFormat   = 1
	backupManifest = "manifest.json"
	backupWait     = 30 * time.Second // for the next piece
)

// kept lists the streams of a backup, in the order in which they are copied. A
// command that is done while the backup is made is in its copy of the log; what a
// commit refers to is stored before it, so it is in the copy of the contents, and of
// the archives.
func (l *Log) kept() []string {
	n := l.cfg.Names
	return []string{n.Stream(CommandStream), n.Stream(LogStream), "OBJ_" + n.Bucket(ArchiveBucket), "OBJ_" + n.Bucket(FileBucket)}
}

// Backup copies what is not derived into a folder, which must be empty or not
// there. Skein may be at work meanwhile. progress is told of the bytes so far.
func (l *Log) Backup(ctx context.Context, dir string, progress func(stream string, bytes int64)) (*Backup, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	if there, err := os.ReadDir(dir); err != nil || len(there) > 0 {
		return nil, errors.Join(err, fmt.Errorf("a backup is made in an empty folder; %s holds %d entries", dir, len(there)))
	}
	b := &Backup{Format: backupFormat, Made: time.Now().UTC()}
	for _, name := range l.kept() {
		// On a cluster nobody answers for a stream that is not there.
		_, err := l.conn.JetStream().Stream(ctx, name)
		if errors.Is(err, jetstream.ErrStreamNotFound) && name != l.cfg.Names.Stream(LogStream) {
			continue // nobody has needed it yet
		}
		var s StreamBackup
		if err == nil {
			s, err = l.copyStream(ctx, name, dir, func(n int64) { progress(name, n) })
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
	return b, os.WriteFile(filepath.Join(dir, backupManifest), append(raw, '\n'), 0o600)
}

// copyStream writes JetStream's snapshot of a stream into a file.
func (l *Log) copyStream(ctx context.Context, name, dir string, progress func(int64)) (StreamBackup, error) {
	s := StreamBackup{Name: name, File: name + ".snapshot"}
	inbox := l.conn.NATS().NewInbox()
	pieces, err := l.conn.NATS().SubscribeSync(inbox)
	if err != nil {
		return s, err
	}
	defer func() { _ = pieces.Unsubscribe() }()
	var begun struct {
		Error  *streams.Refusal `json:"error"`
		Config jsontext.Value   `json:"config"`
		State  jsontext.Value   `json:"state"`
	}
	err = l.api(ctx, "STREAM.SNAPSHOT."+name, struct {
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
	return s, errors.Join(err, f.Close())
}

// receive writes the pieces of a snapshot until the last, and acknowledges each.
func receive(ctx context.Context, pieces *nats.Subscription, into io.Writer, progress func(int)) error {
	for {
		wait, cancel := context.WithTimeout(ctx, backupWait)
		m, err := pieces.NextMsgWithContext(wait)
		cancel()
		if err != nil {
			return fmt.Errorf("waiting for the next piece: %w", err)
		}
		if len(m.Data) == 0 {
			if status := m.Header.Get("Status"); status != "" && status != "204" {
				return fmt.Errorf("the server gave up: %s %s", status, m.Header.Get("Description"))
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

// api asks JetStream.
func (l *Log) api(ctx context.Context, what string, request, answer any) error {
	body, err := json.Marshal(request)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, backupWait)
	defer cancel()
	m, err := l.conn.NATS().RequestWithContext(ctx, l.cfg.API+"."+what, body)
	if err != nil {
		return err
	}
	return json.Unmarshal(m.Data, answer)
}

// ReadBackup reads what a folder holds, and checks that every file is as it was
// written.
func ReadBackup(dir string) (*Backup, error) {
	raw, err := os.ReadFile(filepath.Join(dir, backupManifest))
	if err != nil {
		return nil, fmt.Errorf("%s is no backup, or one that was broken off: %w", dir, err)
	}
	var b Backup
	if err := json.Unmarshal(raw, &b); err != nil || b.Format != backupFormat {
		return nil, fmt.Errorf("%s: this is no backup of format %d: %w", backupManifest, backupFormat, err)
	}
	for _, s := range b.Streams {
		if filepath.Base(s.File) != s.File {
			return nil, fmt.Errorf("%s names the file %q, which is elsewhere", backupManifest, s.File)
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
