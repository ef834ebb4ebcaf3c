package embedded

import (
	"fmt"
	"time"
)

// ListenAddressError says that Options.Listen is not a host and a port.
type ListenAddressError struct {
	Address string
	Err     error
}

func (e *ListenAddressError) Error() string {
	return fmt.Sprintf("embedded: cannot listen on %q: %v; give host:port, such as %s", e.Address, e.Err, DefaultListen)
}

func (e *ListenAddressError) Unwrap() error { return e.Err }

// NotLoopbackError says that Options.Listen is reachable, or may become
// reachable, from other machines, and that Options.Conf does not give both
// authorization and TLS.
type NotLoopbackError struct{ Address string }

func (e *NotLoopbackError) Error() string {
	return fmt.Sprintf("embedded: will not listen on %q, which is not loopback, without authentication and TLS; "+
		"listen on 127.0.0.1, or make a folder with both by skein access init --host and give it as --access", e.Address)
}

// ConfError is the error of an invalid Options.Conf.
type ConfError struct {
	File string
	Err  error
}

func (e *ConfError) Error() string {
	return fmt.Sprintf("embedded: the configuration %s: %v", e.File, e.Err)
}

func (e *ConfError) Unwrap() error { return e.Err }

// OtherAccountError says that the store's streams belong to another account than
// the one that is to be used. Nothing was changed.
type OtherAccountError struct{ Dir, Account, Other string }

func (e *OtherAccountError) Error() string {
	return fmt.Sprintf("embedded: the streams in %s belong to the account %s, and not to %s; if they are to go on there, "+
		"rename the folder %s to %s, else choose another store", e.Dir, e.Other, e.Account, e.Other, e.Account)
}

// PortTakenError says that another process listens on the address.
type PortTakenError struct {
	Address string
	Err     error
}

func (e *PortTakenError) Error() string {
	return fmt.Sprintf("embedded: %s is taken; stop what listens there, or choose another port (port 0 takes a free one)", e.Address)
}

func (e *PortTakenError) Unwrap() error { return e.Err }

// ListenError says that the system refused the address for another reason,
// such as a port below 1024 without the right to it.
type ListenError struct {
	Address string
	Err     error
}

func (e *ListenError) Error() string {
	return fmt.Sprintf("embedded: cannot listen on %s: %v; choose another address", e.Address, e.Err)
}

func (e *ListenError) Unwrap() error { return e.Err }

// StoreInUseError says that another server has the store directory. Nothing in
// the store was touched. PID is its process, 0 if not known.
type StoreInUseError struct {
	Dir string
	PID int
}

func (e *StoreInUseError) Error() string {
	holder := "another server"
	if e.PID > 0 {
		holder = fmt.Sprintf("the server in process %d", e.PID)
	}
	return fmt.Sprintf("embedded: the store %s is in use by %s; connect to that server, stop it, or choose another directory", e.Dir, holder)
}

// StoreUnusableError says that the store directory cannot be made, opened or
// written.
type StoreUnusableError struct {
	Dir string
	Err error
}

func (e *StoreUnusableError) Error() string {
	return fmt.Sprintf("embedded: the store %s cannot be used: %v; give a directory that this process may write", e.Dir, e.Err)
}

func (e *StoreUnusableError) Unwrap() error { return e.Err }

// StartError carries what nats-server gave as the reason why it did not start.
type StartError struct{ Reason string }

func (e *StartError) Error() string {
	return fmt.Sprintf("embedded: nats-server did not start: %s; its log has the details", e.Reason)
}

// StartTimeoutError says that the server was not ready in time. The recovery
// goes on in the background, and the store stays locked until it has ended.
type StartTimeoutError struct {
	Dir   string
	After time.Duration
}

func (e *StartTimeoutError) Error() string {
	return fmt.Sprintf("embedded: not ready after %s; a large store that was not closed cleanly takes long to recover: "+
		"raise StartTimeout, and try again when the lock on %s is free", e.After, e.Dir)
}
