package events

import (
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/google/uuid"
)

// Named patterns of ids and names. A `schema:"pattern=..."` tag refers to one of them, so that
// the JSON Schemas and the checks in Go cannot differ.
const (
	PatternTenant    = "tenant"
	PatternThread    = "thread"
	PatternThreadRef = "threadRef"
	PatternID        = "id"
	PatternKey       = "key"
	PatternCommandID = "commandId"
	PatternPartKey   = "partKey"
	PatternTime      = "time"
	PatternName      = "name"
	PatternUUID      = "uuid"
	PatternTool      = "tool"
	PatternVariable  = "variable"
	PatternSession   = "session"
)

const (
	uuidExpr   = `[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}`
	threadExpr = `T-` + uuidExpr + `|thrd_[A-Za-z0-9]{27,59}`
	idExpr     = `[A-Za-z0-9][A-Za-z0-9_-]{0,63}`
	keyExpr    = `[^\x00-\x1f\x7f]{1,256}`
	timeExpr   = `[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,9})?Z`
)

var (
	tenantPattern    = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$`)
	threadPattern    = regexp.MustCompile(`^(` + threadExpr + `)$`)
	threadRefPattern = regexp.MustCompile(`^(` + threadExpr + `|key:` + keyExpr + `)$`)
	idPattern        = regexp.MustCompile(`^` + idExpr + `$`)
	keyPattern       = regexp.MustCompile(`^` + keyExpr + `$`)
	commandIDPattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.:-]{0,127}$`)
	partKeyPattern   = regexp.MustCompile(`^` + idExpr + `:(0|[1-9][0-9]{0,8})$`)
	timePattern      = regexp.MustCompile(`^` + timeExpr + `$`)
	uuidPattern      = regexp.MustCompile(`^` + uuidExpr + `$`)
	namePattern      = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.:/-]{0,127}$`)
	toolPattern      = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)
	sessionPattern   = regexp.MustCompile(`^sess_[0-9a-f]{1,59}$`)
	variablePattern  = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,127}$`)
)

// Pattern returns the compiled pattern of that name, or nil if there is none.
func Pattern(name string) *regexp.Regexp {
	switch name {
	case PatternTenant:
		return tenantPattern
	case PatternThread:
		return threadPattern
	case PatternThreadRef:
		return threadRefPattern
	case PatternID:
		return idPattern
	case PatternKey:
		return keyPattern
	case PatternCommandID:
		return commandIDPattern
	case PatternPartKey:
		return partKeyPattern
	case PatternTime:
		return timePattern
	case PatternName:
		return namePattern
	case PatternUUID:
		return uuidPattern
	case PatternTool:
		return toolPattern
	case PatternVariable:
		return variablePattern
	case PatternSession:
		return sessionPattern
	}
	return nil
}

// ValidTenant reports whether s is a valid tenant: 1 to 64 letters, digits, dashes and
// underscores, so that it is always one subject token.
func ValidTenant(s string) bool { return tenantPattern.MatchString(s) }

// CheckTenant returns an invalid_request unless s is a valid tenant. path is the JSON pointer of the
// field that holds it; it is empty if none does, as when the tenant is a token of a subject.
func CheckTenant(path, s string) error {
	if ValidTenant(s) {
		return nil
	}
	e := Errorf(InvalidRequest, "the tenant %q is not 1 to 64 letters, digits, dashes and underscores, the first a letter or digit", clip(s))
	if path != "" {
		e.Details = &ErrorDetails{Path: path}
	}
	return e
}

// ValidThreadID reports whether s is a thread's id: T-{uuid}, of any UUID version, or thrd_
// and 27 to 59 letters and digits.
func ValidThreadID(s string) bool { return threadPattern.MatchString(s) }

// ValidSessionID reports whether s is the id of a session: sess_ and 1 to 59 lower-case hex
// digits.
func ValidSessionID(s string) bool { return sessionPattern.MatchString(s) }

// ValidID reports whether s is a valid id of a context, item, execution or step. It is called
// for each chunk and so does not use the regular expression.
func ValidID(s string) bool {
	if s == "" || len(s) > 64 {
		return false
	}
	for i := range len(s) {
		c := s[i]
		word := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if !word && (i == 0 || c != '_' && c != '-') {
			return false
		}
	}
	return true
}

// ValidKey reports whether s is a valid key of a thread or a context.
func ValidKey(s string) bool { return utf8.ValidString(s) && keyPattern.MatchString(s) }

// Prefixes of the ids that Skein makes.
const (
	ContextPrefix   = "ctx_"
	ItemPrefix      = "itm_"
	ExecutionPrefix = "exe_"
	StepPrefix      = "stp_"
)

// namespace is the UUIDv5 namespace of every derived id. It must never change.
var namespace = uuid.MustParse("6f1d3c52-9a0e-5b1c-8d55-5c6e2a7f0b31")

// DeriveID returns the n-th id with that prefix of a command: a UUIDv7 whose time is the
// command's and whose other bits are a digest of the arguments, so that the same command at
// the same time makes the same ids.
func DeriveID(prefix string, at Time, tenant, thread, commandID string, n int) string {
	id := deriveV7(at, tenant, thread, commandID, prefix+strconv.Itoa(n))
	out := make([]byte, 0, 64)
	out = append(out, prefix...)
	return string(hex.AppendEncode(out, id[:]))
}

// DeriveThreadID returns the id of the thread that a command creates without naming one. It
// depends on the command's id but not on the time, so that a repeated command finds the thread
// that it created the first time.
func DeriveThreadID(tenant, commandID string) string {
	return "T-" + uuid.NewSHA1(namespace, []byte("thread\x00"+tenant+"\x00"+commandID)).String()
}

// EventID returns the id of the n-th event of a command on a thread: a UUIDv5.
func EventID(tenant, thread, commandID string, n int) string {
	name := make([]byte, 0, 512) // the longest names need less
	name = append(name, namespace[:]...)
	name = appendParts(name, tenant, thread, commandID)
	name = append(name, 0)
	name = strconv.AppendInt(name, int64(n), 10)
	sum := sha1.Sum(name)
	return asUUID([16]byte(sum[:16]), 5).String()
}

// asUUID sets the version and variant bits that make a digest a UUID of RFC 9562.
func asUUID(id uuid.UUID, version byte) uuid.UUID {
	id[6] = id[6]&0x0f | version<<4
	id[8] = id[8]&0x3f | 0x80
	return id
}

// appendParts joins strings, which cannot hold a zero byte, with zero bytes.
func appendParts(b []byte, parts ...string) []byte {
	for i, part := range parts {
		if i > 0 {
			b = append(b, 0)
		}
		b = append(b, part...)
	}
	return b
}

func deriveV7(at Time, parts ...string) uuid.UUID {
	sum := sha256.Sum256(appendParts(make([]byte, 0, 512), parts...))
	id := uuid.UUID(sum[:16])
	ms := uint64(at) / 1000
	for i := range 6 {
		id[i] = byte(ms >> (40 - 8*i))
	}
	return asUUID(id, 7)
}

// KeyAggregate returns the aggregate of the claim of a thread's key: a digest of the key,
// which may hold characters that a subject may not.
func KeyAggregate(key string) string {
	sum := sha256.Sum256([]byte(key))
	return "K-" + hex.EncodeToString(sum[:16])
}

// TenantAggregate is the aggregate of what belongs to a tenant but to none of its threads,
// such as a refused command that named no thread.
const TenantAggregate = "tenant"

// IsThread reports whether an aggregate is a thread, rather than a key's claim or the tenant.
func IsThread(aggregate string) bool {
	return strings.HasPrefix(aggregate, "T-") || strings.HasPrefix(aggregate, "thrd_")
}

// PartKey returns a part's key, "stepId:idx".
func PartKey(stepID string, idx int64) string { return stepID + ":" + strconv.FormatInt(idx, 10) }

// ThreadRef splits the thread of a request: an id, or "key:" and a thread's key.
func ThreadRef(s string) (id, key string) {
	if k, ok := strings.CutPrefix(s, "key:"); ok {
		return "", k
	}
	return s, ""
}
