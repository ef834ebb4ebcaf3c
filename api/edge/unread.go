package edge

import (
	"net/http"
	"time"
)

const (
	keptUnread  = 256 << 10       // bytes that net/http itself reads of a body after the answer
	mostUnread  = 48 << 20        // bytes that are read of one after a refusal
	unreadTime  = 5 * time.Second // that this takes at most
	unreadPause = time.Second     // in which nothing comes: the client has sent what it wants to
)

// afterRefusal returns a function that reads what a refused request has yet to send, once it is answered.
// Many clients read no answer before they have sent the body: they would tell that the connection was
// reset, and try again. Nil: there is not much to send, or the client waits for the answer.
func afterRefusal(w http.ResponseWriter, r *http.Request) func() {
	ctrl, body := http.NewResponseController(w), r.Body
	if r.ContentLength >= 0 && r.ContentLength <= keptUnread || r.ProtoMajor != 1 || r.Header.Get("Expect") != "" || ctrl.EnableFullDuplex() != nil {
		return nil
	}
	return func() {
		end, piece := time.Now().Add(unreadTime), make([]byte, 64<<10)
		err := ctrl.Flush()
		for left := mostUnread; err == nil && left > 0 && time.Now().Before(end); {
			_ = ctrl.SetReadDeadline(time.Now().Add(unreadPause))
			var n int
			n, err = body.Read(piece)
			left -= n
		}
	}
}
