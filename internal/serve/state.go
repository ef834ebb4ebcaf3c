package serve

import "github.com/skein-threads/skein/runtime"

// states gives the thread as tools and hooks in this process see it.
func (s *Server) states() func(tenant, thread string, x runtime.Execution) runtime.ThreadState {
	return nil
}
