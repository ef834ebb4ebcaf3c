package runtime

// ThreadState is the thread as tools, hooks and effects see it (SA-10): the
// same commands and read models that any caller has.
type ThreadState interface {
	ThreadID() string // SA-12
}
