package clients_test

import "testing"

// The client of A2A talks to an agent that asks for approvals, asks people, fails and is cancelled.
func TestA2A(t *testing.T) {
	dir, node := installFrom(t, "a2a/package.json", "a2a/a2a.mjs")
	s := agui(t)
	runScript(t, node, dir, "a2a.mjs", "SKEIN_URL="+s.Addresses().HTTP)
}
