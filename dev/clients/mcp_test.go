package clients_test

import "testing"

// Both generations of the official TypeScript client, and the inspector, use the threads and agents of
// a server at /mcp.
func TestMCP_Node(t *testing.T) {
	dir, node := installFrom(t, "mcp/package.json", "mcp/mcp.mjs")
	s := openResponses(t)
	runScript(t, node, dir, "mcp.mjs", "SKEIN_URL="+s.Addresses().HTTP)
}
