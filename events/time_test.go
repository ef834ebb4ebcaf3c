package events

import (
	"strings"
	"testing"
	"time"
)

// EK-19: exactly three digits and Z; events have six. Finer digits are truncated.
func TestTime_Formats(t *testing.T) {
	for _, c := range []struct {
		at       time.Time
		iso, own string
	}{
		{time.Date(2026, 2, 20, 10, 0, 0, 0, time.UTC), "2026-02-20T10:00:00.000Z", "2026-02-20T10:00:00.000000Z"},
		{time.Date(2026, 2, 20, 10, 0, 0, 999_999_999, time.UTC), "2026-02-20T10:00:00.999Z", "2026-02-20T10:00:00.999999Z"},
		{time.Date(2026, 2, 20, 10, 0, 0, 1_000, time.UTC), "2026-02-20T10:00:00.000Z", "2026-02-20T10:00:00.000001Z"},
		{time.Date(2024, 2, 29, 23, 59, 59, 50_000_000, time.UTC), "2024-02-29T23:59:59.050Z", "2024-02-29T23:59:59.050000Z"},
		{time.Date(1970, 1, 1, 0, 0, 0, 0, time.UTC), "1970-01-01T00:00:00.000Z", "1970-01-01T00:00:00.000000Z"},
		{time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC), "9999-12-31T23:59:59.000Z", "9999-12-31T23:59:59.000000Z"},
		{time.Date(2026, 2, 20, 11, 0, 0, 0, time.FixedZone("CET", 3600)), "2026-02-20T10:00:00.000Z", "2026-02-20T10:00:00.000000Z"},
	} {
		at := TimeOf(c.at)
		if at.ISO() != c.iso || at.String() != c.own {
			t.Errorf("%s: %s and %s, want %s and %s", c.at, at.ISO(), at, c.iso, c.own)
		}
		if back, err := ParseTime(at.String()); err != nil || back != at {
			t.Errorf("%s is read as %s: %v", at, back, err)
		}
		if !at.Go().Equal(c.at.Truncate(time.Microsecond)) || at.Go().Location() != time.UTC {
			t.Errorf("%s: %s", c.at, at.Go())
		}
	}
}

func TestParseTime(t *testing.T) {
	for s, want := range map[string]string{ // to how it is written; empty: refused
		"2026-02-20T10:00:00Z":           "2026-02-20T10:00:00.000000Z",
		"2026-02-20T10:00:00.1Z":         "2026-02-20T10:00:00.100000Z",
		"2026-02-20T10:00:00.000Z":       "2026-02-20T10:00:00.000000Z",
		"2026-02-20T10:00:00.1234567Z":   "2026-02-20T10:00:00.123456Z",
		"2026-02-20T10:00:00.999999999Z": "2026-02-20T10:00:00.999999Z",
		"2024-02-29T00:00:00Z":           "2024-02-29T00:00:00.000000Z",
		"2000-02-29T00:00:00Z":           "2000-02-29T00:00:00.000000Z",
		"1970-01-01T00:00:00Z":           "1970-01-01T00:00:00.000000Z",
		"9999-12-31T23:59:59.999999Z":    "9999-12-31T23:59:59.999999Z",

		"1969-12-31T23:59:59Z":            "",
		"0000-01-01T00:00:00Z":            "",
		"2026-02-29T00:00:00Z":            "",
		"2100-02-29T00:00:00Z":            "",
		"2026-02-30T00:00:00Z":            "",
		"2026-04-31T00:00:00Z":            "",
		"2026-13-01T00:00:00Z":            "",
		"2026-00-01T00:00:00Z":            "",
		"2026-01-00T00:00:00Z":            "",
		"2026-01-32T00:00:00Z":            "",
		"2026-02-20T24:00:00Z":            "",
		"2026-02-20T10:60:00Z":            "",
		"2026-02-20T10:00:60Z":            "",
		"2026-12-31T23:59:60Z":            "", // a leap second
		"2026-02-20T10:00:00":             "",
		"2026-02-20T10:00:00+00:00":       "",
		"2026-02-20T10:00:00.000+01:00":   "",
		"2026-02-20T10:00:00.Z":           "",
		"2026-02-20T10:00:00,5Z":          "",
		"2026-02-20T10:00:00.1234567890Z": "",
		"2026-02-20T10:00:00.12a4Z":       "",
		"2026-02-20 10:00:00Z":            "",
		"2026-02-20t10:00:00Z":            "",
		"2026-02-20T10:00:00z":            "",
		"2026-2-20T10:00:00Z":             "",
		"02026-02-20T10:00:00Z":           "",
		"+026-02-20T10:00:00Z":            "",
		"2026-02-20T10:00Z":               "",
		"2026-02-20":                      "",
		" 2026-02-20T10:00:00Z":           "",
		"2026-02-20T10:00:00Z\n":          "",
		"٢٠٢٦-02-20T10:00:00Z":            "",
		"Z":                               "",
		"":                                "",
	} {
		got, err := ParseTime(s)
		if (err == nil) != (want != "") || err == nil && got.String() != want {
			t.Errorf("%q: %s, %v; want %q", s, got, err, want)
		}
	}
}

// An error says what is wrong, and never quotes a whole body.
func TestParseTime_ErrorsNameTheFault(t *testing.T) {
	for s, want := range map[string]string{
		"tomorrow":                 `"tomorrow" is not a UTC time such as 2026-02-20T10:00:00.000Z`,
		"2026-02-30T00:00:00Z":     `"2026-02-30T00:00:00Z" is not a UTC time: no such day or hour`,
		"1969-12-31T00:00:00.000Z": `"1969-12-31T00:00:00.000Z" is before 1970`,
	} {
		if _, err := ParseTime(s); err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if _, err := ParseTime(strings.Repeat("x", 1000)); err == nil || len(err.Error()) > 200 {
		t.Errorf("%v", err)
	}
}
