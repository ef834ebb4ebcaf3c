package embedded

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"net"
	"strconv"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/rs/zerolog"
)

const (
	// NoListen is the Options.Listen of a server that opens no port: this process
	// alone reaches it, by Server.ConnectInProcess.
	NoListen = "none"
	// DefaultListen is nats-server's own port, on loopback.
	DefaultListen = "127.0.0.1:4222"
	// DefaultMaxPayload is the largest message, and so the largest commit.
	DefaultMaxPayload int32 = 4 << 20
	// DefaultServerName is the name in server info and monitoring.
	DefaultServerName = "skein"
	// DefaultStartTimeout bounds the recovery of the store. A store that was
	// closed cleanly opens in milliseconds; after a crash the server reads the
	// streams' last blocks again.
	DefaultStartTimeout = 2 * time.Minute
)

// Options says how the server runs. Begin with NewOptions: a literal leaves
// SyncAlways off, and then an acknowledged message may be lost with the power.
type Options struct {
	// StoreDir is the directory of the store; created if absent.
	// nats-server puts its files into the folder jetstream within. Required.
	StoreDir string

	// Listen is host:port, the host a loopback address or localhost; port 0
	// takes a free port, see Server.URL; or NoListen. Default DefaultListen.
	Listen string

	// MaxPayload is the largest message in bytes. Default DefaultMaxPayload.
	MaxPayload int32

	// SyncAlways makes every acknowledgement wait for fsync. NewOptions sets
	// it; tests may turn it off.
	SyncAlways bool

	// MaxStore is the most the streams may keep on disk, in bytes, as nats-server counts
	// them: before they are compressed, and without what was deleted but is still in the
	// files. 0: no limit. The server's own default, three quarters of the free space at
	// start, would refuse writes long before the disk is full.
	MaxStore int64

	// ServerName is the name in server info and logs. Default DefaultServerName.
	ServerName string

	// StartTimeout bounds Start. Default DefaultStartTimeout.
	StartTimeout time.Duration

	// Conf is a file of nats-server's own configuration: accounts, users, TLS and
	// limits of connections are taken from it. Its address, name, store and
	// largest message give way to the fields here, and it opens no other port.
	// With both authorization and TLS in it, Listen may be any address. Default
	// none: everybody who reaches the port may do everything.
	Conf string

	// Account is the account that holds the streams, as the server names it. Start
	// refuses a store in which only other accounts have streams: those would seem
	// to be lost. Default the server's own, $G.
	Account string

	// Prepare is called when the store is locked, before the server touches it: an
	// error of it is Start's, and nothing is started. Default none.
	Prepare func() error

	// Ended is called when the server has ended after a start, while the store is
	// still locked. Default none.
	Ended func()

	// WriteFailed is called when the server could not write to the store, for example
	// because the disk is full, or a file may not be written. The server then refuses all
	// writes to that stream until it is restarted. The calling goroutine holds locks of the
	// server, so WriteFailed must return at once and must not call the server. Default none.
	WriteFailed func(error)

	// Streams are those of the account whose failed writes WriteFailed is told of, whatever
	// the error was. They are made before they are written, and never deleted. Default none.
	Streams []string

	// OtherFailed is told, once for each stream of the account that is not in Streams, that the
	// server takes no writes to it until it is restarted. Default none.
	OtherFailed func(*UnwrittenError)

	// Logger takes the server's log; the zero Logger drops it. The server's
	// notices are logged at debug, its debug lines at trace.
	Logger zerolog.Logger
}

// NewOptions returns the durable options for storeDir, with every default.
func NewOptions(storeDir string) Options {
	return Options{StoreDir: storeDir, SyncAlways: true}.WithDefaults()
}

// WithDefaults returns a copy whose empty fields have their defaults. It leaves
// StoreDir, MaxStore and SyncAlways as they are: their zero values have a meaning.
func (o Options) WithDefaults() Options {
	if o.Listen == "" {
		o.Listen = DefaultListen
	}
	if o.MaxPayload == 0 {
		o.MaxPayload = DefaultMaxPayload
	}
	if o.ServerName == "" {
		o.ServerName = DefaultServerName
	}
	if o.StartTimeout == 0 {
		o.StartTimeout = DefaultStartTimeout
	}
	if o.Account == "" {
		o.Account = server.DEFAULT_GLOBAL_ACCOUNT
	}
	return o
}

// Validate reports every problem at once. It looks at the values only, not at
// the disk or the port.
func (o Options) Validate() error {
	var problems []error
	if o.StoreDir == "" {
		problems = append(problems, errors.New("embedded: StoreDir is empty; name the directory to keep the log in"))
	}
	if _, err := o.serverOptions(); err != nil {
		problems = append(problems, err)
	}
	if o.MaxPayload < 0 {
		problems = append(problems, fmt.Errorf("embedded: MaxPayload is %d bytes; give a positive number, or 0 for %d", o.MaxPayload, DefaultMaxPayload))
	}
	if o.MaxStore < 0 {
		problems = append(problems, fmt.Errorf("embedded: MaxStore is %d bytes; give a positive number, or 0 for no limit", o.MaxStore))
	}
	if o.StartTimeout < 0 {
		problems = append(problems, fmt.Errorf("embedded: StartTimeout is %s; give a positive duration, or 0 for %s", o.StartTimeout, DefaultStartTimeout))
	}
	return errors.Join(problems...)
}

// hostPort splits Listen.
func (o Options) hostPort() (string, int, error) {
	if o.Listen == NoListen {
		return server.DEFAULT_HOST, 0, nil
	}
	host, portText, err := net.SplitHostPort(o.Listen)
	if err != nil {
		return "", 0, &ListenAddressError{Address: o.Listen, Err: err}
	}
	port, err := strconv.ParseUint(portText, 10, 16)
	if err != nil {
		return "", 0, &ListenAddressError{Address: o.Listen, Err: err}
	}
	if host == "localhost" {
		host = "127.0.0.1"
	}
	return host, int(port), nil
}

// loopback reports whether only this machine reaches a host. No name but localhost
// counts as such: what it resolves to may change.
func loopback(host string) bool {
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

// noLimit is more than any disk has, and leaves nats-server room to add to it.
const noLimit = math.MaxInt64 / 2

// greetWithin is how long a client may take to shake hands over TLS, and then to send its
// credentials, unless the configuration file says otherwise: as long as package connect waits
// for the server. The 2 s of nats-server are too few where either side has much else to do.
const greetWithin = 10 * time.Second

// A client that answers no ping for 10 to 15 s is disconnected, unless the configuration file says
// otherwise. Until then a process that hangs is sent its share of the requests. nats-server's own
// are two minutes and two.
const (
	pingInterval = 5 * time.Second
	pingsOut     = 2
)

// serverOptions translates into nats-server's own options.
func (o Options) serverOptions() (*server.Options, error) {
	host, port, err := o.hostPort()
	if err != nil {
		return nil, err
	}
	out, err := o.fromConf()
	if err != nil {
		return nil, err
	}
	if o.Listen == NoListen {
		host, out.DontListen = "127.0.0.1", true
	}
	if !loopback(host) && (!authorizes(out) || out.TLSConfig == nil) {
		return nil, &NotLoopbackError{Address: o.Listen}
	}
	if host == "" {
		host = server.DEFAULT_HOST
	}
	if port == 0 {
		port = server.RANDOM_PORT // nats-server reads 0 as its default port.
	}
	out.ServerName, out.Host, out.Port, out.MaxPayload = o.ServerName, host, port, o.MaxPayload
	out.JetStream, out.StoreDir, out.SyncAlways, out.JetStreamMaxStore = true, o.StoreDir, o.SyncAlways, cmp.Or(o.MaxStore, noLimit)
	out.DisableJetStreamBanner, out.NoSigs = true, true
	// Nearly every message of Skein has a subject of its own: a cache of subjects
	// would fill and empty without a hit.
	out.NoSublistCache = true
	// A client that does not read must not block others: by default the server makes a writer
	// wait for a lagging reader, and the writer is Skein, with the replies of all tenants. A
	// reader that lags by 48 MB is sent no more until it has caught up.
	out.NoFastProducerStall = true
	out.PingInterval, out.MaxPingsOut = cmp.Or(out.PingInterval, pingInterval), cmp.Or(out.MaxPingsOut, pingsOut)
	out.TLSTimeout = cmp.Or(out.TLSTimeout, greetWithin.Seconds())
	out.AuthTimeout = cmp.Or(out.AuthTimeout, out.TLSTimeout)
	return out, nil
}
