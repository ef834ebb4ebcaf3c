package schema

import (
	"strings"
	"testing"

	"github.com/skein-threads/skein/events"
)

// TestNumber: a number goes to the schema library as it is written, if that is short; a
// long one as another that no bound of ours tells from it.
func TestNumber(t *testing.T) {
	zeros := func(n int) string { return strings.Repeat("0", n) }
	for raw, want := range map[string]string{
		"7": "7", "-7": "-7", "1e2": "100", "7.0": "7", "0.50": "0.50", "9007199254740993": "9007199254740993",
		"0." + zeros(37) + "1":                 "0." + zeros(37) + "1", // 40 bytes
		"0." + zeros(38) + "1":                 "0." + zeros(38) + "1",
		"0.1" + zeros(37):                      "0.1" + zeros(37),
		"0.1" + zeros(38):                      "0.1",
		"1e-1":                                 "0.1",
		"-25E-2":                               "-0.25",
		"3." + zeros(50) + "1":                 "0.5", // as a float it is whole, and it is not
		"-3." + zeros(50) + "1":                "0.5",
		"9007199254740991." + zeros(50) + "1":  "1e99",
		"-9007199254740991." + zeros(50) + "1": "-1e99",
		"1" + zeros(39):                        "1" + zeros(39),
		"1" + zeros(40):                        "1e99",
		"-1" + zeros(40):                       "-1e99",
		"1e20":                                 "1e99",
		"1e999999999":                          "1e99",
		"-1e999999999":                         "-1e99",
		"1e-999999999":                         "0.5",
		"9007199254740991.5e0":                 "1e99",
	} {
		if got := number(events.JSON(raw)); string(got) != want {
			t.Errorf("%s is %s, not %s", raw, got, want)
		}
	}
}
