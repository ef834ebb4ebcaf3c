package client

// Known is what somebody knows of a thread without asking: a worker does, of the
// thread that it works on.
type Known struct {
	ThreadID  string
	CreatedAt int64         // in microseconds since the epoch
	UserID    *string       // nil if it belongs to none
	AgentID   func() string // the agent in charge at the moment
	Seq       func() int64  // what is read shows at least this commit; it may grow
}

// Attach gives a thread's state to whoever knows the thread already. It asks
// nobody, and so costs next to nothing; whether the thread is there shows when a
// method needs it.
func (c *Client) Attach(k Known) *ThreadState {
	own := c.Files(k.ThreadID)
	own.floor = k.Seq
	return &ThreadState{files: own, client: c, id: k.ThreadID, created: k.CreatedAt, user: k.UserID, charge: k.AgentID, floor: k.Seq}
}
