package schema

import (
	stdjson "encoding/json"
	"math"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/schema/arguments"
)

// deepestStored bounds the nesting of stored data that is validated. It is the JSON decoder's own
// limit.
const deepestStored = 10_000

// parse decodes JSON for the schema library.
func parse(raw []byte) (any, error) {
	return arguments.ReadTree(raw, deepestStored, func(raw events.JSON, _ *jsontext.Decoder) (any, error) { return number(raw), nil })
}

// number returns a number for the schema library, which turns it into a fraction of integers. A
// number that would cost too much (1e999999999) is replaced by one that Skein's schemas treat the
// same, since their bounds are small integers.
func number(raw events.JSON) stdjson.Number {
	if n, ok := events.ParseInt(raw); ok {
		return stdjson.Number(strconv.FormatInt(n, 10))
	}
	plain := len(raw) <= 40 && !strings.ContainsAny(string(raw), "eE")
	f, _ := strconv.ParseFloat(string(raw), 64)
	if plain {
		return stdjson.Number(raw)
	}
	if math.Abs(f) < maxInt {
		if f == math.Trunc(f) { // no int64: ParseInt would have accepted it
			return "0.5"
		}
		return stdjson.Number(strconv.FormatFloat(f, 'f', -1, 64))
	}
	if math.Signbit(f) {
		return "-1e99"
	}
	return "1e99"
}
