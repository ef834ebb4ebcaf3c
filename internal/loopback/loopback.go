// Package loopback is for servers that tests and measurements start on this machine: [Reserve] finds
// their addresses, and a [Flood] sends them messages.
package loopback

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net"
)

// Reserve returns a free port of loopback, with its host: one below those of outgoing
// connections. Until held is closed, nobody else who reserves one gets it, in this process or
// another, also while the server that listens there is stopped: the UDP port of that number is held.
func Reserve() (address string, held io.Closer, err error) {
	const from, to, tries = 21000, 32000, 100
	for range tries {
		address = fmt.Sprintf("127.0.0.1:%d", from+rand.IntN(to-from))
		if held, err = net.ListenPacket("udp", address); err != nil {
			continue
		}
		var l net.Listener
		if l, err = net.Listen("tcp", address); err == nil {
			return address, held, l.Close()
		}
		_ = held.Close()
	}
	return "", nil, fmt.Errorf("find a free port: %w", err)
}
