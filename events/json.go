package events

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// maxInt bounds integers to those that every JSON reader represents exactly.
const maxInt = 1<<53 - 1

// ParseInt parses what JSON Schema calls an integer (including 1.0 and 1e2), up to 2^53-1
// either way. raw is one JSON value; for any other value ParseInt returns false.
func ParseInt(raw JSON) (int64, bool) {
	if jsontext.Value(raw).Kind() != '0' {
		return 0, false
	}
	var n int64
	plain := len(raw) <= 15
	for i, c := range raw {
		switch {
		case c >= '0' && c <= '9':
			n = n*10 + int64(c-'0')
		case i == 0 && c == '-':
		default:
			plain = false
		}
	}
	if !plain {
		return parseDecimal(raw)
	}
	if raw[0] == '-' {
		n = -n
	}
	return n, true
}

// parseDecimal parses a number with a fraction, an exponent or many digits. It works on the
// digits, as the cost of a big number would grow with the value of the exponent.
func parseDecimal(raw []byte) (int64, bool) {
	negative := raw[0] == '-'
	text, exponent, _ := strings.Cut(strings.ToLower(strings.TrimPrefix(string(raw), "-")), "e")
	whole, fraction, _ := strings.Cut(text, ".")
	digits := strings.TrimRight(whole+fraction, "0")
	shift := len(whole) - len(digits) // zeros to append, before the exponent
	digits = strings.TrimLeft(digits, "0")
	if digits == "" {
		return 0, true
	}
	if exponent != "" {
		e, _ := strconv.Atoi(exponent) // the largest or smallest, if it is out of range
		if e > len(raw)+20 || e < -len(raw)-20 {
			return 0, false // out of range, or a fraction
		}
		shift += e
	}
	if shift < 0 || len(digits)+shift > 16 {
		return 0, false
	}
	n, err := strconv.ParseInt(digits+strings.Repeat("0", shift), 10, 64)
	if err != nil || n > maxInt {
		return 0, false
	}
	if negative {
		n = -n
	}
	return n, true
}

// EqualJSON reports whether two JSON values are equal in canonical form.
func EqualJSON(a, b JSON) bool {
	if bytes.Equal(a, b) {
		return true
	}
	x, y := jsontext.Value(bytes.Clone(a)), jsontext.Value(bytes.Clone(b))
	return x.Canonicalize() == nil && y.Canonicalize() == nil && bytes.Equal(x, y)
}

// clip shortens a value that an error quotes. It does not cut a character in half: errors are
// also written into events, which hold valid UTF-8 only.
func clip[T ~string | ~[]byte](s T) string {
	const most = 80
	if len(s) <= most {
		return string(s)
	}
	return strings.ToValidUTF8(string(s[:most]), "") + "..."
}

// JSON is a raw JSON value. It is the standard library's json.RawMessage, so that a program
// that has one can put it into a request unchanged. A []byte with JSON, such as json.Marshal
// returns, can be assigned too.
type JSON = json.RawMessage
