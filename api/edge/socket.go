package edge

import (
	"context"
	"time"

	"github.com/coder/websocket"
)

// socketPing is the interval between pings of a WebSocket.
const socketPing = 20 * time.Second

// KeepAlive pings a WebSocket until ctx ends, and calls lost if the client no longer answers.
// Something else must read the socket.
func KeepAlive(ctx context.Context, conn *websocket.Conn, lost func()) {
	tick := time.NewTicker(socketPing)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		one, cancel := context.WithTimeout(ctx, streamStall)
		err := conn.Ping(one)
		cancel()
		if err != nil {
			lost()
			return
		}
	}
}
