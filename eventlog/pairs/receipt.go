package pairs

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"

	"github.com/skein-threads/skein/eventlog/streams"
)

// headerCommands names the commands that wrote a key, the last one at the end: a digest of each
// id, and the sequence of its message except for the last, whose message it is.
const headerCommands = "Skein-Commands"

// rememberedCommands is how many commands the message of a key names.
const rememberedCommands = 32

// digestOf returns what a message has of a command's id.
func digestOf(commandID string) string {
	sum := sha256.Sum256([]byte(commandID))
	return hex.EncodeToString(sum[:8])
}

// executed returns the sequence of the message that the command wrote, if this one or one that
// it replaced is it.
func executed(m *streams.Message, commandID string) (seq uint64, ok bool) {
	if m == nil {
		return 0, false
	}
	id := digestOf(commandID)
	for one := range strings.FieldsSeq(m.Header.Get(headerCommands)) {
		digest, at, _ := strings.Cut(one, ":")
		if digest != id {
			continue
		}
		if at == "" {
			return m.Seq, true
		}
		seq, err := strconv.ParseUint(at, 10, 64)
		return seq, err == nil
	}
	return 0, false
}

// remembering returns the header of the message with which a command replaces another.
func remembering(m *streams.Message, commandID string) string {
	var list []string
	if m != nil {
		list = strings.Fields(m.Header.Get(headerCommands))
		if n := len(list); n > 0 && !strings.Contains(list[n-1], ":") {
			list[n-1] += ":" + strconv.FormatUint(m.Seq, 10)
		}
	}
	list = append(list, digestOf(commandID))
	return strings.Join(list[max(0, len(list)-rememberedCommands):], " ")
}
