package events

import (
	"bytes"

	jsonpatch "github.com/evanphx/json-patch/v5"
)

// MergePatch applies a JSON Merge Patch (RFC 7396) to a document. No document
// counts as null. The error says that one of the two is not JSON.
func MergePatch(doc, patch []byte) ([]byte, error) {
	if trimmed := bytes.TrimSpace(patch); len(trimmed) == 0 || trimmed[0] != '{' {
		return patch, nil // RFC 7396: what is not an object replaces the document
	}
	if trimmed := bytes.TrimSpace(doc); len(trimmed) == 0 || trimmed[0] != '{' {
		doc = []byte("{}")
	}
	return jsonpatch.MergePatch(doc, patch)
}
