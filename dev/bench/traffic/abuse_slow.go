package traffic

import (
	"context"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/coder/websocket"
	"github.com/google/uuid"
)

const (
	slowEach  = 4 // bodies that a client sends at a time
	slowPause = 5 * time.Millisecond
	slowBody  = 60_000 // announced
	fileBytes = 1 << 20
)

// trickle sends bodies, a byte of each at a time.
func trickle(ctx context.Context, address string, head []byte) (sent int64, err error) {
	var open []net.Conn
	defer func() {
		for _, conn := range open {
			_ = conn.Close()
		}
	}()
	for range slowEach {
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
		if err != nil {
			return sent, err
		}
		open = append(open, conn)
		if _, err := conn.Write(head); err != nil {
			return sent, err
		}
		sent++
	}
	for ctx.Err() == nil {
		for _, conn := range open {
			if _, err := conn.Write([]byte(" ")); err != nil {
				return sent, err
			}
		}
		pause(ctx, slowPause)
	}
	return sent, nil
}

// file sends a new file.
func (a Abuse) file(ctx context.Context, thread string) (sent int64, err error) {
	o := overHTTP{http: http.DefaultClient, url: a.URL, key: a.Key}
	_, err = o.ask(ctx, "PUT", "/api/threads/"+thread+"/files/"+uuid.NewString(), strings.Repeat("x", fileBytes), http.StatusCreated)
	return 1, err
}

// watch opens a socket that shows a thread whenever it changes, and reads it. writes: it changes it, too.
func (a Abuse) watch(ctx context.Context, thread string, writes bool) (sent int64, err error) {
	header := http.Header{"Authorization": {"Bearer " + a.Key}}
	conn, _, err := websocket.Dial(ctx, a.URL+"/api/threads/"+thread+"/socket", &websocket.DialOptions{HTTPHeader: header}) //nolint:bodyclose // the library closes it
	if err != nil {
		return 0, err
	}
	defer func() { _ = conn.CloseNow() }()
	conn.SetReadLimit(-1)
	if err := conn.Write(ctx, websocket.MessageText, []byte(`{"type":"watch","what":["thread"]}`)); err != nil {
		return 0, err
	}
	for ctx.Err() == nil {
		if writes {
			if err := conn.Write(ctx, websocket.MessageText, []byte(`{"type":"command","id":1,"command":"item.create","data":`+benchItem+`}`)); err != nil {
				return sent, err
			}
		}
		if _, _, err := conn.Read(ctx); err != nil {
			return sent, err
		}
		sent++
	}
	return sent, nil
}
