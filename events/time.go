package events

import (
	"fmt"
	"time"
)

// Time is a moment in microseconds since the Unix epoch, UTC.
type Time int64

// TimeOf returns the moment of t, truncated to microseconds.
func TimeOf(t time.Time) Time { return Time(t.UnixMicro()) }

// Go returns the moment as a time.Time in UTC.
func (t Time) Go() time.Time { return time.UnixMicro(int64(t)).UTC() }

// ISO returns the form that documents use: exactly three fraction digits and Z.
func (t Time) ISO() string { return string(t.append(make([]byte, 0, 24), 3)) }

// String returns the form that events use: six fraction digits and Z.
func (t Time) String() string { return string(t.append(make([]byte, 0, 27), 6)) }

// append writes the moment with that many fraction digits, truncating the rest.
func (t Time) append(b []byte, digits int) []byte {
	g := t.Go()
	year, month, day := g.Date()
	hour, minute, sec := g.Clock()
	b = appendDigits(b, year, 4)
	b = append(b, '-')
	b = appendDigits(b, int(month), 2)
	b = append(b, '-')
	b = appendDigits(b, day, 2)
	b = append(b, 'T')
	b = appendDigits(b, hour, 2)
	b = append(b, ':')
	b = appendDigits(b, minute, 2)
	b = append(b, ':')
	b = appendDigits(b, sec, 2)
	b = append(b, '.')
	frac := g.Nanosecond() / 1000
	for range 6 - digits {
		frac /= 10
	}
	b = appendDigits(b, frac, digits)
	return append(b, 'Z')
}

func appendDigits(b []byte, n, width int) []byte {
	at := len(b)
	for range width {
		b = append(b, '0')
	}
	for i := at + width - 1; i >= at && n > 0; i-- {
		b[i] = byte('0' + n%10)
		n /= 10
	}
	return b
}

// ParseTime parses an ISO 8601 UTC time with Z, from the year 1970 to 9999, and truncates it
// to microseconds. The error says what is wrong.
func ParseTime(s string) (Time, error) {
	t, bad := parseTime(s)
	switch bad {
	case timeForm:
		return 0, fmt.Errorf("%q is not a UTC time such as 2026-02-20T10:00:00.000Z", clip(s))
	case timeRange:
		return 0, fmt.Errorf("%q is not a UTC time: no such day or hour", s)
	case timeEarly:
		return 0, fmt.Errorf("%q is before 1970", s)
	}
	return t, nil
}

// badTime is the fault of a time.
type badTime int

const (
	timeForm  badTime = iota + 1 // not in the form of timeExpr
	timeRange                    // not in the calendar or on the clock
	timeEarly                    // before 1970
)

// parseTime parses 2026-02-20T10:00:00Z, with or without a point and one to nine digits before
// the Z.
func parseTime[S ~string | ~[]byte](s S) (Time, badTime) {
	const form = "0000-00-00T00:00:00"
	if len(s) <= len(form) || s[len(s)-1] != 'Z' {
		return 0, timeForm
	}
	for i := range len(form) {
		if form[i] == '0' && !isDigit(s[i]) || form[i] != '0' && s[i] != form[i] {
			return 0, timeForm
		}
	}
	micros := 0
	if fraction := s[len(form) : len(s)-1]; len(fraction) > 0 {
		if fraction[0] != '.' || len(fraction) < 2 || len(fraction) > 10 {
			return 0, timeForm
		}
		for i := 1; i < len(fraction); i++ {
			if !isDigit(fraction[i]) {
				return 0, timeForm
			}
		}
		for i := 1; i <= 6; i++ { // finer digits are truncated
			micros *= 10
			if i < len(fraction) {
				micros += int(fraction[i] - '0')
			}
		}
	}
	year, month, day := digits(s[:4]), digits(s[5:7]), digits(s[8:10])
	hour, minute, sec := digits(s[11:13]), digits(s[14:16]), digits(s[17:19])
	if month < 1 || month > 12 || day < 1 || hour > 23 || minute > 59 || sec > 59 {
		return 0, timeRange
	}
	g := time.Date(year, time.Month(month), day, hour, minute, sec, 0, time.UTC)
	if g.Day() != day { // time.Date turns 30 February into a day of March
		return 0, timeRange
	}
	if year < 1970 {
		return 0, timeEarly
	}
	return Time(g.Unix()*1e6 + int64(micros)), 0
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// digits returns the number in a few digits.
func digits[S ~string | ~[]byte](s S) int {
	n := 0
	for i := range len(s) {
		n = n*10 + int(s[i]-'0')
	}
	return n
}
