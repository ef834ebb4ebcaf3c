package store

import (
	"encoding/base64"
	"slices"
	"strings"
	"testing"

	"github.com/skein-threads/skein/operator/blocks"
)

// Of what is found elsewhere, the pieces of objects that are not there any more are not taken: also
// not those of a tenant whose name looks like a part of a subject.
func TestForget_PiecesOfDroppedObjects(t *testing.T) {
	const bucket = "thread_archive"
	seq := uint64(0)
	record := func(subject, data string) kept {
		seq++
		return kept{blocks.NewMessage(seq, 1, subject, nil, []byte(data)), 0}
	}
	entry := func(name, rest string) kept {
		return record("$O."+bucket+".M."+base64.URLEncoding.EncodeToString([]byte(name)), `{"name":"`+name+`",`+rest+`}`)
	}
	piece := func(id string) kept { return record("$O."+bucket+".C."+id, `{"nuid":"`+id+`"}`) }
	b := builder{at: place{stream: "OBJ_" + bucket}, found: []kept{
		piece("M.T-1.7.kept"), entry("M/T-1/7", `"nuid":"M.T-1.7.kept"`),
		piece("C.T-1.7.kept"), entry("C/T-1/7", `"nuid":"C.T-1.7.kept"`),
		piece("M.T-1.8.dropped"), entry("M/T-1/8", `"nuid":"M.T-1.8.dropped"`), entry("M/T-1/8", `"nuid":"M.T-1.8.dropped","deleted":true`),
		piece("acme.T-1.9.replaced"), entry("acme/T-1/9", `"nuid":"acme.T-1.9.replaced"`),
		piece("acme.T-1.9.new"), entry("acme/T-1/9", `"nuid":"acme.T-1.9.new"`),
		piece("plain"), entry("acme/T-2/9", `"nuid":"plain"`), piece("M.T-1.10.never"),
	}}
	b.forget(nil)
	var pieces []string
	for _, r := range b.found {
		if id, ok := strings.CutPrefix(r.Subject, "$O."+bucket+".C."); ok {
			pieces = append(pieces, id)
		}
	}
	if want := []string{"M.T-1.7.kept", "C.T-1.7.kept", "acme.T-1.9.new", "plain"}; !slices.Equal(pieces, want) {
		t.Errorf("it keeps %v, and should keep %v", pieces, want)
	}
}
