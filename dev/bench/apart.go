package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/rs/zerolog"

	"github.com/skein-threads/skein/server"
)

// apart is what a Skein in a process of its own is told.
type apart struct {
	URL         string `json:"url"` // of the server
	ThreadCache int64  `json:"threadCache"`
	IdleMillis  int64  `json:"idleMillis"`
	Profile     string `json:"profile,omitzero"` // file for heap profiles, to whose name .skein is added
}

// RunSkein is the process of a Skein whose memory is measured. It reads an apart
// from its standard input, then values of any kind, and answers each with its
// Usage, the first one when it can take commands, until the input ends.
func RunSkein(ctx context.Context) error {
	in := jsontext.NewDecoder(os.Stdin)
	var a apart
	if err := json.UnmarshalDecode(in, &a); err != nil {
		return fmt.Errorf("reading what to do: %w", err)
	}
	s, err := server.Start(ctx, server.Config{NATS: a.URL, HTTPListen: "127.0.0.1:0", ThreadCache: a.ThreadCache}, zerolog.Nop())
	if err != nil {
		return err
	}
	defer func() {
		stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		_ = s.Stop(stop)
	}()
	out := jsontext.NewEncoder(os.Stdout)
	for usage := (Usage{}); ; usage = idleUsage(ctx, time.Duration(a.IdleMillis)*time.Millisecond) {
		if err := heapProfile(a.Profile, ".skein"); err != nil {
			return err
		}
		if err := json.MarshalEncode(out, usage); err != nil {
			return err
		}
		if err := in.SkipValue(); errors.Is(err, io.EOF) || ctx.Err() != nil {
			return ctx.Err()
		} else if err != nil {
			return err
		}
	}
}

// skeinApart is such a process, seen from here.
type skeinApart struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *jsontext.Decoder
}

// startSkein starts this program with arguments that make it run RunSkein, and
// returns when it can take commands.
func startSkein(ctx context.Context, args []string, a apart) (*skeinApart, error) {
	cmd, in, out, err := part(ctx, args)
	if err != nil {
		return nil, err
	}
	s := &skeinApart{cmd: cmd, in: in, out: jsontext.NewDecoder(out)}
	if err = s.ask(a); err == nil {
		_, err = s.answer()
	}
	if err != nil {
		return nil, errors.Join(err, s.stop())
	}
	return s, nil
}

// ask asks for the memory of the process, which it tells when it is idle.
func (s *skeinApart) ask(question any) error {
	if err := json.MarshalWrite(s.in, question); err != nil {
		return fmt.Errorf("the process of Skein: %w", err)
	}
	return nil
}

func (s *skeinApart) answer() (u Usage, err error) {
	if err := json.UnmarshalDecode(s.out, &u); err != nil {
		return u, fmt.Errorf("the process of Skein: %w", err)
	}
	return u, nil
}

// stop ends the process and waits for it.
func (s *skeinApart) stop() error {
	_ = s.in.Close()
	return s.cmd.Wait()
}
