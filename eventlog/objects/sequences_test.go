package objects

import "testing"

func TestSequences(t *testing.T) {
	var r Sequences
	want := []uint64{7, 8, 9, 12, 20, 21}
	for _, seq := range want {
		r = r.Append(seq)
	}
	if r.String() != "7+3,12,20+2" || r.Count() != 6 {
		t.Errorf("%s, %d", r, r.Count())
	}
	back, err := parseSequences(r.String())
	if err != nil || back.String() != r.String() {
		t.Errorf("%v %v", back, err)
	}
	for i, seq := range want {
		if back.at(int64(i)) != seq {
			t.Errorf("piece %d is at %d", i, back.at(int64(i)))
		}
	}
	if back.at(6) != 0 {
		t.Error("there is a seventh")
	}
	for _, bad := range []string{"x", "1+", "1+0", "0", "1,,2", "-1", "1+-3"} {
		if _, err := parseSequences(bad); err == nil {
			t.Errorf("%q was read", bad)
		}
	}
}
