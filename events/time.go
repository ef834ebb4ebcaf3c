package events

import (
	"fmt"
	"time"
)

// Time is a moment in microseconds since the Unix epoch, UTC.
type Time int64

// TimeOf gives the moment of t, cut to microseconds.
func TimeOf(t time.Time) Time { return Time(t.UnixMicro()) }

// Go gives the moment as Go's time, in UTC.
func (t Time) Go() time.Time { return time.UnixMicro(int64(t)).UTC() }

// ISO gives the form that documents use: exactly three fraction digits and Z.
func (t Time) ISO() string { return string(t.append(make([]byte, 0, 24), 3)) }

// String gives the form that events use: six fraction digits and Z.
func (t Time) String() string { return string(t.append(make([]byte, 0, 27), 6)) }

// append writes the moment with that many fraction digits, cutting the rest.
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

// ParseTime reads an ISO 8601 UTC time with Z, from the year 1970 to 9999, and
// cuts it to microseconds. The error says what was wrong.
func ParseTime(s string) (Time, error) {
	t, bad := parseTime(s)
	switch bad {
	case timeForm:
		return 0, fmt.Errorf("%q is not a UTC time such as 2026-02-20T10:00:00.000Z", clip(s))
	case timeRange:
		return 0, fmt.Errorf("%q is not a UTC time: no such day or hour", s)
	case timeEarly:
		return 0, fmt.Errorf("%q lies before 1970", s)
	}
	return t, nil
}

// badTime is what is wrong with a time.
type badTime int

const (
	timeForm  badTime = iota + 1 // it does not have the form of timeExpr
	timeRange                    // no calendar or clock has it
	timeEarly                    // before 1970
)

// parseTime reads 2026-02-20T10:00:00Z with, before the Z, a point and one to
// nine digits, or none.
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
		for i := 1; i <= 6; i++ { // what is finer is cut
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
	if g.Day() != day { // 30 February is the first or second of March to time.Date
		return 0, timeRange
	}
	if year < 1970 {
		return 0, timeEarly
	}
	return Time(g.Unix()*1e6 + int64(micros)), 0
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// digits gives the number that a few digits say.
func digits[S ~string | ~[]byte](s S) int {
	n := 0
	for i := range len(s) {
		n = n*10 + int(s[i]-'0')
	}
	return n
}
