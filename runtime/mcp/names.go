package mcp

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

const (
	maxName = 64
	between = "__"
)

// toolName gives the name that a server's tool has here: SERVER__TOOL. What a
// name may not have becomes _, and where anything was changed or cut, the first
// 8 digits of the SHA-256 of the tool's own name follow. So a tool's name hangs
// on nothing but its server and itself: another that comes never changes it.
func toolName(server, tool string) string {
	name := server + between + plain(tool)
	if plain(tool) == tool && len(name) <= maxName {
		return name
	}
	sum := sha256.Sum256([]byte(tool))
	tail := "_" + hex.EncodeToString(sum[:4])
	return name[:min(len(name), maxName-len(tail))] + tail
}

// plain puts a _ for each byte that a name may not have.
func plain(name string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-' {
			return r
		}
		return '_'
	}, name)
}
