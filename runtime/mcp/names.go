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

// toolName returns the name of a server's tool here: SERVER__TOOL. Characters that are
// not permitted become _, and if anything was changed or cut, the first 8 digits of the
// SHA-256 of the tool's own name follow. A tool's name depends only on its server and
// itself: another tool never changes it.
func toolName(server, tool string) string {
	name := server + between + plain(tool)
	if plain(tool) == tool && len(name) <= maxName {
		return name
	}
	sum := sha256.Sum256([]byte(tool))
	tail := "_" + hex.EncodeToString(sum[:4])
	return name[:min(len(name), maxName-len(tail))] + tail
}

// plain replaces each byte that is not permitted in a name by _.
func plain(name string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-' {
			return r
		}
		return '_'
	}, name)
}
