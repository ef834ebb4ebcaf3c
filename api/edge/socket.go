package edge

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/coder/websocket"

	"github.com/skein-threads/skein/events"
)

// socketPing is the interval between pings of a WebSocket.
const socketPing = 20 * time.Second

// Accept answers a handshake with a WebSocket. It does not look at the origin: the edge did,
// with the origins that it allows and the host that a proxy tells.
//
// The error is the answer of the handler: a refusal, or none if the answer was sent.
func Accept(w http.ResponseWriter, r *http.Request) (*websocket.Conn, error) {
	if !strings.EqualFold(r.Header.Get("Upgrade"), "websocket") {
		return nil, noUpgrade(w, r)
	}
	return websocket.Accept(w, r, &websocket.AcceptOptions{InsecureSkipVerify: true})
}

// noUpgrade returns the refusal of a request that is no handshake: 426, with the protocol to change
// to. A connection of HTTP/2 cannot change its protocol.
func noUpgrade(w http.ResponseWriter, r *http.Request) error {
	if r.ProtoMajor != 1 {
		return events.Invalid("/Upgrade", "this route is a WebSocket; connect over HTTP/1.1 with a client that speaks it")
	}
	w.Header().Set("Upgrade", "websocket")
	w.Header().Set("Connection", "Upgrade")
	return &statusError{status: http.StatusUpgradeRequired, code: "upgrade_required", text: "this route is a WebSocket; connect with a client that speaks it"}
}

// EndSocket closes a WebSocket whose request has ended, with a handshake that says why. Something
// else must read the socket, with a context that does not end with the request.
func EndSocket(request context.Context, conn *websocket.Conn) {
	status, reason := websocket.StatusGoingAway, "resume with another socket"
	if errors.Is(context.Cause(request), errCredentialEnded) {
		status, reason = websocket.StatusPolicyViolation, "the credentials have ended"
	}
	_ = conn.Close(status, reason) // the client may have gone
}

// KeepAlive pings a WebSocket until ctx ends, and calls lost if the client no longer answers.
// Something else must read the socket.
func (c *Caller) KeepAlive(ctx context.Context, conn *websocket.Conn, lost func()) {
	tick := time.NewTicker(c.ping)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		one, cancel := context.WithTimeout(ctx, c.Stall)
		err := conn.Ping(one)
		cancel()
		if err != nil {
			lost()
			return
		}
	}
}
