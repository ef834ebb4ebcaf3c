package edge

import (
	"net/http"
	"strconv"
	"strings"
)

// fitRange prepares the header Range for http.ServeContent. A range that is not written in
// bytes, or as nobody may write it, asks for nothing: the whole file is the answer. Numbers
// that are larger than any file are cut, and a suffix of no bytes is beyond the end. Of an empty
// file there are no parts: the whole of it is the answer.
func fitRange(h http.Header, size int64) {
	given := h.Get("Range")
	if given == "" {
		return
	}
	if size == 0 {
		h.Del("Range")
		return
	}
	unit, specs, ok := strings.Cut(given, "=")
	list := strings.Split(specs, ",")
	ok = ok && strings.EqualFold(strings.TrimSpace(unit), "bytes") && len(list) <= mostRanges
	for i, spec := range list {
		from, to, dash := strings.Cut(strings.TrimSpace(spec), "-")
		first, isFirst := rangeNumber(from)
		last, isLast := rangeNumber(to)
		ok = ok && dash && isFirst && isLast && (from != "" || to != "") && (from == "" || to == "" || first <= last)
		list[i] = from + "-" + to
		switch {
		case from == "" && last == 0:
			list[i] = strconv.FormatInt(size, 10) + "-"
		case from == "":
			list[i] = "-" + strconv.FormatInt(last, 10)
		case to == "":
			list[i] = strconv.FormatInt(first, 10) + "-"
		default:
			list[i] = strconv.FormatInt(first, 10) + "-" + strconv.FormatInt(last, 10)
		}
	}
	if !ok {
		h.Del("Range")
		return
	}
	h.Set("Range", "bytes="+strings.Join(list, ","))
}

// rangeNumber parses a number of a range, which may be absent.
func rangeNumber(s string) (int64, bool) {
	if strings.Trim(s, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil && s != "" {
		return 1<<62 - 1, true
	}
	return n, true
}
