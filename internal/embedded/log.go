package embedded

import (
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"syscall"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/rs/zerolog"
)

// serverLog is nats-server's Logger on zerolog. It also keeps the first fatal
// message: nats-server expects its logger to end the process there and goes on
// half started if it does not, so Start has to know.
type serverLog struct {
	logger      zerolog.Logger
	writeFailed func(error) // nil if nobody is told
	suspect     func(error) // told of other errors, of which some are failed writes too; nil if nobody is

	mu    sync.Mutex // guards fatal
	fatal string
}

var _ server.Logger = (*serverLog)(nil)

func newServerLog(logger zerolog.Logger, writeFailed, suspect func(error)) *serverLog {
	return &serverLog{logger: logger.With().Str("component", "nats-server").Logger(), writeFailed: writeFailed, suspect: suspect}
}

// verbose tells whether the server's debug lines go anywhere.
func (l *serverLog) verbose() bool { return l.logger.Trace().Enabled() }

// Noticef logs at debug: a start has twenty notices and each is routine.
func (l *serverLog) Noticef(format string, v ...any) { l.logger.Debug().Msgf(format, v...) }

// Warnf logs at warn. The server says so that it may not write a file, and ends JetStream.
func (l *serverLog) Warnf(format string, v ...any) {
	l.logger.Warn().Msgf(format, v...)
	l.notice(v)
}

// Errorf logs at error. The server says in no other way that it cannot write: it
// answers no write then, and none after it.
func (l *serverLog) Errorf(format string, v ...any) {
	l.logger.Error().Msgf(format, v...)
	l.notice(v)
}

// notice reports the errors among the arguments of a line.
func (l *serverLog) notice(args []any) {
	if l.writeFailed == nil {
		return
	}
	for _, arg := range args {
		if err, ok := arg.(error); ok && unwritable(err) {
			l.writeFailed(err)
		} else if ok {
			l.suspect(err)
		}
	}
}

// unwritable reports whether an error of the system's says that a store takes no
// writes.
func unwritable(err error) bool {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, syscall.EROFS) {
		return true
	}
	var path *fs.PathError
	if !errors.As(err, &path) {
		return false
	}
	return errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EIO) && (path.Op == "write" || path.Op == "sync")
}

// Debugf logs at trace.
func (l *serverLog) Debugf(format string, v ...any) { l.logger.Trace().Msgf(format, v...) }

// Tracef logs at trace. The server's protocol trace is never turned on.
func (l *serverLog) Tracef(format string, v ...any) { l.logger.Trace().Msgf(format, v...) }

// Fatalf keeps the first message and logs at error: an embedded server must
// not end the process it lives in.
func (l *serverLog) Fatalf(format string, v ...any) {
	message := fmt.Sprintf(format, v...)
	l.mu.Lock()
	if l.fatal == "" {
		l.fatal = message
	}
	l.mu.Unlock()
	l.logger.Error().Msg(message)
}

// failure is the first fatal message, empty if there was none.
func (l *serverLog) failure() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.fatal
}
