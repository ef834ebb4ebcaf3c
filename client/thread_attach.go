package client

// Known is what a program knows about a thread without a query, such as a worker about
// the thread of its run.
type Known struct {
	ThreadID  string
	CreatedAt int64         // in microseconds since the epoch
	UserID    *string       // nil: no user
	AgentID   func() string // the agent currently in charge
	Seq       func() int64  // reads show at least this commit; it may grow
}

// Attach returns the state of a thread that the caller knows already. It sends no
// request; a method reports if the thread does not exist.
func (c *Client) Attach(k Known) *ThreadState {
	own := c.Files(k.ThreadID)
	own.floor = k.Seq
	return &ThreadState{files: own, client: c, id: k.ThreadID, created: k.CreatedAt, user: k.UserID, charge: k.AgentID, floor: k.Seq}
}
