package service

import (
	"errors"
	"net"
)

// dialer dials connections that write as the function does. It is for nats.SetCustomDialer.
type dialer func(c net.Conn, b []byte) (int, error)

func (d dialer) Dial(network, address string) (net.Conn, error) {
	c, err := net.Dial(network, address)
	return &dialled{c, d}, err
}

type dialled struct {
	net.Conn
	write dialer
}

func (c *dialled) Write(b []byte) (int, error) { return c.write(c.Conn, b) }

// stalling is a dialer of connections that take nothing between two moments: when stall is
// closed, and when release is.
type stalling struct{ stall, release chan struct{} }

func newStalling() stalling { return stalling{make(chan struct{}), make(chan struct{})} }

func (s stalling) dialer() dialer {
	return func(c net.Conn, b []byte) (int, error) {
		select {
		case <-s.stall:
			<-s.release
		default:
		}
		return c.Write(b)
	}
}

// failing is a dialer of connections on which a write fails, though all was written, from the
// moment that fail is closed.
func failing(fail <-chan struct{}) dialer {
	return func(c net.Conn, b []byte) (int, error) {
		n, err := c.Write(b)
		select {
		case <-fail:
			return n, errors.Join(err, net.ErrClosed)
		default:
			return n, err
		}
	}
}
